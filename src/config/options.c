/* SPDX-License-Identifier: MIT */
/*
 * A copy of what the command line and the environment said, for later loadings: the memory of the
 * arguments themselves becomes the title of the process.
 */
#include "config/config.h"

#include <stdlib.h>

/* Texts, in the struct's order, that are copied one by one. */
#define EACH_TEXT(X)                                                                             \
    X(port)                                                                                      \
    X(environment)                                                                               \
    X(file)                                                                                      \
    X(rackup) X(workers) X(threads) X(pid) X(log) X(user) X(group) X(admin) X(control) X(target) \
        X(default_port) X(default_environment) X(default_pid) X(cwd)

static char *copy_text(const char *text)
{
    return text ? must_copy(text) : NULL;
}

static char **copy_list(char *const *list, size_t size)
{
    char **copy = must_alloc(size + 1, sizeof(*copy));

    for (size_t i = 0; i < size; i++)
        copy[i] = must_copy(list[i]);
    return copy;
}

static void free_list(char **list, size_t size)
{
    for (size_t i = 0; i < size; i++)
        free(list[i]);
    free(list);
}

static size_t count(char *const *list)
{
    size_t size = 0;

    while (list && list[size])
        size++;
    return size;
}

struct config_options *config_options_copy(const struct config_options *options)
{
    struct config_options *copy = must_alloc(1, sizeof(*copy));

    *copy = *options;
#define COPY(member) copy->member = copy_text(options->member);
    EACH_TEXT(COPY)
#undef COPY
    copy->binds = (const char **)copy_list((char *const *)options->binds, options->bind_size);
    copy->environ = copy_list(options->environ, count(options->environ));
    return copy;
}

void config_options_free(struct config_options *options)
{
    if (!options)
        return;
#define FREE(member) free((char *)(uintptr_t)options->member);
    EACH_TEXT(FREE)
#undef FREE
    free_list((char **)(uintptr_t)options->binds, options->bind_size);
    free_list(options->environ, count(options->environ));
    free(options);
}

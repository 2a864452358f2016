/* SPDX-License-Identifier: MIT */
/*
 * A copy of what the command line and the environment said, for later loadings: the memory of the
 * arguments themselves becomes the title of the process.
 */
#include "config/config.h"

#include <stddef.h>
#include <stdlib.h>

/* The texts, which are copied one by one. */
static const size_t texts[] = {
    offsetof(struct config_options, port),
    offsetof(struct config_options, environment),
    offsetof(struct config_options, file),
    offsetof(struct config_options, rackup),
    offsetof(struct config_options, workers),
    offsetof(struct config_options, threads),
    offsetof(struct config_options, pid),
    offsetof(struct config_options, log),
    offsetof(struct config_options, user),
    offsetof(struct config_options, group),
    offsetof(struct config_options, admin),
    offsetof(struct config_options, control),
    offsetof(struct config_options, target),
    offsetof(struct config_options, default_port),
    offsetof(struct config_options, default_environment),
    offsetof(struct config_options, default_pid),
    offsetof(struct config_options, cwd),
};

static const char **text_at(struct config_options *options, size_t index)
{
    return (const char **)(void *)((char *)options + texts[index]);
}

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
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *text_at(copy, i) = copy_text(*text_at(copy, i));
    copy->binds = (const char **)copy_list((char *const *)options->binds, options->bind_size);
    copy->environ = copy_list(options->environ, count(options->environ));
    return copy;
}

void config_options_free(struct config_options *options)
{
    if (!options)
        return;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free((char *)(uintptr_t)*text_at(options, i));
    free_list((char **)(uintptr_t)options->binds, options->bind_size);
    free_list(options->environ, count(options->environ));
    free(options);
}

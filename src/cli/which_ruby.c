/* SPDX-License-Identifier: MIT */
#include "cli/which_ruby.h"

#include "pool/environment.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The environment that the pool's application would get, as far as finding its Ruby goes. */
static void make_environment(char *const *variables, const struct config *config,
                             const struct config_pool *pool, struct environment *environment)
{
    environment_copy(environment, variables);
    environment_clean(environment);
    for (uint32_t i = 0; i < pool->env_size; i++)
        environment_set(environment, pool->env[i].name, pool->env[i].value);
    environment_finish(environment, config->environment, pool);
}

static char *find_library(struct faults *faults)
{
    char binary[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", binary, sizeof(binary) - 1);

    binary[size > 0 ? size : 0] = '\0';
    return ruby_find_library(getenv("LEAT_LIB"), binary, faults);
}

int which_ruby(char *const *variables, const struct config *config, const struct config_pool *pool,
               struct ruby *ret_ruby, struct faults *faults)
{
    struct environment environment = {0};
    struct account account = {0};
    struct rlimit files;
    char *library = find_library(faults);
    struct ruby_options options = {
        .configured = pool->ruby, .folder = pool->app, .account = &account, .library = library};
    int result = -1;

    make_environment(variables, config, pool, &environment);
    options.environ = environment.items;
    options.files = getrlimit(RLIMIT_NOFILE, &files) == 0 ? &files : NULL;
    if (library && account_find(NULL, NULL, NULL, "user", &account, faults) == 0)
        result = ruby_find(&options, ret_ruby, faults);
    account_done(&account);
    environment_done(&environment);
    free(library);
    return result;
}

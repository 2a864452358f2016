/* SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/verbs.h"
#include "config/explain.h"
#include "pool/environment.h"
#include "pool/ruby.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The environment that the pool's application would get, as far as finding its Ruby goes. */
static void make_environment(const struct cli_call *call, const struct config *config,
                             const struct config_pool *pool, struct environment *environment)
{
    environment_copy(environment, call->options.environ);
    environment_clean(environment);
    for (uint32_t i = 0; i < pool->env_size; i++)
        environment_set(environment, pool->env[i].name, pool->env[i].value);
    environment_finish(environment, config->environment, pool->threads);
}

static char *find_library(struct faults *faults)
{
    char binary[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", binary, sizeof(binary) - 1);

    binary[size > 0 ? size : 0] = '\0';
    return ruby_find_library(getenv("LEAT_LIB"), binary, faults);
}

static int find_ruby(const struct cli_call *call, const struct config *config,
                     const struct config_pool *pool, struct ruby *ruby, struct faults *faults)
{
    struct environment environment = {0};
    struct account account = {0};
    struct rlimit files;
    char *library = find_library(faults);
    struct ruby_options options = {
        .configured = pool->ruby, .folder = pool->app, .account = &account, .library = library};
    int result = -1;

    make_environment(call, config, pool, &environment);
    options.environ = environment.items;
    options.files = getrlimit(RLIMIT_NOFILE, &files) == 0 ? &files : NULL;
    if (library && account_find(NULL, NULL, NULL, "user", &account, faults) == 0)
        result = ruby_find(&options, ruby, faults);
    account_done(&account);
    environment_done(&environment);
    free(library);
    return result;
}

/* Which Ruby a pool would run with is found out by asking it. */
static void put_ruby(const struct cli_call *call, const struct config *config,
                     const struct config_pool *pool, struct buf *out)
{
    struct faults faults = {0};
    struct ruby ruby = {0};
    char reason[512];

    if (find_ruby(call, config, pool, &ruby, &faults) == 0) {
        CHECK(buf_printf(out, "# pool %s runs with %s %s\n", pool->name, ruby.path, ruby.version) ==
              0);
        ruby_done(&ruby);
    } else {
        (void)fault_format(&faults.items[0], reason, sizeof(reason));
        CHECK(buf_printf(out, "# pool %s has no Ruby: %s\n", pool->name, reason) == 0);
    }
    faults_done(&faults);
}

static bool put_settings(const struct cli_call *call, struct buf *out)
{
    struct config *config = cli_load(call);

    if (!config)
        return false;
    explain_edition(config, out);
    if (config->pool_size)
        CHECK(buf_append(out, span_of("\n")) == 0);
    for (uint32_t i = 0; i < config->pool_size; i++)
        put_ruby(call, config, config->pools[i], out);
    config_free(config);
    return true;
}

int cli_print(const struct cli_call *call)
{
    struct buf out = {0};
    bool done = true;

    if (call->reference)
        explain_reference(&out);
    else
        done = put_settings(call, &out);
    if (done)
        done = fd_write_all(STDOUT_FILENO, buf_span(&out)) == 0;
    buf_done(&out);
    return done ? CLI_OK : CLI_FAILED;
}

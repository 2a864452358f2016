/* SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/verbs.h"
#include "cli/which_ruby.h"
#include "config/explain.h"

#include <unistd.h>

/* Which Ruby a pool would run with is found out by asking it. */
static void put_ruby(const struct cli_call *call, const struct config *config,
                     const struct config_pool *pool, struct buf *out)
{
    struct faults faults = {0};
    struct ruby ruby = {0};
    char reason[512];

    if (which_ruby(call->options.environ, config, pool, &ruby, &faults) == 0) {
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

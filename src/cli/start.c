/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/cli.h"
#include "cli/takeover.h"
#include "master/master.h"

#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

enum { TRIES = 30, PAUSE_MS = 100 };

/* A file that is just being written is whole a moment later; meanwhile the former front serves. */
static struct config *load(const struct cli_call *call, bool is_serving)
{
    struct config *config = cli_load(call);

    for (int tries = 0; !config && is_serving && tries < TRIES; tries++) {
        (void)poll(NULL, 0, PAUSE_MS);
        config = cli_load(call);
    }
    return config;
}

int cli_serve(const struct cli_call *call, struct saved *saved)
{
    struct config *config = load(call, saved);
    struct master_options options = {.config = config,
                                     .options = &call->options,
                                     .argv = call->all,
                                     .environ_list = call->options.environ,
                                     .cwd = call->options.cwd,
                                     .saved = saved};

    if (!config)
        return CLI_FAILED;
    if (config->daemonize && getpid() == 1) {
        cli_complain("-d would end this container: everything in it ends with PID 1");
        config_free(config);
        return CLI_FAILED;
    }
    return master_run(&options);
}

int cli_start(const struct cli_call *call)
{
    return cli_serve(call, NULL);
}

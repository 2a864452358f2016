/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/cli.h"
#include "master/master.h"

#include <unistd.h>

int cli_start(const struct cli_call *call)
{
    struct config *config = cli_load(call);
    struct master_options options = {.config = config,
                                     .options = &call->options,
                                     .argv = call->all,
                                     .environ_list = call->options.environ};

    if (!config)
        return CLI_FAILED;
    if (config->daemonize && getpid() == 1) {
        cli_complain("-d would end this container: everything in it ends with PID 1");
        config_free(config);
        return CLI_FAILED;
    }
    return master_run(&options);
}

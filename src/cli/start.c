/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/cli.h"
#include "master/master.h"

int cli_start(const struct cli_call *call)
{
    struct config *config = cli_load(call);
    struct master_options options = {
        .config = config, .argv = call->all, .environ_list = call->options.environ};

    return config ? master_run(&options) : CLI_FAILED;
}

/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/server.h"

#include <stdio.h>
#include <unistd.h>

static int start_instead(const struct cli_call *call)
{
    struct cli_call start = *call;

    printf("not running; it is started\n");
    (void)fflush(stdout);
    start.options.daemonize = true;
    return cli_start(&start);
}

int cli_restart(const struct cli_call *call)
{
    struct buf text = {.size = 0};
    char line[512];
    enum server_outcome outcome;

    (void)snprintf(line, sizeof line, "restart %s\n", call->pool ? call->pool : "");
    outcome = server_ask(call, line, &text);
    server_print(outcome == SERVER_OK ? STDOUT_FILENO : STDERR_FILENO, &text);
    buf_done(&text);
    if (outcome == SERVER_NONE || outcome == SERVER_STALE)
        return start_instead(call);
    if (outcome == SERVER_ENDED)
        cli_complain("the server ended before it had restarted");
    return outcome == SERVER_OK ? CLI_OK : CLI_FAILED;
}

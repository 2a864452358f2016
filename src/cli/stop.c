/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/server.h"

#include <stdio.h>
#include <unistd.h>

int cli_stop(const struct cli_call *call)
{
    struct buf text = {.size = 0};
    enum server_outcome outcome = server_ask_end(call, call->now ? "stop-now\n" : "stop\n", &text);
    int status = CLI_OK;

    switch (outcome) {
    case SERVER_OK:
        server_print(STDOUT_FILENO, &text);
        break;
    case SERVER_ENDED:
        printf("stopped\n");
        break;
    case SERVER_NONE:
    case SERVER_STALE:
        server_say_none(outcome);
        break;
    case SERVER_FAILED:
        server_print(STDERR_FILENO, &text);
        status = CLI_FAILED;
        break;
    case SERVER_UNREACHABLE:
        status = CLI_FAILED;
        break;
    }
    buf_done(&text);
    return status;
}

/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/server.h"

#include <unistd.h>

int cli_reopen(const struct cli_call *call)
{
    struct buf text = {.size = 0};
    enum server_outcome outcome = server_ask(call, "reopen\n", &text);

    server_print(outcome == SERVER_OK ? STDOUT_FILENO : STDERR_FILENO, &text);
    buf_done(&text);
    /* A log rotation must not fail because nothing runs. */
    if (outcome == SERVER_NONE || outcome == SERVER_STALE)
        server_say_none(outcome);
    return outcome == SERVER_FAILED || outcome == SERVER_UNREACHABLE ? CLI_FAILED : CLI_OK;
}

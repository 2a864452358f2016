/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/server.h"

#include <unistd.h>

int cli_healthcheck(const struct cli_call *call)
{
    struct buf text = {.size = 0};
    enum server_outcome outcome = server_ask(call, "ready\n", &text);

    server_print(outcome == SERVER_OK ? STDOUT_FILENO : STDERR_FILENO, &text);
    buf_done(&text);
    if (outcome == SERVER_NONE || outcome == SERVER_STALE || outcome == SERVER_ENDED)
        server_say_none(outcome);
    return outcome == SERVER_OK ? CLI_OK : CLI_FAILED;
}

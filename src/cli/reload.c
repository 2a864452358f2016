/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/server.h"

#include <unistd.h>

int cli_reload(const struct cli_call *call)
{
    struct buf text = {.size = 0};
    enum server_outcome outcome = server_ask(call, "reload\n", &text);

    server_print(outcome == SERVER_OK ? STDOUT_FILENO : STDERR_FILENO, &text);
    buf_done(&text);
    if (outcome == SERVER_NONE || outcome == SERVER_STALE)
        server_say_none(outcome);
    if (outcome == SERVER_ENDED)
        cli_complain("the server ended before it had reloaded");
    return outcome == SERVER_OK ? CLI_OK : CLI_FAILED;
}

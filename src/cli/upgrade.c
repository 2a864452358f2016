/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/server.h"
#include "master/binary.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Names this very program: what was called is what is to run. */
int cli_upgrade(const struct cli_call *call)
{
    char *binary = binary_find(call->all[0], call->options.cwd, getenv("PATH"));
    struct buf text = {.size = 0};
    struct buf line = {.size = 0};
    enum server_outcome outcome;

    CHECK(buf_printf(&line, "upgrade %s\n", binary) == 0 && buf_append_byte(&line, '\0') == 0);
    outcome = server_ask(call, buf_span(&line).data, &text);
    server_print(outcome == SERVER_OK ? STDOUT_FILENO : STDERR_FILENO, &text);
    if (outcome == SERVER_NONE || outcome == SERVER_STALE)
        server_say_none(outcome);
    if (outcome == SERVER_ENDED)
        cli_complain("the server ended before it was upgraded");
    buf_done(&text);
    buf_done(&line);
    free(binary);
    return outcome == SERVER_OK ? CLI_OK : CLI_FAILED;
}

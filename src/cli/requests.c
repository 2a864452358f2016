/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "cli/server.h"
#include "front/request_id.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Sends the line and prints what comes; the words behind the verb may end with a folder. */
static int ask(const struct cli_call *call, const char *folder, const char *line)
{
    struct cli_call asked = *call;
    struct buf text = {.size = 0};
    enum server_outcome outcome;

    if (folder)
        asked.options.target = folder;
    outcome = server_ask(&asked, line, &text);
    server_print(outcome == SERVER_OK ? STDOUT_FILENO : STDERR_FILENO, &text);
    buf_done(&text);
    if (outcome == SERVER_NONE || outcome == SERVER_STALE || outcome == SERVER_ENDED)
        server_say_none(outcome);
    if (outcome == SERVER_OK)
        return CLI_OK;
    return outcome == SERVER_FAILED ? CLI_FAILED : CLI_NOT_RUNNING;
}

static int end_request(const struct cli_call *call)
{
    char line[REQUEST_ID_MAX + 32];

    if (call->argc < 2 || !request_id_is_valid(span_of(call->argv[1]))) {
        cli_complain("requests kill takes the id of a request, as `leat requests` shows it");
        return CLI_USAGE;
    }
    (void)snprintf(line, sizeof line, "request-kill %s\n", call->argv[1]);
    return ask(call, call->argc > 2 ? call->argv[2] : NULL, line);
}

int cli_requests(const struct cli_call *call)
{
    if (call->argc && strcmp(call->argv[0], "kill") == 0)
        return end_request(call);
    if (call->argc > 1) {
        cli_complain("requests cannot do with \"%s\"; `leat help requests` says what it takes",
                     call->argv[1]);
        return CLI_USAGE;
    }
    return ask(call, call->argc ? call->argv[0] : NULL,
               call->json ? "requests json\n" : "requests\n");
}

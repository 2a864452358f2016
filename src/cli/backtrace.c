/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include "base/num.h"
#include "cli/server.h"

#include <stdio.h>
#include <unistd.h>

static int ask(const struct cli_call *call, uint64_t pid)
{
    struct buf text = {.size = 0};
    char line[64];
    enum server_outcome outcome;

    (void)snprintf(line, sizeof line, "backtrace %llu\n", (unsigned long long)pid);
    outcome = server_ask(call, line, &text);
    server_print(outcome == SERVER_OK ? STDOUT_FILENO : STDERR_FILENO, &text);
    buf_done(&text);
    if (outcome == SERVER_NONE || outcome == SERVER_STALE || outcome == SERVER_ENDED) {
        server_say_none(outcome);
        return CLI_NOT_RUNNING;
    }
    return outcome == SERVER_OK ? CLI_OK : CLI_FAILED;
}

int cli_backtrace(const struct cli_call *call)
{
    uint64_t pid;

    if (call->argc != 1 || !num_decimal(span_of(call->argv[0]), &pid)) {
        cli_complain("backtrace needs the PID of a worker; `leat status` lists them");
        return CLI_USAGE;
    }
    return ask(call, pid);
}

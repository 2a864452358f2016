/* SPDX-License-Identifier: MIT */
/*
 * How verbs reach a running server: finds it as the command line says, and asks it.
 */
#pragma once

#include "base/buf.h"
#include "cli/cli.h"

#include <sys/types.h>

/* What came of it. */
enum server_outcome {
    SERVER_OK,
    SERVER_FAILED,     /* it answered "failed"; the text says why */
    SERVER_ENDED,      /* it ended without an answer */
    SERVER_NONE,       /* none is running */
    SERVER_STALE,      /* none is running, and a PID file is left over */
    SERVER_UNREACHABLE /* one is there that cannot be asked; a complaint was printed */
};

/* Sends a line ("status json\n") to the server of this call. ret_text is the answer; the caller frees
 * it. */
enum server_outcome server_ask(const struct cli_call *call, const char *line, struct buf *ret_text);

/* The same for a line that ends the server: returns when the process is gone, too. */
enum server_outcome server_ask_end(const struct cli_call *call, const char *line,
                                   struct buf *ret_text);

/* Writes the text to a standard descriptor. */
void server_print(int fd, const struct buf *text);

/* Prints "not running", with the PID file when one is left over. */
void server_say_none(enum server_outcome outcome);

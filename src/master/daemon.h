/* SPDX-License-Identifier: MIT */
/*
 * Going into the background, and telling whoever started the server how the start went: through a pipe
 * to the process that waits in the foreground, or on the terminal when there is none.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>

/* Forks twice. In the background process the write end of the pipe for daemon_tell is returned; the
 * foreground process waits for the outcome, prints it and never returns: it exits 0 or 1. Negative
 * errno when nothing could be forked. */
int daemon_start(void);

/* Tells the outcome, once: text is printed on standard output (ok) or error. pipe_fd -1: here. Closes
 * and forgets the pipe. */
void daemon_tell(int *pipe_fd, bool ok, struct span text);

/* Leaves the terminal: standard descriptors become /dev/null, output goes to log_fd unless it is -1. */
void daemon_leave_terminal(int log_fd);

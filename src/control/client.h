/* SPDX-License-Identifier: MIT */
/*
 * The caller's side of the control socket, for the command line: finds the server and asks it.
 */
#pragma once

#include "base/buf.h"
#include "control/path.h"

#include <stdbool.h>

/* How a server is to be found; NULL = not given. In this order. */
struct client_target {
    const char *control;     /* path of the socket */
    const char *pid_file;    /* named */
    const char *application; /* folder as given, absolute */
};

/* Connects to the server. The descriptor, or negative errno: -ENOENT when there is none; then
 * *ret_stale says whether a PID file is there that nobody holds. */
int client_connect(const struct client_target *target, const struct control_place *place,
                   bool *ret_stale);

/* Sends a line and reads the answer to its end. 1: ok, 0: failed, or negative errno (-EPIPE: the server
 * ended without an answer). */
int client_ask(int fd, const char *line, struct buf *ret_text);

/* The process that holds the lock of a PID file, 0 when nobody does, or negative errno. */
pid_t client_lock_holder(const char *pid_file);

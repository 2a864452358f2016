/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/1 connection that was given away: its request stays open, and is logged, until the tunnel
 * ends. Used by http/h1_* only.
 */
#pragma once

#include "http/h1_state.h"

/* struct conn's tunnel: what was answered so far goes out first, then fd has the connection. */
int h1_tunnel_open(struct exchange *exchange, int fd);

/* Ends the tunnel of a connection that is being closed; harmless without one. */
void h1_tunnel_close(struct h1_conn *conn);

/* SPDX-License-Identifier: MIT */
/*
 * Taking connections: all that wait before any is served, each to the loop with the fewest, within the
 * ceiling of the process. When descriptors run out, idle connections go first, then newcomers get a 503,
 * and accepting pauses instead of spinning. One loop each.
 */
#pragma once

#include "front/process.h"

/* Watches every listener of the options. 0 or a negative errno. */
int accept_start(struct front_loop *loop);

/* Takes what still waits in the backlogs, then stops watching. */
void accept_stop(struct front_loop *loop);

/* Frees what accept_start made; all connections are closed. */
void accept_done(struct front_loop *loop);

/* The exchange's connection was used just now: it is the last to be closed for want of room. */
void accept_note_use(struct exchange *exchange);

/* Gives every connection of the loop to visit, which may close it; one that still waits for its PROXY
 * header has no request to lose and is closed. */
void accept_each(struct front_loop *loop,
                 void (*visit)(struct front_loop *loop, struct h1_conn *conn));

/* SPDX-License-Identifier: MIT */
/*
 * The end of a front: what waits in the backlogs is taken, every connection is given one more answer that
 * says it is the last, idle ones close when no request came at once, and when the time is over the rest is
 * cut and counted. When the last connection of the last loop is gone, the process ends.
 */
#pragma once

#include "front/process.h"

/* A stop comes soon: whoever asks is answered, told not to stay, and the front is not ready any more; on
 * loop 0. */
void drain_announce(struct front *front);

/* Begins the end on all loops; on loop 0. */
void drain_start(struct front *front, uint64_t cut_after_ms);

/* Another front has the listening sockets: this one closes them, emptying those that were given up, and ends
 * with its last connection, however long that takes; on loop 0. */
void drain_retire(struct front *front);

/* One that retires has only streams left, and its place is needed; on loop 0. */
void drain_end_streams(struct front *front);

/* Called whenever a connection of the loop has closed. */
void drain_check(struct front_loop *loop);

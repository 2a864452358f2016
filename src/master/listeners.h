/* SPDX-License-Identifier: MIT */
/* The listening sockets: opened before anything else, closed last. */
#pragma once

#include "master/state.h"

/* Opens all of them, taking those that systemd passed. 0, or -1 with a fault for each that failed. */
int listeners_open(struct master *master, struct faults *faults);

/* Closes master's copies before the fronts drain: the front that empties the backlogs then holds the last
 * one, and the moment between its last accept and its close is short. Meanwhile a new connection waits
 * outside of the backlog and is refused in the end, not reset. */
void listeners_release(struct master *master);

/* Closes them and removes the files of Unix sockets that are still ours. */
void listeners_close(struct master *master);

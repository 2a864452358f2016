/* SPDX-License-Identifier: MIT */
/* The listening sockets: opened before anything else, closed last, shared by editions of the same address. */
#pragma once

#include "master/edition.h"

/* Opens those of the edition that are not open already, taking those that systemd passed. 0, or -1 with a
 * fault for each that failed. */
int listeners_open(struct edition *edition, struct faults *faults);

/* Has what another program listened on, for the edition that is opened next and for its fronts; closes what
 * none of them has. */
struct master_listener *listeners_adopt(struct master *master,
                                        const struct master_listener *former);
void listeners_sweep(struct master *master);

/* Gives up an edition's reference; with the last one it is closed. */
void listeners_unref(struct master_listener *listener);

/* What the fresh edition does not name any more is given up: nobody new is let in, master's copy is closed,
 * the file removed, and the fronts of the former one empty it. What it does name gets its mode, owner and
 * backlog. */
void listeners_change(struct edition *former, const struct edition *fresh);

/* Closes master's copies before the fronts drain: the front that empties the backlogs then holds the last
 * one, and the moment between its last accept and its close is short. Meanwhile a new connection waits
 * outside of the backlog and is refused in the end, not reset. */
void listeners_release(struct master *master);

/* Closes them and removes the files of Unix sockets that are still ours. */
void listeners_close(struct master *master);

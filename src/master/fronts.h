/* SPDX-License-Identifier: MIT */
/*
 * The front processes: forked here, spoken with over their channels, and put back when they die. A front
 * has an entry, its number in every board; a dead one's entry is used again when no worker holds a slot
 * of its any more.
 */
#pragma once

#include "master/edition.h"

/* Makes what all fronts share: the counters. 0, or -1 with a fault. */
int fronts_prepare(struct master *master, struct faults *faults);

/* Forks a front that runs on the edition; its entry, or -1 with a fault. */
int fronts_start(struct edition *edition, struct faults *faults);

/* Whether an entry is free in all boards of the edition. */
bool fronts_have_room(const struct edition *edition);
/* Takes over the front that another program forked as this entry; it serves until one of ours accepts. 0
 * or negative errno. */
int fronts_adopt(struct master *master, uint32_t entry, const struct master_front *former);

/* Sees to it that a front of the present edition is there: forks one, now or as soon as it is possible. */
void fronts_renew(struct master *master);

/* Whether they have got everything that they were told. */
bool fronts_are_told(const struct master *master);

/* Handles the end of a front; false when the PID is none's. */
bool fronts_ended(struct master *master, pid_t pid, int wait_status);

/* Sends a message to every front (to one). Descriptors stay the caller's. */
void fronts_tell_all(struct master *master, const struct front_message *message, const int *fds,
                     size_t count);
void fronts_tell(struct master_front *front, const struct front_message *message, const int *fds,
                 size_t count);

/* Sends a message about the pool to every front that uses it, under the pool's number there; how many that
 * are. */
uint32_t fronts_tell_users(const struct master_pool *pool, const struct front_message *message);

/* Fronts that run; one of them takes connections. */
uint32_t fronts_size(const struct master *master);
bool fronts_accept(const struct master *master);

/* Kills them all. */
void fronts_kill(struct master *master);

/* Frees what fronts_prepare made; all fronts are gone. */
void fronts_done(struct master *master);

/* Writes the entries of all fronts into a board that was written over. */
void fronts_restore(const struct master *master, const struct board *board);

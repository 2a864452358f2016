/* SPDX-License-Identifier: MIT */
/*
 * Molds and workers whose board this build cannot read, left by the program whose place it took. The front
 * that was forked by that one still uses them; when it is gone, they are told to leave, and those that do
 * not are killed.
 */
#pragma once

#include "base/saved.h"
#include "master/state.h"

/* Remembers the processes of a pool that was not adopted. */
void strays_add(struct master *master, const struct saved_in *pool);

/* A front may have been the last that uses them. */
void strays_check(struct master *master);

/* Handles the end of one; false when the PID is none's. */
bool strays_ended(struct master *master, pid_t pid);

/* Frees what is left of them; the processes end with the server. */
void strays_done(struct master *master);

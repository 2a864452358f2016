/* SPDX-License-Identifier: MIT */
/*
 * The phases of the server's life: from starting to ready, and through a stop to its end (state.h).
 */
#pragma once

#include "master/state.h"

/* The start has failed: prints why, and ends everything. */
void phase_fail_start(struct master *master, const char *reason);

/* Looks whether the start has come to its outcome. */
void phase_check_ready(struct master *master);

/* Begins a graceful stop; a second call makes it one at once. */
void phase_stop(struct master *master);

/* Stops without waiting for requests. is_success: requests that are cut are no failure (QUIT). */
void phase_stop_now(struct master *master, bool is_success);

/* A front ended during a stop; a pool has no process left. */
void phase_front_gone(struct master *master);
void phase_pool_gone(struct master *master);

/* Whether requests are served and no stop was asked for. */
bool phase_is_ready(const struct master *master);

/* The start failed before the loop ran: ends the processes that were started already and waits for
 * them. */
void phase_abandon(struct master *master);

/* SPDX-License-Identifier: MIT */
/*
 * Between pools and fronts: what a front says to a pool, and what a pool says to the fronts.
 */
#pragma once

#include "master/state.h"

/* Handles one message of a front; its descriptor (-1 = none) stays the caller's. */
void inbox_take(struct master *master, struct master_front *front,
                const struct front_message *message, int fd);

/* Writes what fronts must know of a pool's state. */
void inbox_pool_state(const struct master_pool *pool, struct front_message *ret_message);

/* The callbacks of pools; their context is a struct master_pool. */
extern const struct pool_host inbox_host;

/* SPDX-License-Identifier: MIT */
/*
 * Who gives up a worker when memory is short: for the sake of a pool that waits, or because a limit is
 * exceeded by those that are there. Preferred are idle workers above MIN, longest idle first; then busy ones
 * above MIN, which finish their requests; and where a limit is exceeded also those that are not the only one
 * of their pool, the largest first. Part of the budget; master's only thread.
 */
#pragma once

#include "pool/pool.h"

/* Others make room for so many bytes. Busy workers only do so for a pool that has none (is_first) and has
 * waited for a second. */
void reclaim_for(struct pool *pool, uint64_t bytes, bool is_first, uint64_t now_ms);

/* Whether any other pool has more than its MIN, so that it can give way sooner or later. */
bool reclaim_is_possible(const struct pool *pool);

/* One idle worker of any pool of this budget goes. */
void reclaim_idle(struct pool *pool, const char *why);

/* One worker goes when memory_total of the pool, or of all pools, is exceeded. */
void reclaim_excess(struct pool *pool, uint64_t now_ms);

/* When that has to be looked at again; UINT64_MAX = when something happens. */
uint64_t reclaim_due_ms(const struct pool *pool, uint64_t now_ms);

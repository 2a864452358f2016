/* SPDX-License-Identifier: MIT */
/*
 * How many workers a pool has: gathers the situation that scale.c decides from, starts what is missing when
 * budget.c has room, replaces those that have served their time (new before old, one at a time; when two do
 * not fit, the old one first), retires those that are too many, and lets the mold of a pool on demand go
 * after its last worker. Part of the pool; runs within the plan.
 */
#pragma once

#include "pool/pool.h"

/* A worker has reported its private memory; has answered as many requests as it should. */
void staff_measured(struct pool *pool, uint32_t index, uint64_t private_bytes);
void staff_spent(struct pool *pool, uint32_t index, enum exit_reason why);

/* Somebody asks for a pool that may be on demand. */
void staff_demand(struct pool *pool);

/* A worker serves that had been asked for. */
void staff_started(struct pool *pool, uint32_t index);

/* Milliseconds for which a worker has done nothing; 0 when it is busy, or holds streams. */
uint64_t staff_idle_ms(const struct pool *pool, uint32_t index, uint64_t now_ms);

/* A worker goes for the sake of others; is_final: it is not to be replaced. */
void staff_give_up(struct pool *pool, uint32_t index, enum exit_reason why, bool is_final);

/* Whether requests wait that no worker will take. */
bool staff_has_orphans(const struct pool *pool);

/* Starts and retires. */
void staff_plan(struct pool *pool, uint64_t now_ms);

/* How long a worker that retires may take before it is killed. */
uint64_t staff_grace_ms(const struct pool *pool);

/* When it has to look again if nothing happens before; UINT64_MAX = not at all. */
uint64_t staff_due_ms(const struct pool *pool, uint64_t now_ms);

/* SPDX-License-Identifier: MIT */
/*
 * What a pool does next: looks at its molds and workers, and starts, replaces, retires. Part of the
 * pool. Runs at the end of a batch in which something happened, and when a deadline has come.
 */
#pragma once

#include "pool/pool.h"

/* Has the plan made at the end of this batch. */
void plan_soon(struct pool *pool);

/* The task and the timer. */
void plan_on_task(struct task *task);
void plan_on_timer(struct timer *timer);

/* Starts the process of a generation (a solo one only needs to be prepared). */
void plan_load(struct pool *pool, struct mold *mold);

/* A generation failed to start: ends the restart it belongs to, or pauses before the next try. */
void plan_failed(struct pool *pool, struct mold *mold, const char *reason);

/* A worker of this generation serves: a trial worker makes its generation the current one. */
void plan_serves(struct pool *pool, uint32_t generation);

/* In development: a worker that could not load the application answers with the reason until the code
 * changes. The start is none that failed; the pool's error stays. */
void plan_excused(struct pool *pool);

/* Such a worker saw a change and left: the next one tries again, at once and from the beginning. */
void plan_changed(struct pool *pool, struct mold *mold);

/* A mold process ended. */
void plan_mold_ended(struct pool *pool, struct mold *mold, int wait_status);

/* A mold that has said `failed` has little time to leave. */
void plan_shorten(struct mold *mold);

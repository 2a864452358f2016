/* SPDX-License-Identifier: MIT */
/*
 * A pool across `leat upgrade`: what the program that goes writes down of it, and how the one that comes
 * goes on with the same board, molds and workers, none of which notices. Deadlines and ages are those of
 * the machine's monotonic clock and need no translation. Master's only thread.
 *
 * What is not written down is found anew: accounts and environments when a generation is next started
 * (mold_prepare), sizes from the configuration.
 */
#pragma once

#include "base/saved.h"
#include "pool/pool.h"

/* Adds what there is to a pool. No restart may be under way. */
void pool_save(const struct pool *pool, const struct saved_out *out);

/* Whether the pool's board can be read by this build: its version and shape, not its content. */
bool pool_is_adoptable(const struct saved_in *in);

/* Makes a pool of what another build left; its settings may have changed meanwhile. NULL with a fault.
 * Nobody is told anything before pool_resume. */
struct pool *pool_adopt(const struct pool_options *options, const struct saved_in *in,
                        struct faults *faults);

/* The host can be told: goes on, with all that the fronts may have missed. Processes that are not ours
 * any more count as ended. */
void pool_resume(struct pool *pool);

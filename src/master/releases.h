/* SPDX-License-Identifier: MIT */
/*
 * Tells fronts which releases of an application have workers, so that files which only a former release
 * has are served as long as its pages are. Where the application's folder is no link there is one release,
 * and nothing to tell.
 */
#pragma once

#include "master/state.h"

/* Tells all fronts what has changed since the last time. */
void releases_tell_all(struct master_pool *pool);

/* Tells a new front, to which the pool has that number, what the others were told. */
void releases_tell(const struct master_pool *pool, uint32_t number, struct master_front *front);

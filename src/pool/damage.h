/* SPDX-License-Identifier: MIT */
/*
 * A pool whose board a worker has written over (board/repair.h): noticed when requests wait or are refused,
 * or a front has met garbage; its workers are killed, the board is set right when the last of them is gone,
 * and others are started. Master's only thread.
 */
#pragma once

#include "pool/pool.h"

/* Looks at the board, and kills the workers when it is damaged. */
void damage_look(struct pool *pool);

/* Whether workers may be started: the board is sound, or has just been set right. */
bool damage_is_over(struct pool *pool);

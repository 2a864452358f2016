/* SPDX-License-Identifier: MIT */
/*
 * Ceilings of the process: what happens to one more connection. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum limits_verdict {
    LIMITS_TAKE,      /* serve it */
    LIMITS_MAKE_ROOM, /* close idle ones first, then serve it */
    LIMITS_REFUSE     /* 503 */
};

/* open: connections now, limit: at most (0 = none); idle: whether any is idle. */
enum limits_verdict limits_judge(uint64_t open, uint64_t limit, bool idle);

/* How many idle connections to close when the limit is hit: some at once, so that the search for the
 * longest idle one is not repeated for every new connection. */
uint64_t limits_room(uint64_t limit);

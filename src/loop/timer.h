/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of one loop. A timer is embedded by its owner and called by the loop's thread.
 *
 * Invariant: a timer of zeros is valid and not set. Setting, moving and stopping cost O(log n) or
 * better; a loop without set timers sleeps without limit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct timer {
    uint64_t due_ms; /* monotonic */
    void (*on_due)(struct timer *timer);
    struct loop *loop; /* NULL while not set */
    uint32_t place;    /* in the loop's heap */
};

/* Calls on_due once, delay_ms from now (of the loop's batch); a set timer is moved. */
void timer_set(struct loop *loop, struct timer *timer, uint64_t delay_ms,
               void (*on_due)(struct timer *));

/* Forgets the deadline; harmless when not set. */
void timer_stop(struct timer *timer);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->loop;
}

/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of one loop. A timer is embedded by its owner and called by the loop's thread.
 *
 * They stand in a heap whose slots carry a key of their own: moving a timer to a later time, which
 * every request does, only writes due_ms, and the slot is put right when it comes to the top.
 *
 * Invariants: a timer of zeros is valid and not set; a slot's key is never later than its timer's
 * due_ms; a timer is never called before its delay has passed. Moving to a later time costs O(1),
 * all else O(log n) or better; a loop without set timers sleeps without limit.
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

/* Calls on_due once, delay_ms from now (of the loop's batch), rounded up to the next millisecond; a
 * set timer is moved. A delay of 0 is due in a later batch, so that a timer may set itself again. */
void timer_set(struct loop *loop, struct timer *timer, uint64_t delay_ms,
               void (*on_due)(struct timer *));

/* Forgets the deadline; harmless when not set. */
void timer_stop(struct timer *timer);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->loop;
}

struct timer_slot;

/* The set timers of a loop, part of struct loop and used by loop.c only; zeros are an empty heap. */
struct timer_heap {
    struct timer_slot *slots; /* owned */
    uint32_t size;
    uint32_t room;
};

/* Calls every timer that is due at now_ms. */
void timer_heap_run(struct timer_heap *heap, uint64_t now_ms);

/* Milliseconds from now_ms until the first timer is due: 0 when one is, -1 when none is set. */
int timer_heap_wait(struct timer_heap *heap, uint64_t now_ms);

/* Unsets all timers and frees the memory. */
void timer_heap_done(struct timer_heap *heap);

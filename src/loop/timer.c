/* SPDX-License-Identifier: MIT */
#include "loop/timer.h"

#include "base/base.h"
#include "loop/loop.h"

#include <limits.h>
#include <stdlib.h>

struct timer_slot {
    uint64_t key_ms; /* not later than timer->due_ms */
    struct timer *timer;
};

enum { ROOM_MIN = 64 };

static void put(struct timer_heap *heap, uint32_t place, struct timer_slot slot)
{
    heap->slots[place] = slot;
    slot.timer->place = place;
}

/* Moves the slot towards the top while its parent is later; place is free to be overwritten. */
static void rise(struct timer_heap *heap, uint32_t place, struct timer_slot slot)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / 2;

        if (heap->slots[parent].key_ms <= slot.key_ms)
            break;
        put(heap, place, heap->slots[parent]);
        place = parent;
    }
    put(heap, place, slot);
}

/* Moves the slot away from the top while a child is earlier; place is free to be overwritten. */
static void sink(struct timer_heap *heap, uint32_t place, struct timer_slot slot)
{
    while (place < heap->size / 2) {
        uint32_t child = 2 * place + 1;

        if (child + 1 < heap->size && heap->slots[child + 1].key_ms < heap->slots[child].key_ms)
            child++;
        if (slot.key_ms <= heap->slots[child].key_ms)
            break;
        put(heap, place, heap->slots[child]);
        place = child;
    }
    put(heap, place, slot);
}

static void insert(struct timer_heap *heap, struct timer *timer)
{
    if (heap->size == heap->room) {
        heap->room = heap->room ? 2 * heap->room : ROOM_MIN;
        heap->slots = must_resize(heap->slots, heap->room * sizeof(*heap->slots));
    }
    heap->size++;
    rise(heap, heap->size - 1, (struct timer_slot){timer->due_ms, timer});
}

static void take_out(struct timer_heap *heap, struct timer *timer)
{
    uint32_t place = timer->place;
    struct timer_slot last = heap->slots[--heap->size];

    CHECK(last.timer == timer || heap->slots[place].timer == timer);
    timer->loop = NULL;
    if (last.timer == timer)
        return;
    if (last.key_ms < heap->slots[place].key_ms)
        rise(heap, place, last);
    else
        sink(heap, place, last);
}

/* Brings the top up to date when its timer has been moved to a later time; false when it is exact. */
static bool renew_top(struct timer_heap *heap)
{
    struct timer_slot top = heap->slots[0];

    if (top.key_ms == top.timer->due_ms)
        return false;
    top.key_ms = top.timer->due_ms;
    sink(heap, 0, top);
    return true;
}

void timer_heap_run(struct timer_heap *heap, uint64_t now_ms)
{
    while (heap->size > 0 && heap->slots[0].key_ms <= now_ms) {
        struct timer *timer = heap->slots[0].timer;

        if (renew_top(heap))
            continue;
        take_out(heap, timer);
        timer->on_due(timer);
    }
}

int timer_heap_wait(struct timer_heap *heap, uint64_t now_ms)
{
    uint64_t wait_ms;

    while (heap->size > 0 && renew_top(heap))
        ;
    if (heap->size == 0)
        return -1;
    if (heap->slots[0].key_ms <= now_ms)
        return 0;

    /* What has passed of the current millisecond is not taken off: the millisecond is the grain, and
     * waking too early would cost a second sleep. */
    wait_ms = heap->slots[0].key_ms - now_ms;
    return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

void timer_heap_done(struct timer_heap *heap)
{
    for (uint32_t i = 0; i < heap->size; i++)
        heap->slots[i].timer->loop = NULL;
    free(heap->slots);
    *heap = (struct timer_heap){0};
}

/* The batch began somewhere inside its millisecond, so one more has to pass. */
static uint64_t due_after(uint64_t now_ms, uint64_t delay_ms)
{
    return delay_ms < UINT64_MAX - now_ms ? now_ms + 1 + delay_ms : UINT64_MAX;
}

void timer_set(struct loop *loop, struct timer *timer, uint64_t delay_ms,
               void (*on_due)(struct timer *))
{
    struct timer_heap *heap = loop_timers(loop);

    CHECK(!timer->loop || timer->loop == loop);
    timer->on_due = on_due;
    timer->due_ms = due_after(loop_now_ms(loop), delay_ms);
    if (!timer->loop) {
        timer->loop = loop;
        insert(heap, timer);
    } else if (timer->due_ms < heap->slots[timer->place].key_ms) {
        rise(heap, timer->place, (struct timer_slot){timer->due_ms, timer});
    }
}

void timer_stop(struct timer *timer)
{
    if (timer->loop)
        take_out(loop_timers(timer->loop), timer);
}

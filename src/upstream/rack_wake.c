/* SPDX-License-Identifier: MIT */
#include "base/base.h"
#include "board/bell.h"
#include "board/queue.h"
#include "upstream/rack_table.h"

enum {
    BUSY_AFTER_US = 1000,    /* a request this old may wake a thread of a busy process */
    WANTED_AFTER_US = 50000, /* and one this old means that more workers are wanted */
    WANTED_EVERY_US = 1000000,
    UNWOKEN_MAX = 16 /* requests of one batch, some 100 us of work */
};

static void on_nudge_due(struct timer *timer);

static void nudge_in(struct rack *rack, uint64_t delay_ms)
{
    if (!timer_is_set(&rack->nudge_timer))
        timer_set(rack->loop, &rack->nudge_timer, delay_ms, on_nudge_due);
}

static void wake(struct rack *rack)
{
    uint64_t now_us = loop_now_us(rack->loop);

    rack->unwoken = 0;
    if (!bell_can_wait(rack->options.board, now_us) &&
        bell_wake_worker(rack->options.board, now_us, true))
        nudge_in(rack, BELL_REPEAT_MS);
    else
        nudge_in(rack, BUSY_AFTER_US / 1000);
}

static void on_batch_end(struct task *task)
{
    wake(CONTAINER_OF(task, struct rack, wake_task));
}

void rack_wake_init(struct rack *rack)
{
    task_init(&rack->wake_task, on_batch_end);
}

/* What one batch of events queues is worth one wake: a worker that finds several requests sleeps less often.
 * Only a long batch does not make the first of them wait for the last. */
void rack_wake(struct rack *rack)
{
    if (++rack->unwoken >= UNWOKEN_MAX)
        wake(rack);
    else
        loop_defer(rack->loop, &rack->wake_task);
}

void rack_want(struct rack *rack, uint64_t now_us)
{
    if (rack->wanted_us && now_us - rack->wanted_us < WANTED_EVERY_US)
        return;
    rack->wanted_us = now_us;
    rack->options.owner->on_wanted(rack->options.owner_data);
}

/* Nobody sleeps who could come: the next free thread looks at the queue by itself. The front only has to
 * notice when that takes long. */
static void watch_queue(struct rack *rack, uint64_t oldest_us)
{
    nudge_in(rack, (oldest_us >= WANTED_AFTER_US ? WANTED_EVERY_US : WANTED_AFTER_US) / 1000);
}

static void on_nudge_due(struct timer *timer)
{
    struct rack *rack = CONTAINER_OF(timer, struct rack, nudge_timer);
    uint64_t now_us = loop_now_us(rack->loop);
    int64_t oldest_us = rack->held ? queue_oldest_us(rack->options.board, now_us) : -1;
    bool idle_only = oldest_us < BUSY_AFTER_US;

    if (oldest_us < 0)
        return;
    /* Also when somebody sleeps: one that does not answer for so long may have been stopped. */
    if (oldest_us >= WANTED_AFTER_US)
        rack_want(rack, now_us);
    if (idle_only && bell_can_wait(rack->options.board, now_us))
        nudge_in(rack, BUSY_AFTER_US / 1000);
    else if (bell_wake_worker(rack->options.board, now_us, idle_only))
        nudge_in(rack, BELL_REPEAT_MS);
    else if (idle_only)
        nudge_in(rack, BUSY_AFTER_US / 1000);
    else
        watch_queue(rack, (uint64_t)oldest_us);
}

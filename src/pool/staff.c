/* SPDX-License-Identifier: MIT */
#include "pool/staff.h"

#include "base/clock.h"
#include "base/log.h"
#include "board/queue.h"
#include "pool/crew.h"
#include "pool/memory.h"
#include "pool/plan.h"
#include "pool/reclaim.h"
#include "pool/scale.h"

#include <inttypes.h>

enum {
    LOOK_MS = 100,          /* how often a queue is looked at that may want more workers */
    WAIT_MS = 5000,         /* and memory, while nobody waits for what does not fit */
    DEMAND_MS = 100,        /* a front speaks of a request this long before it can be seen */
    UNKNOWN_START_MS = 500, /* a start is thought to take so long before one was seen */
    LEARN_STARTS = 4,       /* the mean follows about so many */
    STREAM_MARGIN_MS = 500
};

/* No worker's word about the time of a request counts for more. */
#define SERVICE_MAX_US UINT64_C(3600000000)

#define MB (UINT64_C(1) << 20)

static uint32_t size(const struct pool *pool)
{
    return pool->instance.board.shape.workers;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Limits ---- */

static struct scale limits(const struct pool *pool, bool demanded)
{
    return (struct scale){.min = pool->min,
                          .max = pool->max,
                          .fits = pool->fits,
                          .demanded = demanded,
                          .adjust = pool->adjust,
                          .entries = size(pool),
                          .wanted = pool->wanted};
}

uint32_t pool_least(const struct pool *pool)
{
    struct scale scale = limits(pool, false);

    return scale_least(&scale);
}

uint32_t pool_most(const struct pool *pool)
{
    struct scale scale = limits(pool, true);

    return scale_most(&scale);
}

/* Without a situation only the limits count. */
uint32_t pool_wanted(const struct pool *pool)
{
    struct scale scale = limits(pool, pool->demanded);

    return scale_wanted(&scale);
}

/* ---- The situation ---- */

uint64_t staff_idle_ms(const struct pool *pool, uint32_t index, uint64_t now_ms)
{
    const struct board_worker *entry = &pool->instance.board.workers[index];
    uint64_t since_ms = atomic_load_explicit(&entry->done_us, memory_order_relaxed) / 1000;

    if (instance_busy(&pool->instance, index) > 0 ||
        atomic_load_explicit(&entry->streams, memory_order_relaxed) > 0)
        return 0;
    if (since_ms < pool->workers[index].ready_ms)
        since_ms = pool->workers[index].ready_ms;
    return since_ms < now_ms ? now_ms - since_ms : 1;
}

static uint64_t service_us(const struct pool *pool, uint32_t index)
{
    const struct board_worker *entry = &pool->instance.board.workers[index];
    uint64_t time_us = atomic_load_explicit(&entry->service_ns, memory_order_relaxed) / 1000;

    return earlier(time_us, SERVICE_MAX_US);
}

static bool is_expired(const struct pool *pool, uint32_t index, uint64_t now_ms)
{
    uint64_t limit_ms = pool->settings->idle_ms;

    return limit_ms && staff_idle_ms(pool, index, now_ms) >= limit_ms;
}

/* Of all generations: they serve the same queue. */
static void add_serving(const struct pool *pool, uint32_t index, uint64_t now_ms,
                        struct scale *scale, uint64_t *total_us, uint32_t *known)
{
    uint32_t busy = instance_busy(&pool->instance, index);
    uint64_t one_us = service_us(pool, index);

    scale->serving++;
    scale->busy += busy < scale->threads ? busy : scale->threads;
    scale->expired += is_expired(pool, index, now_ms);
    *total_us += one_us;
    *known += one_us > 0;
}

static struct scale situation(const struct pool *pool, uint64_t now_ms)
{
    const struct board *board = &pool->instance.board;
    int64_t oldest_us = queue_oldest_us(board, clock_us());
    struct scale scale = limits(pool, pool->demanded);
    uint64_t total_us = 0;
    uint32_t known = 0;

    scale.threads = board->shape.threads;
    scale.queued = queue_length(board);
    scale.oldest_ms = oldest_us > 0 ? (uint64_t)oldest_us / 1000 : 0;
    scale.start_ms = pool->start_ms ? pool->start_ms : UNKNOWN_START_MS;
    for (uint32_t i = 0; i < size(pool); i++)
        if (pool->workers[i].state == WORKER_SERVING)
            add_serving(pool, i, now_ms, &scale, &total_us, &known);
    scale.service_us = known ? total_us / known : 0;
    return scale;
}

/* ---- What workers report ---- */

static void learn_worker_bytes(struct pool *pool)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < size(pool); i++)
        if (worker_is_there(&pool->workers[i]) && pool->workers[i].private_bytes > largest)
            largest = pool->workers[i].private_bytes;
    if (largest)
        pool->worker_bytes = largest;
}

void staff_measured(struct pool *pool, uint32_t index, uint64_t private_bytes)
{
    struct worker *worker = &pool->workers[index];
    uint64_t limit = pool->settings->memory;
    bool is_less;

    if (!worker_is_there(worker))
        return;
    /* No more than the system knows of: a lie would take the memory of other pools. */
    private_bytes = earlier(private_bytes, memory_resident(worker->pid));
    is_less = private_bytes < worker->private_bytes;
    worker->private_bytes = private_bytes;
    worker->is_grown = atomic_load_explicit(&pool->instance.board.workers[index].requests,
                                            memory_order_relaxed) > 0;
    learn_worker_bytes(pool);
    if (limit && private_bytes > limit && worker->spent == EXIT_NONE &&
        worker->state == WORKER_SERVING) {
        log_warn("pool=%s worker %d takes %" PRIu64
                 " MB of private memory, more than memory (%" PRIu64 " MB); it is replaced",
                 pool->settings->name, (int)worker->pid, private_bytes / MB, limit / MB);
        staff_spent(pool, index, EXIT_MEMORY);
    }
    if (is_less)
        budget_changed(pool);
    plan_soon(pool);
}

void staff_spent(struct pool *pool, uint32_t index, enum exit_reason why)
{
    struct worker *worker = &pool->workers[index];

    if (worker->state != WORKER_SERVING || worker->spent != EXIT_NONE)
        return;
    worker->spent = why;
    plan_soon(pool);
}

void staff_started(struct pool *pool, uint32_t index)
{
    const struct worker *worker = &pool->workers[index];
    uint64_t took_ms = worker->ready_ms - worker->since_ms;

    pool->start_ms =
        pool->start_ms ? (pool->start_ms * (LEARN_STARTS - 1) + took_ms) / LEARN_STARTS : took_ms;
    if (pool->start_ms == 0)
        pool->start_ms = 1;
    pool->has_served = true;
    budget_changed(pool);
}

/* ---- How many ---- */

void staff_demand(struct pool *pool)
{
    pool->demanded_ms = clock_ms();
    if (pool->demanded || pool_least(pool) > 0)
        return;
    pool->demanded = true;
    log_info("pool=%s is started for its first request", pool->settings->name);
}

/* A pool on demand is wanted from its first request until all its workers were idle for long; or, when
 * it cannot be started, until nobody waits any more. */
static void settle_demand(struct pool *pool, const struct scale *scale, uint64_t now_ms)
{
    bool is_over;

    if (pool_least(pool) > 0 || pool->next || pool->rolling)
        return;
    if (scale->queued > 0) {
        staff_demand(pool);
        return;
    }
    if (scale->serving > 0)
        is_over = scale->expired == scale->serving;
    else
        is_over = pool->current->state == MOLD_DOWN && now_ms >= pool->demanded_ms + DEMAND_MS;
    if (is_over && crew_count(pool).starting == 0)
        pool->demanded = false;
}

static void choose_number(struct pool *pool, uint64_t now_ms)
{
    struct scale scale = situation(pool, now_ms);
    uint32_t before = pool->wanted;

    settle_demand(pool, &scale, now_ms);
    scale.demanded = pool->demanded;
    /* While generations change there are more workers than usual, and new ones are idle at first. */
    if (pool->next || pool->rolling)
        scale.expired = 0;
    pool->wanted = scale_wanted(&scale);
    if (pool->wanted > before && before > 0)
        log_debug("pool=%s workers wanted: %u (queue %u, oldest %" PRIu64 " ms, request %" PRIu64
                  " us, start %" PRIu64 " ms)",
                  pool->settings->name, pool->wanted, scale.queued, scale.oldest_ms,
                  scale.service_us, scale.start_ms);
}

/* ---- Starting ---- */

bool staff_has_orphans(const struct pool *pool)
{
    struct crew_count count = crew_count(pool);

    return count.serving + count.starting + count.older == 0 &&
           queue_length(&pool->instance.board) > 0;
}

static int64_t find_spent(const struct pool *pool)
{
    int64_t found = -1;

    for (uint32_t i = 0; i < size(pool); i++) {
        const struct worker *worker = &pool->workers[i];
        if (worker->state != WORKER_SERVING || worker->spent == EXIT_NONE ||
            worker->generation != pool->current->generation)
            continue;
        if (found < 0 || worker->since_ms < pool->workers[found].since_ms)
            found = i;
    }
    return found;
}

static uint32_t missing(const struct pool *pool, uint32_t wanted)
{
    struct crew_count count = crew_count(pool);
    uint32_t current = count.serving + count.starting;
    /* While old workers remain, one more than wanted may be there. */
    uint32_t allowed = wanted + (count.older > 0);

    if (current >= wanted || current + count.older >= allowed)
        return 0;
    return allowed - current - count.older < wanted - current ? allowed - current - count.older
                                                              : wanted - current;
}

/* A mold is kept warm for as long as anybody is wanted. */
static void load_missing(struct pool *pool, uint32_t lacking, uint64_t now_ms)
{
    struct mold *mold = pool->current;

    if (mold->state != MOLD_DOWN || pool_wanted(pool) == 0 || pool->draining ||
        budget_ask(pool, lacking ? lacking : 1, true, now_ms) == 0)
        return;
    budget_content(pool);
    plan_load(pool, mold);
}

static void start_missing(struct pool *pool, uint64_t now_ms)
{
    struct mold *mold = pool->current;
    uint32_t lacking = missing(pool, pool_wanted(pool));
    uint32_t allowed;

    if (pool->gives_way)
        return;
    load_missing(pool, lacking, now_ms);
    if (lacking == 0 && mold->state != MOLD_DOWN)
        budget_content(pool);
    if (lacking == 0 || mold->state != MOLD_LOADED)
        return;
    allowed = budget_ask(pool, lacking, false, now_ms);
    if (allowed >= lacking)
        budget_content(pool);
    for (; allowed > 0 && backoff_wait_ms(&pool->backoff, now_ms) == 0 && crew_ask(pool, mold);
         allowed--)
        ;
}

/* ---- Replacing and retiring ---- */

static void go_first(struct pool *pool, uint32_t index)
{
    struct worker *worker = &pool->workers[index];

    log_warn("pool=%s worker %d is replaced (%s) and two do not fit into memory: the old one goes "
             "first, requests wait meanwhile",
             pool->settings->name, (int)worker->pid, exit_word(worker->spent));
    crew_retire(pool, index, worker->spent, staff_grace_ms(pool));
}

/* One that has served its time stays until its successor serves. */
static void replace_spent(struct pool *pool, uint64_t now_ms)
{
    struct crew_count count = crew_count(pool);
    int64_t index = find_spent(pool);

    if (index < 0 || pool->rolling || count.older > 0 || count.starting > 0 ||
        count.serving != pool_wanted(pool) || pool->current->state != MOLD_LOADED)
        return;
    if (budget_has_room(pool, now_ms))
        (void)crew_ask(pool, pool->current);
    else if (count.going == 0)
        go_first(pool, (uint32_t)index);
}

static int64_t find_idlest(const struct pool *pool, uint64_t now_ms)
{
    uint64_t longest_ms = 0;
    int64_t found = -1;

    for (uint32_t i = 0; i < size(pool); i++) {
        uint64_t idle_ms;
        if (pool->workers[i].state != WORKER_SERVING)
            continue;
        idle_ms = staff_idle_ms(pool, i, now_ms);
        if (idle_ms > longest_ms) {
            longest_ms = idle_ms;
            found = i;
        }
    }
    return found;
}

static void retire_surplus(struct pool *pool, uint64_t now_ms)
{
    struct crew_count count = crew_count(pool);
    enum exit_reason why = EXIT_NORMAL;
    int64_t index;

    if (pool->rolling || count.older > 0 || count.serving <= pool_wanted(pool))
        return;
    index = find_spent(pool);
    if (index >= 0)
        why = pool->workers[index].spent;
    else
        index = find_idlest(pool, now_ms);
    if (index < 0)
        index = crew_find_surplus(pool);
    if (index < 0)
        return;
    if (why == EXIT_NORMAL && is_expired(pool, (uint32_t)index, now_ms))
        why = EXIT_IDLE;
    crew_retire(pool, (uint32_t)index, why, staff_grace_ms(pool));
}

void staff_give_up(struct pool *pool, uint32_t index, enum exit_reason why, bool is_final)
{
    if (is_final && pool->wanted > 0)
        pool->wanted--;
    if (is_final && pool->wanted == 0) {
        pool->demanded = false;
        pool->gives_way = true;
    }
    crew_retire(pool, index, why, staff_grace_ms(pool));
}

/* Nobody is left who came from it, and nobody is wanted. A mold that was handed over stays for the first
 * request. */
static void release_mold(struct pool *pool)
{
    struct mold *mold = pool->current;

    if (crew_count(pool).there > 0 || pool->next)
        return;
    if (!pool->gives_way && (!pool->has_served || pool_wanted(pool) > 0))
        return;
    pool->gives_way = false;
    if (mold->solo || mold->state != MOLD_LOADED)
        return;
    log_info("pool=%s its application is unloaded until the next request", pool->settings->name);
    pool->has_served = false;
    mold_quit(mold);
}

void staff_plan(struct pool *pool, uint64_t now_ms)
{
    bool may_start = backoff_wait_ms(&pool->backoff, now_ms) == 0;

    if (pool->draining) {
        if (may_start && staff_has_orphans(pool))
            start_missing(pool, now_ms);
        return;
    }
    choose_number(pool, now_ms);
    if (may_start) {
        start_missing(pool, now_ms);
        replace_spent(pool, now_ms);
    }
    retire_surplus(pool, now_ms);
    release_mold(pool);
    reclaim_excess(pool, now_ms);
}

/* ---- Deadlines ---- */

/* When the first worker that may go will have been idle for long enough. */
static uint64_t expiry_ms(const struct pool *pool, uint64_t now_ms)
{
    uint64_t limit_ms = pool->settings->idle_ms;
    uint64_t due_ms = UINT64_MAX;

    if (limit_ms == 0 || pool_serving(pool) <= pool_least(pool) || pool->rolling || pool->next)
        return UINT64_MAX;
    for (uint32_t i = 0; i < size(pool); i++) {
        uint64_t idle_ms;
        if (pool->workers[i].state != WORKER_SERVING)
            continue;
        idle_ms = staff_idle_ms(pool, i, now_ms);
        due_ms = earlier(due_ms, now_ms + (idle_ms < limit_ms ? limit_ms - idle_ms : 1));
    }
    return due_ms;
}

uint64_t staff_due_ms(const struct pool *pool, uint64_t now_ms)
{
    uint32_t queued = queue_length(&pool->instance.board);
    uint32_t wanted = pool_wanted(pool);
    uint64_t due_ms = UINT64_MAX;

    if (!pool->current || pool->stopping || pool->draining)
        return UINT64_MAX;
    if (pool->waits_ms)
        due_ms = now_ms + (queued > 0 ? LOOK_MS : WAIT_MS);
    if (queued > 0 && pool_serving(pool) > 0 && wanted < pool_most(pool))
        due_ms = earlier(due_ms, now_ms + LOOK_MS);
    return earlier(due_ms, earlier(expiry_ms(pool, now_ms), reclaim_due_ms(pool, now_ms)));
}

uint64_t staff_grace_ms(const struct pool *pool)
{
    const struct config_timeouts *timeouts = &pool->config->timeouts;
    uint64_t request_ms =
        pool->settings->timeout_ms ? pool->settings->timeout_ms : timeouts->drain_ms;

    return request_ms + timeouts->stream_drain_ms + STREAM_MARGIN_MS;
}

/* SPDX-License-Identifier: MIT */
#include "pool/reclaim.h"

#include "base/clock.h"
#include "base/log.h"
#include "board/queue.h"
#include "pool/crew.h"
#include "pool/staff.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    STARVE_MS =
        1000, /* a pool without worker waits so long for idle ones; then busy ones give way */
    SETTLED_MS = 1000 /* idle, or serving, for so long before it is taken away again */
};

#define MB (UINT64_C(1) << 20)

/* How willingly a worker is given up; lower is better. */
enum tier {
    TIER_IDLE,  /* above MIN, and it does nothing */
    TIER_BUSY,  /* above MIN */
    TIER_SPARE, /* not the only one of its pool */
    TIER_NEVER
};

struct victim {
    struct pool *pool;
    uint32_t index;
    enum tier tier;
    uint64_t idle_ms;
    uint64_t served_ms;
    uint64_t bytes;
};

static struct victim look_at(struct pool *pool, uint32_t index, uint64_t now_ms)
{
    const struct worker *worker = &pool->workers[index];
    struct victim victim = {.pool = pool, .index = index, .tier = TIER_NEVER};
    uint32_t serving = pool_serving(pool);
    bool is_waiting = queue_length(&pool->instance.board) > 0;

    if (worker->state != WORKER_SERVING || pool->next || pool->rolling || pool->stopping ||
        pool->draining)
        return victim;
    victim.idle_ms = staff_idle_ms(pool, index, now_ms);
    victim.served_ms = now_ms - worker->ready_ms;
    victim.bytes = budget_bytes_of(pool, worker);
    /* The mold of a pool on demand goes with its last worker. */
    if (serving == 1 && pool_least(pool) == 0)
        victim.bytes += budget_mold_bytes(pool);
    if (serving > pool_least(pool))
        victim.tier = victim.idle_ms > 0 && !is_waiting ? TIER_IDLE : TIER_BUSY;
    else if (serving > 1)
        victim.tier = TIER_SPARE;
    return victim;
}

static bool is_better(const struct victim *a, const struct victim *b)
{
    if (a->tier != b->tier)
        return a->tier < b->tier;
    if (a->tier == TIER_IDLE)
        return a->idle_ms > b->idle_ms;
    return a->tier == TIER_BUSY ? a->served_ms > b->served_ms : a->bytes > b->bytes;
}

static void consider(struct pool *pool, uint64_t now_ms, struct victim *best)
{
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        struct victim victim = look_at(pool, i, now_ms);
        if (victim.tier != TIER_NEVER && is_better(&victim, best))
            *best = victim;
    }
}

static struct victim choose_of_all(const struct pool *pool, const struct pool *but, uint64_t now_ms)
{
    struct victim best = {.tier = TIER_NEVER};

    budget_for_each (link, pool)
        if (budget_member(link) != but)
            consider(budget_member(link), now_ms, &best);
    return best;
}

static void give_up(const struct victim *victim, const char *why)
{
    struct pool *pool = victim->pool;
    bool idle = victim->tier == TIER_IDLE;

    log_info("pool=%s worker %d (%" PRIu64 " MB) is retired: %s", pool->settings->name,
             (int)pool->workers[victim->index].pid, victim->bytes / MB, why);
    staff_give_up(pool, victim->index, idle ? EXIT_IDLE : EXIT_MEMORY, victim->tier != TIER_SPARE);
}

/* Whether a worker of that kind may go for the sake of a pool that waits. */
static bool may_take(const struct pool *pool, const struct victim *victim, bool is_first,
                     uint64_t now_ms)
{
    if (victim->tier == TIER_IDLE)
        return is_first || victim->idle_ms >= SETTLED_MS;
    return victim->tier == TIER_BUSY && is_first && pool->waits_ms &&
           now_ms - pool->waits_ms >= STARVE_MS && victim->served_ms >= SETTLED_MS;
}

void reclaim_for(struct pool *pool, uint64_t bytes, bool is_first, uint64_t now_ms)
{
    uint64_t coming = 0;
    char why[200];

    budget_for_each (link, pool)
        coming += budget_leaving(budget_member(link));
    (void)snprintf(why, sizeof why, "room is made for pool %s", pool->settings->name);
    while (coming < bytes) {
        struct victim victim = choose_of_all(pool, pool, now_ms);
        if (!may_take(pool, &victim, is_first, now_ms))
            return;
        give_up(&victim, why);
        coming += victim.bytes;
    }
}

/* Whether a pool has more than its MIN, so that it can give way sooner or later. */
static bool has_more(const struct pool *pool)
{
    uint32_t there = crew_count(pool).there;

    return there > pool_least(pool) ||
           (pool_least(pool) == 0 && pool->current && pool->current->pid != 0);
}

bool reclaim_is_possible(const struct pool *pool)
{
    budget_for_each (link, pool)
        if (budget_member(link) != pool && has_more(budget_member(link)))
            return true;
    return false;
}

void reclaim_idle(struct pool *pool, const char *why)
{
    struct victim victim = choose_of_all(pool, NULL, clock_ms());

    if (victim.tier == TIER_IDLE)
        give_up(&victim, why);
}

/* ---- Limits that are exceeded by those that are there ---- */

/* A busy one has at least served for a moment, or pools that are short of memory would only start. */
static bool is_settled(const struct victim *victim)
{
    return victim->tier == TIER_IDLE ||
           (victim->tier != TIER_NEVER && victim->served_ms >= SETTLED_MS);
}

static uint64_t staying(const struct pool *pool)
{
    return budget_used(pool) - budget_leaving(pool);
}

static void relieve_pool(struct pool *pool, uint64_t now_ms)
{
    uint64_t limit = pool->settings->memory_total;
    struct victim victim = {.tier = TIER_NEVER};
    char why[200];

    if (limit == 0 || staying(pool) <= limit)
        return;
    pool->is_over = true;
    consider(pool, now_ms, &victim);
    if (pool_serving(pool) < 2 || !is_settled(&victim))
        return;
    (void)snprintf(why, sizeof why,
                   "the pool takes %" PRIu64 " MB, more than its memory_total (%" PRIu64 " MB)",
                   staying(pool) / MB, limit / MB);
    give_up(&victim, why);
}

static void relieve_all(struct pool *pool, uint64_t now_ms)
{
    uint64_t used = 0;
    struct victim victim;
    char why[200];

    budget_for_each (link, pool)
        used += staying(budget_member(link));
    if (pool->budget->limit == 0 || used <= pool->budget->limit)
        return;
    pool->is_over = true;
    victim = choose_of_all(pool, NULL, now_ms);
    if (!is_settled(&victim))
        return;
    (void)snprintf(why, sizeof why,
                   "all pools take %" PRIu64 " MB, more than memory_total (%" PRIu64 " MB)",
                   used / MB, pool->budget->limit / MB);
    give_up(&victim, why);
}

void reclaim_excess(struct pool *pool, uint64_t now_ms)
{
    pool->is_over = false;
    relieve_pool(pool, now_ms);
    if (pool->budget)
        relieve_all(pool, now_ms);
}

uint64_t reclaim_due_ms(const struct pool *pool, uint64_t now_ms)
{
    return pool->is_over && pool_serving(pool) > pool_least(pool) ? now_ms + SETTLED_MS
                                                                  : UINT64_MAX;
}

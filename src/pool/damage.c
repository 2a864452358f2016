/* SPDX-License-Identifier: MIT */
#include "pool/damage.h"

#include "base/log.h"
#include "board/repair.h"
#include "pool/crew.h"
#include "pool/plan.h"

static bool has_process(const struct worker *worker)
{
    return worker->state == WORKER_STARTING || worker->state == WORKER_SERVING ||
           worker->state == WORKER_RETIRING || worker->state == WORKER_KILLED;
}

/* Only master writes these words, and it knows what they are. */
static bool entry_is_right(const struct pool *pool, uint32_t index)
{
    const struct worker *worker = &pool->workers[index];
    const struct board_worker *entry = &pool->instance.board.workers[index];

    return !has_process(worker) || (atomic_load(&entry->pid) == (uint32_t)worker->pid &&
                                    atomic_load(&entry->generation) == worker->generation &&
                                    board_is_live(atomic_load(&entry->life)));
}

static const char *find_damage(const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (!entry_is_right(pool, i))
            return "the entries of its workers";
    return repair_find_damage(&pool->instance.board, pool->instance.runtime);
}

void damage_look(struct pool *pool)
{
    const char *what;

    if (pool->is_damaged || pool->stopping)
        return;
    what = find_damage(pool);
    if (!what)
        return;
    log_error(
        "pool=%s its shared memory was written over (%s): all its workers are killed, it is set "
        "right, and others are started",
        pool->settings->name, what);
    pool->is_damaged = true;
    pool->options.host->on_damage(pool);
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        if (!worker_is_there(&pool->workers[i]))
            continue;
        pool->workers[i].why = EXIT_CRASH;
        crew_kill(pool, i);
    }
    plan_soon(pool);
}

bool damage_is_over(struct pool *pool)
{
    if (!pool->is_damaged)
        return true;
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (pool->workers[i].state != WORKER_EMPTY)
            return false;
    repair_board(&pool->instance.board, pool->instance.runtime);
    pool->is_damaged = false;
    log_info("pool=%s its shared memory is right again", pool->settings->name);
    return true;
}

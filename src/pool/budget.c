/* SPDX-License-Identifier: MIT */
#include "pool/budget.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/queue.h"
#include "pool/crew.h"
#include "pool/plan.h"
#include "pool/reclaim.h"
#include "pool/scale.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    READ_EVERY_MS = 200, /* the files of machine and group */
    STUCK_START_MS =
        10000,            /* a start that takes longer waits for something else than a processor */
    RESERVE_PART = 16,    /* of the memory stays free, */
    DEFAULT_PERCENT = 80, /* so much of it is for pools unless memory_total says otherwise */
    LEARN_PART = 4        /* of its mold's memory a worker is thought to change, until it reports */
};

#define MB                   (UINT64_C(1) << 20)
#define RESERVE_MAX_BYTES    (64 * MB)
#define UNKNOWN_MOLD_BYTES   (64 * MB)
#define UNKNOWN_WORKER_BYTES (16 * MB)

static const char *const bounds[] = {
    [BUDGET_NONE] = "nothing",
    [BUDGET_POOL] = "memory_total of the pool",
    [BUDGET_ALL] = "memory_total of all pools",
    [BUDGET_MACHINE] = "the memory that machine and control group have left",
    [BUDGET_PRESSURE] = "memory pressure",
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- The decision ---- */

static void bound(uint64_t count, enum budget_bound what, uint32_t *count_so_far,
                  enum budget_bound *bound_so_far)
{
    if (count >= *count_so_far)
        return;
    *count_so_far = (uint32_t)count;
    *bound_so_far = what;
}

uint32_t budget_answer(const struct budget_question *question, enum budget_bound *ret_bound)
{
    const struct budget_question *q = question;
    uint64_t need = q->need ? q->need : 1;
    uint32_t count = UINT32_MAX;

    *ret_bound = BUDGET_NONE;
    if (q->pool_limit && !q->is_first)
        bound(above(q->pool_limit, q->pool_used) / need, BUDGET_POOL, &count, ret_bound);
    if (q->all_limit)
        bound(above(q->all_limit, q->all_used) / need, BUDGET_ALL, &count, ret_bound);
    if (q->left != UINT64_MAX)
        bound(above(q->left, q->reserve) / need, BUDGET_MACHINE, &count, ret_bound);
    if (q->pressure >= CAPACITY_PRESSURE_HIGH && !q->is_first)
        bound(0, BUDGET_PRESSURE, &count, ret_bound);
    return count == 0 && q->is_owed ? 1 : count;
}

/* ---- What there is ---- */

struct pool *budget_member(struct list *link)
{
    return CONTAINER_OF(link, struct pool, member);
}

/* What molds take as far as is known from other pools. */
static uint64_t known_mold_bytes(const struct pool *pool)
{
    uint64_t largest = 0;

    budget_for_each (link, pool)
        largest = larger(largest, budget_member(link)->mold_bytes);
    return largest ? largest : UNKNOWN_MOLD_BYTES;
}

uint64_t budget_mold_bytes(const struct pool *pool)
{
    if (pool->current && pool->current->solo)
        return 0;
    return pool->mold_bytes ? pool->mold_bytes : known_mold_bytes(pool);
}

uint64_t budget_worker_bytes(const struct pool *pool)
{
    if (pool->worker_bytes)
        return pool->worker_bytes;
    if (pool->mold_bytes && pool->current && pool->current->preloaded)
        return larger(pool->mold_bytes / LEARN_PART, UNKNOWN_WORKER_BYTES / 4);
    return pool->settings->preload == CONFIG_PRELOAD_FALSE ? known_mold_bytes(pool)
                                                           : UNKNOWN_WORKER_BYTES;
}

static uint64_t bytes_of_mold(const struct pool *pool, const struct mold *mold)
{
    if (mold->solo || mold->pid == 0)
        return 0;
    return mold->private_bytes ? mold->private_bytes : budget_mold_bytes(pool);
}

uint64_t budget_bytes_of(const struct pool *pool, const struct worker *worker)
{
    if (!worker_is_there(worker))
        return 0;
    /* A fresh one will grow to what its like takes. */
    return worker->is_grown ? worker->private_bytes
                            : larger(worker->private_bytes, budget_worker_bytes(pool));
}

uint64_t budget_used(const struct pool *pool)
{
    uint64_t sum = 0;

    list_for_each (link, &pool->molds)
        sum += bytes_of_mold(pool, CONTAINER_OF(link, struct mold, link));
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        sum += budget_bytes_of(pool, &pool->workers[i]);
    return sum;
}

static bool is_going(const struct worker *worker)
{
    return worker->state == WORKER_RETIRING || worker->state == WORKER_KILLED;
}

static bool is_coming(const struct worker *worker)
{
    return worker->state == WORKER_ASKED || worker->state == WORKER_STARTING;
}

uint64_t budget_leaving(const struct pool *pool)
{
    bool is_ending = pool_serving(pool) == 0 && (pool->gives_way || pool_wanted(pool) == 0);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (is_going(&pool->workers[i]))
            sum += budget_bytes_of(pool, &pool->workers[i]);
    list_for_each (link, &pool->molds) {
        const struct mold *mold = CONTAINER_OF(link, struct mold, link);
        if (is_ending || mold->state == MOLD_LEAVING)
            sum += bytes_of_mold(pool, mold);
    }
    return sum;
}

/* Bytes of starts that the system does not know of yet. */
static uint64_t starting_bytes(const struct pool *pool)
{
    uint64_t sum = 0;

    list_for_each (link, &pool->molds) {
        const struct mold *mold = CONTAINER_OF(link, struct mold, link);
        if (mold->state == MOLD_LOADING)
            sum += bytes_of_mold(pool, mold);
    }
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (is_coming(&pool->workers[i]))
            sum += budget_bytes_of(pool, &pool->workers[i]);
    return sum;
}

static uint32_t count_starts(const struct pool *pool, uint64_t now_ms)
{
    uint32_t count = 0;

    list_for_each (link, &pool->molds) {
        const struct mold *mold = CONTAINER_OF(link, struct mold, link);
        count += mold->state == MOLD_LOADING && now_ms < mold->begun_ms + STUCK_START_MS;
    }
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        count +=
            is_coming(&pool->workers[i]) && now_ms < pool->workers[i].since_ms + STUCK_START_MS;
    return count;
}

uint32_t budget_starting(const struct pool *pool)
{
    uint64_t now_ms = clock_ms();
    uint32_t count = 0;

    if (!pool->budget)
        return count_starts(pool, now_ms);
    budget_for_each (link, pool)
        count += count_starts(budget_member(link), now_ms);
    return count;
}

/* ---- Asking ---- */

static const struct capacity *read_capacity(struct budget *budget, uint64_t now_ms)
{
    if (budget->read_ms == 0 || now_ms >= budget->read_ms + READ_EVERY_MS) {
        capacity_read("", budget->cpus, &budget->capacity);
        budget->read_ms = now_ms;
    }
    return &budget->capacity;
}

static uint64_t reserve(const struct capacity *capacity)
{
    uint64_t part = capacity_memory(capacity) / RESERVE_PART;

    return part < RESERVE_MAX_BYTES ? part : RESERVE_MAX_BYTES;
}

static bool is_first(const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (pool->workers[i].state == WORKER_SERVING || is_coming(&pool->workers[i]))
            return false;
    return true;
}

/* Everything that the other pools take, and what those get first that have waited for longer. */
static uint64_t used_by_all(const struct pool *pool)
{
    uint64_t sum = 0;

    budget_for_each (link, pool) {
        const struct pool *other = budget_member(link);
        sum += budget_used(other);
        if (other != pool && other->waits_ms &&
            (pool->waits_ms == 0 || other->waits_ms < pool->waits_ms))
            sum += other->waits_bytes;
    }
    return sum;
}

static bool is_any_leaving(const struct pool *pool)
{
    budget_for_each (link, pool)
        if (budget_leaving(budget_member(link)) > 0)
            return true;
    return false;
}

/* A pool with a MIN has a worker, whatever it takes; so has the only pool that runs, and one whose mold is
 * loaded: that is the larger part already, and would be in the way of those that wait. But what leaves is
 * waited for. */
static bool is_owed(const struct pool *pool, bool with_mold, const struct budget_question *question)
{
    return !is_any_leaving(pool) &&
           (pool_least(pool) > 0 || !with_mold || question->all_used == question->pool_used);
}

static struct budget_question make_question(struct pool *pool, bool with_mold, uint64_t now_ms)
{
    const struct capacity *capacity = read_capacity(pool->budget, now_ms);
    struct budget_question question = {
        .need = budget_worker_bytes(pool) + (with_mold ? budget_mold_bytes(pool) : 0),
        .pool_used = budget_used(pool),
        .pool_limit = pool->settings->memory_total,
        .all_used = used_by_all(pool),
        .all_limit = pool->budget->limit,
        .left = capacity->memory_headroom,
        .reserve = reserve(capacity),
        .pressure = capacity->pressure,
        .is_first = is_first(pool),
    };

    if (question.left != UINT64_MAX)
        budget_for_each (link, pool)
            question.left = above(question.left, starting_bytes(budget_member(link)));
    question.is_owed = question.is_first && is_owed(pool, with_mold, &question);
    return question;
}

static uint64_t missing_bytes(const struct budget_question *question)
{
    uint64_t by_limit =
        question->all_limit ? above(question->all_used + question->need, question->all_limit) : 0;
    uint64_t by_machine = question->left == UINT64_MAX
                              ? 0
                              : above(question->need + question->reserve, question->left);

    return larger(by_limit, by_machine);
}

static void begin_wait(struct pool *pool, uint64_t now_ms)
{
    if (pool->waits_ms == 0)
        pool->waits_ms = now_ms ? now_ms : 1;
}

static void note_wait(struct pool *pool, const struct budget_question *question,
                      enum budget_bound bound, uint64_t now_ms)
{
    pool->waits_bytes = question->need;
    begin_wait(pool, now_ms);
    if (pool->bound == bound)
        return;
    pool->bound = bound;
    log_info("pool=%s another worker (%" PRIu64 " MB) does not fit: %s (pool %" PRIu64
             " MB of %" PRIu64 ", all pools %" PRIu64 " MB of %" PRIu64 ", left %" PRIu64
             " MB, pressure %u.%02u %%); %s",
             pool->settings->name, question->need / MB, bounds[bound], question->pool_used / MB,
             question->pool_limit / MB, question->all_used / MB, question->all_limit / MB,
             question->left == UINT64_MAX ? 0 : question->left / MB, question->pressure / 100,
             question->pressure % 100,
             question->is_first ? "requests wait until others have given way"
                                : "requests wait for the workers that are there");
}

/* How many fit; 0: others were asked to give way. */
static uint32_t find_room(struct pool *pool, bool with_mold, uint64_t now_ms)
{
    struct budget_question question = make_question(pool, with_mold, now_ms);
    enum budget_bound bound;
    uint32_t count = budget_answer(&question, &bound);

    if (count > 0)
        return count;
    note_wait(pool, &question, bound, now_ms);
    if (bound == BUDGET_POOL || bound == BUDGET_PRESSURE)
        return 0;
    reclaim_for(pool, missing_bytes(&question), question.is_first, now_ms);
    if (!question.is_first || bound != BUDGET_ALL || is_any_leaving(pool) ||
        reclaim_is_possible(pool))
        return 0;
    log_warn("pool=%s is started although memory_total of all pools is used up: all others are at "
             "their MIN",
             pool->settings->name);
    return 1;
}

uint32_t budget_ask(struct pool *pool, uint32_t missing, bool with_mold, uint64_t now_ms)
{
    struct scale_starts starts = {.missing = missing,
                                  .starting = budget_starting(pool),
                                  .cpus = pool->max_starts,
                                  .room = UINT32_MAX};

    if (scale_start(&starts) == 0) {
        begin_wait(pool, now_ms);
        return 0;
    }
    if (pool->budget)
        starts.room = find_room(pool, with_mold, now_ms);
    return scale_start(&starts);
}

bool budget_has_room(struct pool *pool, uint64_t now_ms)
{
    struct budget_question question;
    enum budget_bound bound;

    if (!pool->budget)
        return true;
    question = make_question(pool, false, now_ms);
    return budget_answer(&question, &bound) > 0;
}

void budget_content(struct pool *pool)
{
    pool->waits_ms = 0;
    pool->waits_bytes = 0;
    pool->bound = BUDGET_NONE;
}

/* Those that have waited longest look first. */
void budget_changed(struct pool *pool)
{
    uint64_t after_ms = 0;

    for (;;) {
        struct pool *next = NULL;
        budget_for_each (link, pool) {
            struct pool *other = budget_member(link);
            if (other->waits_ms > after_ms && (!next || other->waits_ms < next->waits_ms))
                next = other;
        }
        if (!next)
            return;
        after_ms = next->waits_ms;
        budget_for_each (link, pool)
            if (budget_member(link)->waits_ms == after_ms)
                plan_soon(budget_member(link));
    }
}

/* ---- Life ---- */

/* The kernel says that memory was waited for, a tenth of the last two seconds. */
static void on_pressure(struct watch *watch, uint32_t events)
{
    struct budget *budget = CONTAINER_OF(watch, struct budget, watch);

    if (events & EPOLLERR) {
        loop_unwatch(watch);
        fd_close(&budget->pressure_fd);
        return;
    }
    budget->read_ms = 0;
    if (!list_is_empty(&budget->pools))
        reclaim_idle(budget_member(budget->pools.next), "the machine is short of memory");
}

/* Where the kernel does not have it, or does not allow it, it is looked at before every start only. */
static void watch_pressure(struct budget *budget, struct loop *loop)
{
    static const char trigger[] = "some 200000 2000000";
    int fd = open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (fd == -1)
        return;
    if (write(fd, trigger, sizeof trigger) == -1 ||
        loop_watch(loop, &budget->watch, fd, EPOLLPRI, on_pressure) != 0) {
        (void)close(fd);
        return;
    }
    budget->pressure_fd = fd;
}

void budget_limit(struct budget *budget, uint64_t memory_total)
{
    budget->limit =
        memory_total ? memory_total : capacity_memory(&budget->capacity) / 100 * DEFAULT_PERCENT;
}

void budget_open(struct budget *budget, struct loop *loop, uint64_t memory_total)
{
    *budget = (struct budget){.cpus = capacity_affinity(), .pressure_fd = -1};
    list_init(&budget->pools);
    capacity_read("", budget->cpus, &budget->capacity);
    budget->limit =
        memory_total ? memory_total : capacity_memory(&budget->capacity) / 100 * DEFAULT_PERCENT;
    watch_pressure(budget, loop);
}

void budget_close(struct budget *budget)
{
    if (budget->pressure_fd < 0)
        return;
    loop_unwatch(&budget->watch);
    fd_close(&budget->pressure_fd);
}

void budget_join(struct budget *budget, struct pool *pool)
{
    pool->budget = budget;
    if (budget)
        list_push_back(&budget->pools, &pool->member);
}

void budget_leave(struct pool *pool)
{
    if (pool->budget)
        list_remove(&pool->member);
    pool->budget = NULL;
}

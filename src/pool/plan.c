/* SPDX-License-Identifier: MIT */
#include "pool/plan.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "pool/crew.h"
#include "pool/damage.h"
#include "pool/spawn.h"
#include "pool/staff.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    FAILED_MS = 5000, /* a process that has said `failed` has this long to leave */
    ROLL_TRIES = 3    /* of a worker in a row that fail end a restart whose first worker serves */
};

void plan_soon(struct pool *pool)
{
    loop_defer(pool->options.loop, &pool->plan_task);
}

struct mold *pool_find_mold(const struct pool *pool, uint32_t generation)
{
    list_for_each (link, &pool->molds) {
        struct mold *mold = CONTAINER_OF(link, struct mold, link);
        if (mold->generation == generation)
            return mold;
    }
    return NULL;
}

static uint32_t noise(void)
{
    uint32_t value = 0;

    /* Without randomness the pauses are the same each time, which is no harm. */
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) == -1)
        return 0;
    return value;
}

static struct mold *add_mold(struct pool *pool)
{
    struct mold *mold = mold_new(++pool->generation, pool->config->development);

    list_push_back(&pool->molds, &mold->link);
    return mold;
}

/* Ends a generation: its process is told to leave, and is forgotten when it has. */
static void drop_mold(struct mold *mold)
{
    mold_quit(mold);
    if (mold->pid == 0)
        mold_free(mold);
}

static void tell_start(struct pool *pool, const char *failure)
{
    if (pool->told_start)
        return;
    pool->told_start = true;
    pool->options.host->on_started(pool, failure);
}

/* The restart under way is over, for better or worse: failure says what was left, and why. */
static void end_restart(struct pool *pool, const char *failure)
{
    uint32_t ticket = pool->restarts;

    pool->rolling = false;
    if (pool->restart_again) {
        pool->restart_again = false;
        pool->restart_due = true;
        pool->restarts++;
    }
    if (failure)
        log_error("pool=%s restart failed, %s", pool->settings->name, failure);
    else
        log_info("pool=%s restarted: generation=%u release=%s", pool->settings->name,
                 pool->current->generation, pool->current->release);
    pool->options.host->on_restarted(pool, ticket, failure);
    plan_soon(pool);
}

static void kill_generation(struct pool *pool, uint32_t generation)
{
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (worker_is_there(&pool->workers[i]) && pool->workers[i].generation == generation)
            crew_kill(pool, i);
}

static void keep_former(struct pool *pool, const char *reason)
{
    char text[POOL_ERROR_BYTES + 100];

    (void)snprintf(text, sizeof text, "the former release goes on: %s", reason);
    end_restart(pool, text);
}

static void abort_restart(struct pool *pool, const char *reason)
{
    struct mold *mold = pool->next;

    pool->next = NULL;
    kill_generation(pool, mold->generation);
    drop_mold(mold);
    keep_former(pool, reason);
}

void plan_failed(struct pool *pool, struct mold *mold, const char *reason)
{
    char text[POOL_ERROR_BYTES];

    (void)snprintf(text, sizeof text, "%s", reason);
    if (pool->stopping || !mold)
        return;
    if (mold == pool->next) {
        abort_restart(pool, text);
        return;
    }
    backoff_fail(&pool->backoff, clock_ms(), noise());
    /* A solo generation is resolved anew for its next try. */
    if (mold->solo)
        mold->state = MOLD_DOWN;
    if (pool->draining)
        return;
    memcpy(pool->error, text, sizeof text);
    if (pool->told_start)
        log_error("pool=%s %s; next try in %.1f s", pool->settings->name, text,
                  (double)pool_wait_ms(pool) / 1000);
    tell_start(pool, text);
    plan_soon(pool);
}

void plan_serves(struct pool *pool, uint32_t generation)
{
    struct mold *former = pool->current;

    if (pool->next && pool->next->generation == generation) {
        pool->current = pool->next;
        pool->next = NULL;
        pool->rolling = true;
        pool->roll_deadline_ms =
            clock_ms() + pool->settings->start_timeout_ms * (pool_wanted(pool) + 1);
        pool->backoff = (struct backoff){.failures = 0};
        if (former)
            drop_mold(former);
    }
    if (!pool->current || pool->current->generation != generation)
        return;
    backoff_succeed(&pool->backoff);
    pool->error[0] = '\0';
    tell_start(pool, NULL);
}

void plan_excused(struct pool *pool)
{
    tell_start(pool, NULL);
}

void plan_changed(struct pool *pool, struct mold *mold)
{
    if (pool->stopping || !mold)
        return;
    log_info("pool=%s the code has changed, it is loaded again", pool->settings->name);
    pool->error[0] = '\0';
    if (mold->solo)
        mold->state = MOLD_DOWN;
}

/* It is loaded from now on; a solo one has nothing to load. */
static void begin_life(const struct pool *pool, struct mold *mold)
{
    mold->state = mold->solo ? MOLD_LOADED : MOLD_LOADING;
    mold->begun_ms = mold->loaded_ms = clock_ms();
    mold->deadline_ms = mold->solo ? 0 : mold->begun_ms + pool->settings->start_timeout_ms;
}

void plan_load(struct pool *pool, struct mold *mold)
{
    struct faults faults = {.size = 0};
    char reason[1024];
    int result = mold_prepare(mold, pool, &faults);

    free(mold->failure);
    mold->failure = NULL;
    if (result == 0 && !mold->solo)
        result = mold_exec(mold, pool, "mold", UINT32_MAX, &mold->pid, &mold->control, &faults);
    if (result != 0) {
        (void)fault_format(&faults.items[0], reason, sizeof reason);
        faults_done(&faults);
        plan_failed(pool, mold, reason);
        return;
    }
    begin_life(pool, mold);
}

void plan_mold_ended(struct pool *pool, struct mold *mold, int wait_status)
{
    enum mold_state was = mold->state;
    uint64_t now_ms = clock_ms();
    char reason[POOL_ERROR_BYTES];
    char how[100];

    mold->pid = 0;
    mold->state = MOLD_DOWN;
    mold->deadline_ms = 0;
    fd_close(&mold->control);
    crew_forget_asked(pool, mold->generation);
    budget_changed(pool);
    plan_soon(pool);
    (void)exit_describe(wait_status, how, sizeof how);
    if (was == MOLD_LEAVING || pool->stopping || pool->draining) {
        if (mold != pool->current && mold != pool->next)
            mold_free(mold);
        return;
    }
    if (was == MOLD_LOADED) {
        log_error("pool=%s mold of generation %u %s; it is loaded again, workers go on",
                  pool->settings->name, mold->generation, how);
        backoff_die(&pool->backoff, now_ms, now_ms - mold->loaded_ms, 3);
        if (mold == pool->next)
            plan_failed(pool, mold, "its mold ended");
        return;
    }
    if (mold->failure)
        (void)snprintf(reason, sizeof reason, "%s", mold->failure);
    else
        (void)snprintf(reason, sizeof reason, "the application's process %s while it loaded", how);
    plan_failed(pool, mold, reason);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void expire_mold(struct pool *pool, struct mold *mold)
{
    char reason[100];

    mold->deadline_ms = 0;
    if (mold->state == MOLD_LOADING && !mold->failure) {
        (void)snprintf(reason, sizeof reason, "not loaded within start_timeout (%.0f s)",
                       (double)pool->settings->start_timeout_ms / 1000);
        mold->failure = must_copy(reason);
    }
    (void)spawn_signal(mold->pid, SIGKILL);
}

static uint64_t check_molds(struct pool *pool, uint64_t now_ms)
{
    uint64_t next_ms = UINT64_MAX;

    list_for_each (link, &pool->molds) {
        struct mold *mold = CONTAINER_OF(link, struct mold, link);
        if (mold->deadline_ms && mold->deadline_ms <= now_ms)
            expire_mold(pool, mold);
        if (mold->deadline_ms)
            next_ms = earlier(next_ms, mold->deadline_ms);
    }
    return next_ms;
}

/* On demand, and nobody has asked. */
static bool is_down(const struct pool *pool)
{
    return pool_wanted(pool) == 0 && pool->current->state == MOLD_DOWN &&
           crew_count(pool).there == 0;
}

/* Without processes there is nothing to roll: the first one will come from the release of now. */
static void renew(struct pool *pool)
{
    struct mold *mold = add_mold(pool);
    struct mold *former = pool->current;
    struct faults faults = {.size = 0};
    char reason[1024];

    if (mold_prepare(mold, pool, &faults) == 0) {
        pool->current = mold;
        mold_free(former);
        end_restart(pool, NULL);
        return;
    }
    (void)fault_format(&faults.items[0], reason, sizeof reason);
    faults_done(&faults);
    mold_free(mold);
    keep_former(pool, reason);
}

/* Loads the next generation and tries one worker of it. */
static void plan_restart(struct pool *pool)
{
    struct mold *mold;

    if (pool->restart_due && !pool->next && !pool->rolling) {
        pool->restart_due = false;
        if (is_down(pool)) {
            renew(pool);
            return;
        }
        pool->next = add_mold(pool);
        log_info("pool=%s restart: generation %u is being loaded", pool->settings->name,
                 pool->next->generation);
        plan_load(pool, pool->next);
    }
    mold = pool->next;
    if (mold && mold->state == MOLD_LOADED && crew_count(pool).trial == 0)
        (void)crew_ask(pool, mold);
}

/* The new generation serves, and stays; what is missing of it is tried on, old workers go on until then. */
static void give_up_roll(struct pool *pool)
{
    char text[POOL_ERROR_BYTES + 100];

    (void)snprintf(text, sizeof text, "generation %u serves, but not all of its workers start: %s",
                   pool->current->generation,
                   pool->error[0] ? pool->error : "they do not become ready");
    end_restart(pool, text);
}

/* A new worker is wanted in place of an old one, and memory has no room for both. */
static bool must_go_first(struct pool *pool, const struct crew_count *count, uint64_t now_ms)
{
    uint32_t wanted = pool_wanted(pool);

    if (!pool->rolling || count->starting > 0 || count->serving >= wanted ||
        count->serving + count->older < wanted || count->going > 0 || budget_has_room(pool, now_ms))
        return false;
    log_warn("pool=%s restart: two workers do not fit into memory: an old one goes first, requests "
             "wait meanwhile",
             pool->settings->name);
    return true;
}

/* One old worker goes when a new one has come in its place. */
static void plan_roll(struct pool *pool, uint64_t now_ms)
{
    struct crew_count count = crew_count(pool);
    uint32_t wanted = pool_wanted(pool);

    if (count.older &&
        (count.serving + count.older > wanted || must_go_first(pool, &count, now_ms))) {
        int64_t index = crew_find_older(pool);
        if (index >= 0)
            crew_retire(pool, (uint32_t)index, EXIT_NORMAL, staff_grace_ms(pool));
        count = crew_count(pool);
    }
    if (!pool->rolling)
        return;
    if (count.older == 0 && count.serving >= wanted)
        end_restart(pool, NULL);
    else if (now_ms >= pool->roll_deadline_ms || pool->backoff.failures >= ROLL_TRIES)
        give_up_roll(pool);
}

static enum pool_state find_state(const struct pool *pool)
{
    uint32_t serving = pool_serving(pool);

    if (pool->stopping || pool->draining)
        return POOL_DRAINING;
    if (pool->next || pool->rolling || pool->restart_due)
        return POOL_RESTARTING;
    if (serving == 0 && pool_wanted(pool) == 0)
        return POOL_DOWN;
    if (serving == 0)
        return pool->error[0] ? POOL_CRASHING : POOL_STARTING;
    return pool->error[0] ? POOL_DEGRADED : POOL_UP;
}

static void settle_state(struct pool *pool)
{
    enum pool_state state = find_state(pool);
    uint32_t serving = pool_serving(pool);

    if (state == pool->state && state != POOL_CRASHING && (serving > 0) == pool->told_serving)
        return;
    /* Where nobody serves there is nothing to drain: a start that failed, or a stop at once. */
    if (state != pool->state && (state != POOL_DRAINING || serving > 0))
        log_info("pool=%s state: %s", pool->settings->name, pool_state_word(state));
    pool->state = state;
    pool->told_serving = serving > 0;
    pool->options.host->on_state(pool);
}

static void plan_end(struct pool *pool)
{
    list_for_each (link, &pool->molds)
        if (CONTAINER_OF(link, struct mold, link)->pid)
            return;
    if (crew_count(pool).there > 0 || pool->told_empty)
        return;
    pool->told_empty = true;
    pool->options.host->on_empty(pool);
}

static void arm(struct pool *pool, uint64_t due_ms)
{
    uint64_t now_ms = clock_ms();

    if (due_ms == UINT64_MAX)
        timer_stop(&pool->timer);
    else
        timer_set(pool->options.loop, &pool->timer, due_ms > now_ms ? due_ms - now_ms : 0,
                  plan_on_timer);
}

static void run_plan(struct pool *pool)
{
    uint64_t now_ms = clock_ms();
    uint64_t due_ms;

    if (pool->current && !pool->stopping && !pool->draining) {
        plan_restart(pool);
        plan_roll(pool, now_ms);
    }
    if (pool->current && !pool->stopping && damage_is_over(pool))
        staff_plan(pool, now_ms);
    due_ms = earlier(check_molds(pool, now_ms), crew_check(pool, now_ms));
    if (backoff_wait_ms(&pool->backoff, now_ms) > 0 && !pool->stopping)
        due_ms = earlier(due_ms, pool->backoff.until_ms);
    if (pool->rolling)
        due_ms = earlier(due_ms, pool->roll_deadline_ms);
    if (backoff_wait_ms(&pool->backoff, now_ms) == 0)
        due_ms = earlier(due_ms, staff_due_ms(pool, now_ms));
    settle_state(pool);
    arm(pool, due_ms);
    if (pool->stopping)
        plan_end(pool);
}

void plan_on_task(struct task *task)
{
    run_plan(CONTAINER_OF(task, struct pool, plan_task));
}

void plan_on_timer(struct timer *timer)
{
    run_plan(CONTAINER_OF(timer, struct pool, timer));
}

uint64_t pool_wait_ms(const struct pool *pool)
{
    return backoff_wait_ms(&pool->backoff, clock_ms());
}

static int take_handed(struct pool *pool, struct mold *mold, struct faults *faults)
{
    mold->solo = false;
    mold->pid = pool->options.handed_pid;
    mold->control = pool->options.handed_control;
    (void)fd_set_nonblocking(mold->control);
    if (mold_greet(mold, pool, "mold", UINT32_MAX, mold->control) == 0)
        return 0;
    faults_add(faults, NULL, 0, 0, pool->settings->name,
               "the process that has loaded the application is gone");
    return -1;
}

/* The first generation, by a process that has loaded the application already or by a new one. */
int pool_start(struct pool *pool, struct faults *faults)
{
    struct mold *mold = add_mold(pool);
    bool is_wanted = pool_wanted(pool) > 0;
    /* With many pools some have to wait for a processor; the plan will load them. */
    bool may_load = is_wanted && budget_starting(pool) < pool->max_starts;
    int result;

    pool->current = mold;
    result = mold_prepare(mold, pool, faults);
    if (result == 0 && pool->options.handed_pid)
        result = take_handed(pool, mold, faults);
    else if (result == 0 && may_load && !mold->solo)
        result = mold_exec(mold, pool, "mold", UINT32_MAX, &mold->pid, &mold->control, faults);
    if (result != 0)
        return -1;
    if ((is_wanted && mold->solo) || mold->pid)
        begin_life(pool, mold);
    /* On demand: what can be checked without loading it is right. */
    if (!is_wanted)
        tell_start(pool, NULL);
    plan_soon(pool);
    return 0;
}

void pool_fail_start(struct pool *pool, const struct fault *fault)
{
    char reason[POOL_ERROR_BYTES];

    (void)fault_format(fault, reason, sizeof reason);
    plan_failed(pool, pool->current, reason);
}

void plan_shorten(struct mold *mold)
{
    mold->deadline_ms = clock_ms() + FAILED_MS;
}

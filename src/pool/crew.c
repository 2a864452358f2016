/* SPDX-License-Identifier: MIT */
#include "pool/crew.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/audit.h"
#include "pool/autopsy.h"
#include "pool/damage.h"
#include "pool/plan.h"
#include "pool/question.h"
#include "pool/release.h"
#include "pool/spawn.h"
#include "pool/staff.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    LATE_LOOK_MS = 50, /* how often a late worker's other requests are looked at */
    STOPPED_MS = 500,  /* so long it must be stopped before it is given up */
    FORK_MS =
        5000 /* Ruby itself tries a fork that fails again and again: after so long we say so */
};

static uint32_t size(const struct pool *pool)
{
    return pool->instance.board.shape.workers;
}

struct crew_count crew_count(const struct pool *pool)
{
    struct crew_count count = {.there = 0};

    for (uint32_t i = 0; i < size(pool); i++) {
        const struct worker *worker = &pool->workers[i];
        bool coming = worker->state == WORKER_ASKED || worker->state == WORKER_STARTING;
        bool serving = worker->state == WORKER_SERVING;
        count.there += worker_is_there(worker);
        count.going += worker->state == WORKER_RETIRING || worker->state == WORKER_KILLED;
        if (!coming && !serving)
            continue;
        if (pool->next && worker->generation == pool->next->generation)
            count.trial++;
        else if (!pool->current || worker->generation != pool->current->generation)
            count.older++;
        else if (serving)
            count.serving++;
        else
            count.starting++;
    }
    return count;
}

static int64_t find_empty(const struct pool *pool)
{
    for (uint32_t i = 0; i < size(pool); i++)
        if (pool->workers[i].state == WORKER_EMPTY)
            return i;
    return -1;
}

static bool start_solo(struct pool *pool, struct mold *mold, uint32_t index)
{
    struct worker *worker = &pool->workers[index];
    struct faults faults = {.size = 0};
    char reason[1024];
    pid_t pid;

    if (mold_exec(mold, pool, "worker", index, &pid, &worker->control, &faults) == 0) {
        crew_forked(pool, index, pid);
        return true;
    }
    (void)fault_format(&faults.items[0], reason, sizeof reason);
    faults_done(&faults);
    crew_refused(pool, index, reason);
    return false;
}

static uint64_t start_deadline_ms(const struct pool *pool, const struct worker *worker)
{
    return worker->since_ms + pool->settings->start_timeout_ms;
}

static uint64_t fork_deadline_ms(const struct pool *pool, const struct worker *worker)
{
    uint64_t limit_ms = pool->settings->start_timeout_ms;

    return worker->since_ms + (limit_ms < FORK_MS ? limit_ms : FORK_MS);
}

bool crew_ask(struct pool *pool, struct mold *mold)
{
    int64_t index = find_empty(pool);
    struct worker *worker;
    int result;

    if (index < 0)
        return false;
    worker = &pool->workers[index];
    release_note(pool, mold);
    *worker = (struct worker){
        .generation = mold->generation, .control = -1, .why = EXIT_NONE, .spent = EXIT_NONE};
    worker->since_ms = clock_ms();
    worker->deadline_ms = fork_deadline_ms(pool, worker);
    (void)worker_step(worker, WORKER_ASK);
    if (mold->solo)
        return start_solo(pool, mold, (uint32_t)index);
    result = mold_ask_fork(mold, (uint32_t)index);
    if (result != 0)
        crew_refused(pool, (uint32_t)index, strerror(-result));
    return result == 0;
}

/* The wait status of a process that ended before we heard that it is a worker; false if it did not. */
static bool take_lost(struct pool *pool, pid_t pid, int *ret_status)
{
    for (unsigned i = 0; i < POOL_LOST; i++) {
        if (pool->lost[i].pid != pid)
            continue;
        *ret_status = pool->lost[i].wait_status;
        pool->lost[i].pid = 0;
        return true;
    }
    return false;
}

void crew_forked(struct pool *pool, uint32_t index, pid_t pid)
{
    struct worker *worker = &pool->workers[index];
    int status;

    if (!worker_step(worker, WORKER_FORK)) {
        log_warn("pool=%s process %d says it is worker %u, which nobody asked for",
                 pool->settings->name, (int)pid, index);
        return;
    }
    worker->pid = pid;
    if (worker->state == WORKER_STARTING)
        worker->deadline_ms = start_deadline_ms(pool, worker);
    instance_begin(&pool->instance, index, pid, worker->generation);
    if (take_lost(pool, pid, &status))
        (void)crew_ended(pool, pid, status);
    else if (worker->state == WORKER_KILLED)
        (void)spawn_signal(pid, SIGKILL);
    plan_soon(pool);
}

void crew_refused(struct pool *pool, uint32_t index, const char *message)
{
    struct worker *worker = &pool->workers[index];
    char reason[1200];

    if (!worker_step(worker, WORKER_REFUSE))
        return;
    (void)snprintf(reason, sizeof reason, "cannot start a worker: %s", message);
    plan_failed(pool, pool_find_mold(pool, worker->generation), reason);
    plan_soon(pool);
}

void crew_forget_asked(struct pool *pool, uint32_t generation)
{
    for (uint32_t i = 0; i < size(pool); i++)
        if (pool->workers[i].generation == generation && pool->workers[i].pid == 0)
            (void)worker_step(&pool->workers[i], WORKER_REFUSE);
}

void crew_ready(struct pool *pool, uint32_t index, pid_t pid)
{
    struct worker *worker = &pool->workers[index];

    if (worker->pid != pid || !worker_step(worker, WORKER_READY))
        return;
    if (worker->state != WORKER_SERVING)
        return;
    worker->ready_ms = clock_ms();
    if (worker->since_ms <= pool->reopened_ms)
        (void)spawn_signal(pid, SIGHUP);
    worker->deadline_ms = 0;
    instance_serve(&pool->instance, index);
    staff_started(pool, index);
    if (worker->is_excuse) {
        log_warn(
            "pool=%s worker %d answers every request with the exception until the code changes",
            pool->settings->name, (int)pid);
        plan_excused(pool);
    } else {
        log_info("pool=%s worker %d serves: generation=%u started_in=%.1fs", pool->settings->name,
                 (int)pid, worker->generation,
                 (double)(worker->ready_ms - worker->since_ms) / 1000);
        plan_serves(pool, worker->generation);
    }
    pool->options.host->on_ready(pool, index);
    plan_soon(pool);
}

void crew_excuse(struct pool *pool, uint32_t index, uint32_t generation)
{
    struct worker *worker = &pool->workers[index];

    if (worker->state == WORKER_STARTING && worker->generation == generation)
        worker->is_excuse = true;
}

void crew_retire(struct pool *pool, uint32_t index, enum exit_reason why, uint64_t grace_ms)
{
    struct worker *worker = &pool->workers[index];
    uint64_t deadline_ms = clock_ms() + grace_ms;

    if (worker->why == EXIT_NONE)
        worker->why = why;
    if (worker->state == WORKER_RETIRING && deadline_ms < worker->deadline_ms)
        worker->deadline_ms = deadline_ms;
    if (!worker_step(worker, WORKER_RETIRE))
        return;
    worker->deadline_ms = deadline_ms;
    if (worker->pid)
        instance_retire(&pool->instance, index);
    plan_soon(pool);
}

void crew_kill(struct pool *pool, uint32_t index)
{
    struct worker *worker = &pool->workers[index];

    if (worker->why == EXIT_NONE)
        worker->why = EXIT_NORMAL;
    if (!worker_step(worker, WORKER_KILL)) {
        (void)worker_step(worker, WORKER_RETIRE);
        return;
    }
    worker->deadline_ms = 0;
    (void)spawn_signal(worker->pid, SIGKILL);
}

/* Whose memory was at its end when the kernel killed a worker. */
static const char *explain_starvation(char *out, size_t room)
{
    struct capacity capacity;

    capacity_read("", capacity_affinity(), &capacity);
    if (capacity.memory_limit)
        (void)snprintf(out, room,
                       "; the kernel was out of memory: the control group has a limit of %" PRIu64
                       " MB",
                       capacity.memory_limit >> 20);
    else
        (void)snprintf(out, room, "; the kernel was out of memory: the machine has %" PRIu64 " MB",
                       capacity.memory_total >> 20);
    return out;
}

static void log_end(struct pool *pool, const struct worker *worker, uint32_t index,
                    enum exit_reason reason, int wait_status)
{
    const struct board_worker *entry = &pool->instance.board.workers[index];
    uint64_t kills = capacity_oom_kills("");
    bool starved = reason == EXIT_KILLED && WIFSIGNALED(wait_status) &&
                   WTERMSIG(wait_status) == SIGKILL && kills > pool->oom_kills;
    bool expected = reason != EXIT_CRASH && reason != EXIT_KILLED;
    char how[100];
    char oom[120];

    pool->oom_kills = kills;
    log_line(
        expected ? LOG_INFO : LOG_WARN,
        "pool=%s worker %d ended: reason=%s generation=%u requests=%" PRIu64 " age=%.1fs (%s%s)",
        pool->settings->name, (int)worker->pid, exit_word(reason), worker->generation,
        atomic_load_explicit(&entry->requests, memory_order_relaxed),
        (double)(clock_ms() - worker->since_ms) / 1000, exit_describe(wait_status, how, sizeof how),
        starved ? explain_starvation(oom, sizeof oom) : "");
}

/* A worker ended that never served: its generation's try has failed. What it said counts once: the next
 * one may fail without a word. */
static void fail_start(struct pool *pool, struct worker *worker, int wait_status)
{
    struct mold *mold = pool_find_mold(pool, worker->generation);
    char reason[POOL_ERROR_BYTES];
    char how[100];

    if (mold && mold->failure)
        (void)snprintf(reason, sizeof reason, "%s", mold->failure);
    else if (worker->why == EXIT_TIMEOUT)
        (void)snprintf(reason, sizeof reason,
                       "a worker was not ready within start_timeout (%.0f s)",
                       (double)pool->settings->start_timeout_ms / 1000);
    else
        (void)snprintf(reason, sizeof reason, "a worker %s before it was ready",
                       exit_describe(wait_status, how, sizeof how));
    if (mold) {
        free(mold->failure);
        mold->failure = NULL;
    }
    plan_failed(pool, mold, reason);
}

/* What an excuse leaves for, unasked and in order, is a change of the code. */
static void end_excuse(struct pool *pool, struct worker *worker, int wait_status)
{
    if (!worker->is_excuse || worker->why != EXIT_NONE || !WIFEXITED(wait_status) ||
        WEXITSTATUS(wait_status) != 0)
        return;
    worker->why = EXIT_NORMAL;
    plan_changed(pool, pool_find_mold(pool, worker->generation));
}

static void count_end(struct pool *pool, struct worker *worker, uint32_t index, int wait_status)
{
    bool asked = worker->why != EXIT_NONE;
    enum exit_reason reason = exit_reason_of(worker->why, wait_status);
    uint64_t now_ms = clock_ms();

    /* One that we killed because it did not become ready in time has not ended as it should. */
    if (worker->ready_ms == 0 && reason == EXIT_TIMEOUT)
        asked = false;
    /* The signal that stops the server may have come to its workers, too. */
    if (pool->draining && reason == EXIT_KILLED && worker->ready_ms && WIFEXITED(wait_status))
        reason = EXIT_NORMAL;
    pool->exits[reason]++;
    if (pool->options.exit_counts)
        atomic_fetch_add_explicit(&pool->options.exit_counts[reason], 1, memory_order_relaxed);
    log_end(pool, worker, index, reason, wait_status);
    if (asked)
        return;
    if (worker->ready_ms == 0)
        fail_start(pool, worker, wait_status);
    else
        backoff_die(&pool->backoff, now_ms, now_ms - worker->ready_ms, 8 + 2 * pool->max);
}

bool crew_ended(struct pool *pool, pid_t pid, int wait_status)
{
    for (uint32_t i = 0; i < size(pool); i++) {
        struct worker *worker = &pool->workers[i];
        if (worker->pid != pid || worker->state == WORKER_EMPTY || worker->state == WORKER_DEAD)
            continue;
        end_excuse(pool, worker, wait_status);
        count_end(pool, worker, i, wait_status);
        question_end(pool, i);
        CHECK(worker_step(worker, WORKER_END));
        worker->pid = 0;
        worker->deadline_ms = 0;
        fd_close(&worker->control);
        instance_end(&pool->instance, i);
        pool->options.host->on_dead(pool, i);
        budget_changed(pool);
        plan_soon(pool);
        return true;
    }
    return false;
}

void crew_audited(struct pool *pool, uint32_t index)
{
    struct worker *worker;

    if (index >= size(pool))
        return;
    worker = &pool->workers[index];
    if (worker->state == WORKER_DEAD && audit_worker_free(&pool->instance.board, index)) {
        (void)worker_step(worker, WORKER_AUDIT);
        plan_soon(pool);
    }
}

/* Whether somebody is served by the worker whose request is not late. Streams end by themselves when their
 * time is over, as those of any worker that retires. */
static bool has_innocents(const struct pool *pool, uint32_t index, uint32_t late)
{
    return instance_busy(&pool->instance, index) > late ||
           instance_streams(&pool->instance, index) > 0;
}

/* A late worker goes as soon as only its late requests are left and it has been asked what they do. One
 * whose late requests have ended after all retires like any other. */
static uint64_t check_late(struct pool *pool, uint32_t index, uint64_t now_ms)
{
    struct worker *worker = &pool->workers[index];
    uint32_t late;

    if (worker->state != WORKER_RETIRING || !(worker->is_late || worker->is_relieved) ||
        worker->question)
        return UINT64_MAX;
    late = instance_late(&pool->instance, index);
    if (late == 0 || has_innocents(pool, index, late))
        return now_ms + LATE_LOOK_MS;
    if (worker->is_late)
        worker->why = EXIT_TIMEOUT;
    crew_kill(pool, index);
    return UINT64_MAX;
}

/* A mold that has not forked for so long never will; it is loaded again. */
static void kill_hung_mold(struct pool *pool, const struct worker *worker)
{
    struct mold *mold = pool_find_mold(pool, worker->generation);

    if (worker->state == WORKER_ASKED && mold)
        (void)spawn_signal(mold->pid, SIGKILL);
}

/* No process yet, but its time is not over either. */
static void say_no_fork(struct pool *pool, struct worker *worker)
{
    (void)snprintf(pool->error, sizeof pool->error,
                   "cannot start a worker: the mold does not get a process for it");
    log_error("pool=%s %s; it goes on trying", pool->settings->name, pool->error);
    worker->deadline_ms = start_deadline_ms(pool, worker);
}

static void expire(struct pool *pool, uint32_t index)
{
    struct worker *worker = &pool->workers[index];

    if (worker->state == WORKER_ASKED && clock_ms() < start_deadline_ms(pool, worker)) {
        say_no_fork(pool, worker);
        return;
    }
    if (worker->state == WORKER_STARTING || worker->state == WORKER_ASKED) {
        log_error("pool=%s worker %d was not ready within start_timeout (%.0f s); it is killed",
                  pool->settings->name, (int)worker->pid,
                  (double)pool->settings->start_timeout_ms / 1000);
        worker->why = EXIT_TIMEOUT;
        kill_hung_mold(pool, worker);
    } else {
        log_warn("pool=%s worker %d did not finish in time; it is killed", pool->settings->name,
                 (int)worker->pid);
    }
    worker->deadline_ms = 0;
    crew_kill(pool, index);
}

uint64_t crew_check(struct pool *pool, uint64_t now_ms)
{
    uint64_t next_ms = UINT64_MAX;

    for (uint32_t i = 0; i < size(pool); i++) {
        struct worker *worker = &pool->workers[i];
        uint64_t question_ms = question_check(pool, i, now_ms);
        uint64_t look_ms = check_late(pool, i, now_ms);
        if (worker->deadline_ms && worker->deadline_ms <= now_ms)
            expire(pool, i);
        if (worker->deadline_ms && worker->deadline_ms < look_ms)
            look_ms = worker->deadline_ms;
        if (question_ms < look_ms)
            look_ms = question_ms;
        if (look_ms < next_ms)
            next_ms = look_ms;
    }
    return next_ms;
}

static int64_t find_oldest(const struct pool *pool, bool current)
{
    int64_t found = -1;

    for (uint32_t i = 0; i < size(pool); i++) {
        const struct worker *worker = &pool->workers[i];
        bool is_current = pool->current && worker->generation == pool->current->generation;
        if (worker->state != WORKER_SERVING || is_current != current)
            continue;
        if (found < 0 || worker->since_ms < pool->workers[found].since_ms)
            found = i;
    }
    return found;
}

int64_t crew_find_older(const struct pool *pool)
{
    return find_oldest(pool, false);
}

int64_t crew_find_surplus(const struct pool *pool)
{
    return find_oldest(pool, true);
}

/* "GET /path id=ID", without the query, which may hold secrets. */
static void log_late(const struct pool *pool, uint32_t index, uint32_t slot)
{
    const struct board *board = &pool->instance.board;
    const struct slot_request *request = slot_request(board, slot);
    struct span method = slot_text(board, slot, request->method);
    struct span target = slot_text(board, slot, request->target);
    struct span id = slot_text(board, slot, request->request_id);

    target = span_first(target, span_find(target, '?'));
    log_error("pool=%s worker %d ran into timeout (%.1f s): %.*s %.*s id=%.*s; the client got 504, "
              "the worker is replaced",
              pool->settings->name, (int)pool->workers[index].pid,
              (double)pool->settings->timeout_ms / 1000, SPAN_ARG(method),
              (int)(target.size < 2048 ? target.size : 2048), target.data,
              (int)(id.size < 200 ? id.size : 200), id.data);
}

/* Its other requests may take as long as any request; by then they are late themselves. */
static uint64_t late_grace_ms(const struct pool *pool)
{
    return pool->settings->timeout_ms + pool->config->timeouts.stream_drain_ms + QUESTION_MS;
}

/* Its other requests are finished first; what the threads do is asked once, all of them at the same moment. */
static void relieve(struct pool *pool, uint32_t index, enum exit_reason why)
{
    struct worker *worker = &pool->workers[index];

    if (!worker->is_late && !worker->is_relieved && worker->pid)
        question_ask(pool, index, QUESTION_FOR_LOG);
    worker->is_late |= why == EXIT_TIMEOUT;
    worker->is_relieved = true;
    crew_retire(pool, index, why, late_grace_ms(pool));
    plan_soon(pool);
}

void pool_worker_late(struct pool *pool, uint32_t worker, uint32_t slot)
{
    if (worker >= size(pool) || slot >= pool->instance.board.shape.slots)
        return;
    log_late(pool, worker, slot);
    relieve(pool, worker, EXIT_TIMEOUT);
}

void pool_request_killed(struct pool *pool, uint32_t worker)
{
    if (worker >= size(pool) || !pool->workers[worker].pid)
        return;
    log_warn("pool=%s worker %d runs a request that was ended by hand, the worker is replaced",
             pool->settings->name, (int)pool->workers[worker].pid);
    relieve(pool, worker, EXIT_NORMAL);
}

/* Stopped by a signal, that is; a debugger's stops end by themselves. */
static void replace_stopped(struct pool *pool, uint32_t index, uint64_t now_ms)
{
    struct worker *worker = &pool->workers[index];

    if (autopsy_state("/proc", worker->pid) != 'T') {
        worker->stopped_ms = 0;
    } else if (worker->stopped_ms == 0) {
        worker->stopped_ms = now_ms;
    } else if (now_ms - worker->stopped_ms >= STOPPED_MS) {
        log_warn("pool=%s worker %d was stopped by a signal while requests wait; another one is "
                 "started in its place",
                 pool->settings->name, (int)worker->pid);
        crew_retire(pool, index, EXIT_TIMEOUT, late_grace_ms(pool));
    }
}

void crew_find_stopped(struct pool *pool, uint64_t now_ms)
{
    for (uint32_t i = 0; i < size(pool); i++)
        if (pool->workers[i].state == WORKER_SERVING && !pool->config->development)
            replace_stopped(pool, i, now_ms);
}

bool pool_backtrace(struct pool *pool, pid_t pid, uint32_t *ret_worker)
{
    for (uint32_t i = 0; i < size(pool); i++) {
        if (pid <= 0 || pool->workers[i].pid != pid || !worker_is_there(&pool->workers[i]))
            continue;
        question_ask(pool, i, QUESTION_FOR_HOST);
        *ret_worker = i;
        return true;
    }
    return false;
}

void pool_worker_broken(struct pool *pool, uint32_t worker)
{
    if (worker >= size(pool) || !pool->workers[worker].pid)
        return;
    log_error("pool=%s worker %d wrote what no worker writes; it is killed and replaced",
              pool->settings->name, (int)pool->workers[worker].pid);
    pool->workers[worker].why = EXIT_CRASH;
    crew_kill(pool, worker);
    damage_look(pool);
}

/* SPDX-License-Identifier: MIT */
/*
 * A pool over a real board and report socket, whose processes are played by the test: molds and signals
 * are recorded instead of made, and time stands still unless the test moves it. Included after the source
 * under test.
 */
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/audit.h"
#include "board/queue.h"
#include "board/slot.h"
#include "pool/budget.h"
#include "pool/crew.h"
#include "pool/memory.h"
#include "pool/plan.h"
#include "pool/pool.h"
#include "pool/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the test plays, and what it was asked. One per program, as the functions it stands for are. */
static struct {
    uint64_t now_ms;
    pid_t last_pid;    /* given to a mold or solo worker */
    bool is_broken;    /* preparing fails */
    bool cannot_exec;  /* so does exec */
    int ask_result;    /* of asking a mold for a worker */
    uint64_t resident; /* of every process, 0 = unknown */
    unsigned execs, asks, quits, kills, hangups;
    uint32_t asked; /* worker entry of the last ask */
    pid_t killed;   /* by the last SIGKILL */
    /* what the host was told */
    unsigned ready, dead, started, restarted, empty;
    char start_failure[512], restart_failure[512];
    unsigned backtraces, damages;
    bool backtrace_ok;
    char backtrace[2048];
    uint32_t ticket;
} played;

uint64_t clock_ms(void)
{
    return played.now_ms;
}

int spawn_signal(pid_t pid, int signal)
{
    if (signal == SIGKILL) {
        played.kills++;
        played.killed = pid;
    }
    played.hangups += signal == SIGHUP;
    return 0;
}

uint64_t memory_resident(pid_t pid)
{
    (void)pid;
    return played.resident ? played.resident : UINT64_MAX;
}

#ifndef WORLD_REAL_MOLD
struct mold *mold_new(uint32_t generation, bool solo)
{
    struct mold *mold = must_alloc(1, sizeof *mold);

    *mold = (struct mold){.generation = generation, .solo = solo, .control = -1};
    list_init(&mold->link);
    return mold;
}

void mold_free(struct mold *mold)
{
    list_remove(&mold->link);
    free(mold->release);
    free(mold->failure);
    free(mold);
}

int mold_prepare(struct mold *mold, const struct pool *pool, struct faults *faults)
{
    (void)pool;
    if (played.is_broken) {
        faults_add(faults, NULL, 0, 0, "shop", "the folder is gone");
        return -1;
    }
    free(mold->release);
    mold->release = must_copy("/release");
    return 0;
}

int mold_exec(struct mold *mold, struct pool *pool, const char *role, uint32_t index,
              pid_t *ret_pid, int *ret_control, struct faults *faults)
{
    (void)mold, (void)pool, (void)role;
    if (played.cannot_exec) {
        faults_add(faults, NULL, 0, 0, "shop", "cannot fork");
        return -1;
    }
    played.execs++;
    played.asked = index;
    *ret_pid = ++played.last_pid;
    *ret_control = -1;
    return 0;
}

int mold_greet(const struct mold *mold, const struct pool *pool, const char *role, uint32_t index,
               int control)
{
    (void)mold, (void)pool, (void)role, (void)index, (void)control;
    return 0;
}

int mold_ask_fork(struct mold *mold, uint32_t index)
{
    (void)mold;
    if (played.ask_result != 0)
        return played.ask_result;
    played.asks++;
    played.asked = index;
    return 0;
}

void mold_quit(struct mold *mold)
{
    if (mold->state == MOLD_LEAVING)
        return;
    played.quits++;
    mold->state = mold->pid ? MOLD_LEAVING : MOLD_DOWN;
    mold->deadline_ms = clock_ms() + 5000;
}
#endif

static void note_ready(struct pool *pool, uint32_t worker)
{
    (void)pool, (void)worker;
    played.ready++;
}

static void note_dead(struct pool *pool, uint32_t worker)
{
    (void)pool, (void)worker;
    played.dead++;
}

static void note_state(struct pool *pool)
{
    (void)pool;
}

static void note_started(struct pool *pool, const char *failure)
{
    (void)pool;
    played.started++;
    (void)snprintf(played.start_failure, sizeof played.start_failure, "%s", failure ? failure : "");
}

static void note_restarted(struct pool *pool, uint32_t ticket, const char *failure)
{
    (void)pool;
    played.restarted++;
    played.ticket = ticket;
    (void)snprintf(played.restart_failure, sizeof played.restart_failure, "%s",
                   failure ? failure : "");
}

static void note_empty(struct pool *pool)
{
    (void)pool;
    played.empty++;
}

static void note_damage(struct pool *pool)
{
    (void)pool;
    played.damages++;
}

static void note_backtrace(struct pool *pool, uint32_t worker, bool ok, struct span text)
{
    (void)pool, (void)worker;
    played.backtraces++;
    played.backtrace_ok = ok;
    (void)snprintf(played.backtrace, sizeof played.backtrace, "%.*s", SPAN_ARG(text));
}

static const struct pool_host world_host = {.on_ready = note_ready,
                                            .on_dead = note_dead,
                                            .on_state = note_state,
                                            .on_started = note_started,
                                            .on_restarted = note_restarted,
                                            .on_damage = note_damage,
                                            .on_backtrace = note_backtrace,
                                            .on_empty = note_empty};

struct world {
    struct loop *loop;
    struct config config;
    struct config_pool settings;
    struct pool *pool;
    pid_t next_worker; /* PID of the next one that world_fork makes */
};

/* A pool of min to max workers of two threads; nothing is started yet. */
static inline void world_open(struct world *world, uint32_t min, uint32_t max)
{
    struct faults faults = {.size = 0};

    log_to(-1);
    memset(&played, 0, sizeof played);
    played.now_ms = 1000000;
    played.last_pid = 100;
    *world = (struct world){.config = {.environment = "production",
                                       .limits = {.target = 1024, .header = 4096, .headers = 16},
                                       .timeouts = {.drain_ms = 5000, .stream_drain_ms = 1000}},
                            .settings = {.name = "shop",
                                         .app = "/app",
                                         .workers_min = min,
                                         .workers_max = max,
                                         .threads = 2,
                                         .timeout_ms = 3000,
                                         .start_timeout_ms = 90000,
                                         .queue_length = 20,
                                         .umask = UINT32_MAX},
                            .next_worker = 500};
    world->loop = loop_new();
    world->pool = pool_new(&(struct pool_options){.loop = world->loop,
                                                  .config = &world->config,
                                                  .settings = &world->settings,
                                                  .loops = 1,
                                                  .runtime = "/run/test/1-0",
                                                  .library = "/lib",
                                                  .death_pipe = -1,
                                                  .log_fd = -1,
                                                  .host = &world_host},
                           &faults);
    assert_non_null(world->pool);
    world->pool->max_starts = 2;
}

/* Memory of all pools: so many bytes on a machine that has enough and whose files are not looked at. */
static inline void world_open_budget(struct budget *budget, uint64_t limit)
{
    *budget = (struct budget){.limit = limit,
                              .capacity = {.memory_headroom = UINT64_MAX},
                              .read_ms = UINT64_MAX / 2,
                              .pressure_fd = -1};
    list_init(&budget->pools);
}

/* Ends the pool as it stands, whatever it has. */
static inline void world_close(struct world *world)
{
    pool_free(world->pool);
    loop_free(world->loop);
}

/* Lets what is due in this batch happen. */
static inline void world_run(struct world *world)
{
    while (loop_step(world->loop, 0) > 0)
        ;
}

/* Time passes, and the pool's timer comes. */
static inline void world_wait(struct world *world, uint64_t ms)
{
    played.now_ms += ms;
    plan_on_timer(&world->pool->timer);
    world_run(world);
}

/* A mold or worker says this. */
static inline void world_say(struct world *world, const char *message)
{
    assert_int_equal(fd_send(world->pool->instance.report_peer, span_of(message), NULL, 0), 0);
    world_run(world);
}

static inline void world_say_loaded(struct world *world, unsigned generation)
{
    char text[80];

    (void)snprintf(text, sizeof text, "loaded\ngeneration=%u\npreload=true\nprivate_bytes=1000\n",
                   generation);
    world_say(world, text);
}

/* Every worker that was asked for is forked, and says that it is ready. */
static inline void world_fork(struct world *world)
{
    const struct pool *pool = world->pool;
    char text[80];

    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        if (pool->workers[i].state != WORKER_ASKED)
            continue;
        (void)snprintf(text, sizeof text, "forked\nindex=%u\npid=%d\n", i,
                       (int)world->next_worker++);
        world_say(world, text);
    }
}

static inline void world_serve(struct world *world)
{
    const struct pool *pool = world->pool;
    char text[80];

    world_fork(world);
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        if (pool->workers[i].state != WORKER_STARTING)
            continue;
        (void)snprintf(text, sizeof text, "ready\nindex=%u\npid=%d\n", i,
                       (int)pool->workers[i].pid);
        world_say(world, text);
    }
}

/* The first start, up to serving workers. */
static inline void world_start(struct world *world)
{
    struct faults faults = {.size = 0};

    assert_int_equal(pool_start(world->pool, &faults), 0);
    world_run(world);
    world_say_loaded(world, 1);
    for (int i = 0; i < 20 && pool_serving(world->pool) < pool_wanted(world->pool); i++)
        world_serve(world);
    assert_int_equal(pool_serving(world->pool), pool_wanted(world->pool));
}

/* A worker that has answered requests says how much it takes. */
static inline void world_say_measured(struct world *world, uint32_t index, uint64_t bytes)
{
    char text[100];

    atomic_store(&world->pool->instance.board.workers[index].requests, 1);
    (void)snprintf(text, sizeof text, "measured\nindex=%u\npid=%d\nprivate_bytes=%llu\n", index,
                   (int)world->pool->workers[index].pid, (unsigned long long)bytes);
    world_say(world, text);
}

/* A worker has so many busy threads; has done nothing since it ended a request so long ago. */
static inline void world_busy(struct world *world, uint32_t index, uint32_t threads)
{
    atomic_store(&world->pool->instance.board.workers[index].busy, threads);
}

static inline void world_done(struct world *world, uint32_t index, uint64_t ago_ms)
{
    atomic_store(&world->pool->instance.board.workers[index].done_us,
                 (played.now_ms - ago_ms) * 1000);
}

/* Wait statuses. */
enum { WORLD_EXIT_0 = 0, WORLD_EXIT_1 = 1 << 8, WORLD_KILLED = SIGKILL, WORLD_CRASHED = SIGSEGV };

/* A process ends; a worker's entry is given back by the fronts at once. */
static inline void world_end(struct world *world, pid_t pid, int wait_status)
{
    struct pool *pool = world->pool;

    assert_true(pool_child_ended(pool, pid, wait_status));
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        if (pool->workers[i].state == WORKER_DEAD)
            audit_worker_done(&pool->instance.board, i, 0);
        pool_audited(pool, i);
    }
    world_run(world);
}

/* The worker with that state, or NULL. */
static inline struct worker *world_find(const struct world *world, enum worker_state state)
{
    for (uint32_t i = 0; i < world->pool->instance.board.shape.workers; i++)
        if (world->pool->workers[i].state == state)
            return &world->pool->workers[i];
    return NULL;
}

/* A request of front 0 waits in the queue. */
static inline void world_queue(struct world *world)
{
    const struct board *board = &world->pool->instance.board;
    uint32_t turn;
    int64_t slot = slot_claim(board, 0, &turn);

    assert_true(slot >= 0);
    atomic_store(&board->fronts[0].life, BOARD_ALIVE);
    slot_begin(board, (uint32_t)slot, 0, 0);
    assert_true(queue_push(board, (uint32_t)slot, 1000));
}

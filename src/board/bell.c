/* SPDX-License-Identifier: MIT */
#include "board/bell.h"

#include "base/base.h"
#include "board/queue.h"
#include "board/step.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    WAKE_TRIES = 4, /* threads that woke by themselves while they were being chosen */
    NOBODY = UINT32_MAX
};

/* What a futex wait takes as its time: 64-bit seconds also where `long` has 32 bits. */
#ifdef SYS_futex_time64
#define FUTEX_CALL SYS_futex_time64
struct wait_time {
    int64_t tv_sec;
    int64_t tv_nsec;
};
#else
#define FUTEX_CALL SYS_futex
#define wait_time  timespec
#endif

/* The best sleeper found so far. */
struct choice {
    uint32_t thread;
    uint32_t busy;
    uint32_t nap;
};

/* Never FUTEX_PRIVATE_FLAG: the waiter is in another process. */
static void wake_one(_Atomic uint32_t *bell)
{
    (void)syscall(FUTEX_CALL, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void ring(const struct board *board, uint32_t thread)
{
    _Atomic uint32_t *bell = &board->threads[thread].bell;

    /* Sequentially consistent: a sleeper that has not yet reached the system finds the bell changed, and
     * then sees what it was rung for. */
    atomic_fetch_add(bell, 1);
    BOARD_STEP(WAKE_RUNG);
    wake_one(bell);
}

static uint64_t wake_pack(uint32_t thread, uint32_t now_ms)
{
    return (uint64_t)(thread + 1) << 32 | now_ms;
}

static uint32_t wake_thread(uint64_t wake)
{
    return (uint32_t)(wake >> 32) - 1; /* NOBODY when there is none */
}

static bool is_young(uint64_t wake, uint32_t now_ms)
{
    return wake_thread(wake) != NOBODY && now_ms - (uint32_t)wake < BELL_REPEAT_MS;
}

/* The latest sleeper of one worker, if that makes a better choice. */
static void consider(const struct board *board, uint32_t worker, uint32_t busy, uint32_t skip,
                     struct choice *best)
{
    for (uint32_t i = 0; i < board->shape.threads; i++) {
        uint32_t thread = board_thread_of(board, worker, i);
        uint32_t nap = atomic_load_explicit(&board->threads[thread].nap, memory_order_relaxed);

        if (thread == skip || atomic_load(&board->threads[thread].asleep) != BOARD_SLEEP_QUEUE)
            continue;
        if (best->thread == NOBODY || busy < best->busy || (int32_t)(nap - best->nap) > 0)
            *best = (struct choice){thread, busy, nap};
    }
}

/* The thread to wake; skip is left out, as it was rung and did not answer. */
static uint32_t choose(const struct board *board, bool idle_only, uint32_t skip)
{
    struct choice best = {NOBODY, 0, 0};

    for (uint32_t i = 0; i < board->shape.workers; i++) {
        const struct board_worker *worker = &board->workers[i];
        uint32_t life = atomic_load_explicit(&worker->life, memory_order_relaxed);
        uint32_t busy;

        if ((life != BOARD_ALIVE && life != BOARD_STARTING) ||
            !atomic_load_explicit(&worker->ready, memory_order_relaxed))
            continue;
        busy = atomic_load_explicit(&worker->busy, memory_order_relaxed);
        if ((idle_only && busy > 0) || (best.thread != NOBODY && busy > best.busy))
            continue;
        consider(board, i, busy, skip, &best);
    }
    return best.thread;
}

/* This thread is awake again. Nobody else says so for it (README 40). */
static void end_sleep(const struct board *board, uint32_t thread)
{
    _Atomic uint64_t *wake = &board->header->wake;
    uint64_t seen;

    if (atomic_exchange(&board->threads[thread].asleep, BOARD_AWAKE) == BOARD_SLEEP_QUEUE)
        atomic_fetch_sub(&board->header->sleepers, 1);
    /* Sequentially consistent, before this thread looks at the queue: a front that still sees the wake
     * in flight has pushed before that look (README 42). */
    seen = atomic_load(wake);
    if (wake_thread(seen) == thread)
        (void)atomic_compare_exchange_strong(wake, &seen, 0);
}

static void write_bell(const struct board *board, uint32_t front, uint32_t loop)
{
    int fd = board->bells[front * board->shape.loops + loop];
    uint64_t one = 1;
    ssize_t written;

    if (fd == -1)
        return;
    /* EAGAIN: the counter is full, so the loop is rung as it is. */
    do
        written = write(fd, &one, sizeof(one));
    while (written == -1 && errno == EINTR);
}

static bool has_notices(const struct board *board, uint32_t front, uint32_t loop)
{
    const _Atomic uint64_t *notices = board_notices(board, front, loop);

    for (uint32_t i = 0; i < board->notice_words; i++)
        if (atomic_load(&notices[i]))
            return true;
    return false;
}

/* What the workers' words say of the time until the queue is empty. */
struct outlook {
    bool has_slow;  /* a busy worker's requests take longer than a wake */
    bool has_other; /* a worker is idle, or its running requests block it */
    uint64_t serving, slowest_ns;
};

static void look_at(const struct board_worker *worker, uint64_t now_us, struct outlook *outlook)
{
    uint64_t service_ns = atomic_load_explicit(&worker->service_ns, memory_order_relaxed);
    uint64_t taken_us = atomic_load_explicit(&worker->taken_us, memory_order_relaxed);

    if (service_ns == 0 || service_ns > BELL_WAKE_COST_US * UINT64_C(1000)) {
        outlook->has_slow = true;
    } else if ((int64_t)(now_us - taken_us) > BELL_WAKE_COST_US) {
        outlook->has_other = true;
    } else {
        outlook->serving++;
        if (service_ns > outlook->slowest_ns)
            outlook->slowest_ns = service_ns;
    }
}

bool bell_can_wait(const struct board *board, uint64_t now_us)
{
    struct outlook outlook = {0};

    for (uint32_t i = 0; i < board->shape.workers; i++) {
        const struct board_worker *worker = &board->workers[i];

        if (!atomic_load_explicit(&worker->ready, memory_order_relaxed))
            continue;
        /* Sequentially consistent: a worker that goes to sleep counts itself idle first and looks at the
         * queue then; a caller that still finds it busy has pushed before that look (README 45). */
        if (atomic_load(&worker->busy) == 0)
            outlook.has_other = true;
        else
            look_at(worker, now_us, &outlook);
    }
    if (outlook.has_slow || !outlook.serving)
        return false;
    return !outlook.has_other || queue_length(board) * outlook.slowest_ns <
                                     outlook.serving * BELL_WAKE_COST_US * UINT64_C(1000);
}

bool bell_wake_worker(const struct board *board, uint64_t now_us, bool idle_only)
{
    uint32_t now_ms = (uint32_t)(now_us / 1000);
    _Atomic uint64_t *wake = &board->header->wake;

    /* README 40: the caller's push comes before these loads, a sleeper's count before its second look
     * at the queue; so one of the two sees the other. */
    if (atomic_load(&board->header->sleepers) == 0)
        return false;
    for (int tries = 0; tries < WAKE_TRIES; tries++) {
        uint64_t seen = atomic_load(wake);
        uint64_t named;
        uint32_t thread;

        if (is_young(seen, now_ms))
            return true;
        thread = choose(board, idle_only, wake_thread(seen));
        if (thread == NOBODY && wake_thread(seen) != NOBODY)
            thread = choose(board, idle_only, NOBODY);
        if (thread == NOBODY)
            return false;
        named = wake_pack(thread, now_ms);
        if (!atomic_compare_exchange_strong(wake, &seen, named))
            return true;
        BOARD_STEP(WAKE_NAMED);
        /* A thread that woke by itself meanwhile either sees its name, or is seen awake here. */
        if (atomic_load(&board->threads[thread].asleep) == BOARD_SLEEP_QUEUE) {
            ring(board, thread);
            return true;
        }
        (void)atomic_compare_exchange_strong(wake, &named, 0);
    }
    return false;
}

void bell_pass_on(const struct board *board, uint64_t now_us)
{
    if (atomic_load(&board->header->sleepers) > 0 && !queue_is_empty(board))
        (void)bell_wake_worker(board, now_us, false);
}

uint32_t bell_prepare(const struct board *board, uint32_t thread, enum board_sleep what)
{
    struct board_thread *self = &board->threads[thread];
    /* Before it says that it sleeps: whoever rings afterwards changes the bell from this value. */
    uint32_t bell = atomic_load(&self->bell);

    if (what == BOARD_SLEEP_QUEUE) {
        uint32_t nap = atomic_fetch_add_explicit(&board->header->naps, 1, memory_order_relaxed) + 1;

        /* Relaxed: a hint. */
        atomic_store_explicit(&self->nap, nap, memory_order_relaxed);
        /* Counted first: the count may be too high, never too low. */
        atomic_fetch_add(&board->header->sleepers, 1);
        BOARD_STEP(NAP_COUNTED);
    }
    atomic_store(&self->asleep, what);
    BOARD_STEP(THREAD_ASLEEP);
    return bell;
}

void bell_stay(const struct board *board, uint32_t thread)
{
    end_sleep(board, thread);
}

int bell_sleep(const struct board *board, uint32_t thread, uint32_t bell, int timeout_ms)
{
    struct wait_time limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    long result = syscall(FUTEX_CALL, &board->threads[thread].bell, FUTEX_WAIT, bell,
                          timeout_ms < 0 ? NULL : &limit, NULL, 0);
    int error = result == -1 ? errno : 0;

    end_sleep(board, thread);
    /* EAGAIN: rung before the system put it to sleep. */
    return error == EAGAIN ? 0 : -error;
}

void bell_ring_thread(const struct board *board, uint32_t thread)
{
    ring(board, thread);
}

void bell_ring_worker(const struct board *board, uint32_t worker)
{
    _Atomic uint32_t *bell = &board->workers[worker].bell;

    /* Sequentially consistent, as in ring(): what it is rung for was written before. */
    atomic_fetch_add(bell, 1);
    wake_one(bell);
}

void bell_sleep_worker(const struct board *board, uint32_t worker, uint32_t bell)
{
    (void)syscall(FUTEX_CALL, &board->workers[worker].bell, FUTEX_WAIT, bell, NULL, NULL, 0);
}

void bell_ring_page(const struct board *board, uint32_t thread)
{
    /* README 41: the page became empty, or the note was set, before this load. */
    if (atomic_load(&board->threads[thread].asleep) == BOARD_SLEEP_PAGE)
        ring(board, thread);
}

void bell_notify_front(const struct board *board, uint32_t front, uint32_t loop, uint32_t thread)
{
    _Atomic uint32_t *asleep = board_asleep(board, front, loop);
    uint32_t expected = BOARD_LOOP_ASLEEP;

    /* Releases the page or slot word written before to the loop that takes the bit (acquire there), and
     * comes before the look at the sleeper (README 43). */
    atomic_fetch_or(&board_notices(board, front, loop)[thread / 64], UINT64_C(1) << thread % 64);
    BOARD_STEP(NOTICE_SET);
    if (atomic_load(asleep) != BOARD_LOOP_ASLEEP ||
        !atomic_compare_exchange_strong(asleep, &expected, BOARD_LOOP_RUNG))
        return;
    BOARD_STEP(LOOP_RUNG);
    write_bell(board, front, loop);
}

void bell_ring_front(const struct board *board, uint32_t front, uint32_t loop)
{
    /* Whatever the word says: a worker may have died between the word and the eventfd (README 44). */
    atomic_store(board_asleep(board, front, loop), BOARD_LOOP_RUNG);
    write_bell(board, front, loop);
}

bool bell_front_sleep(const struct board *board, uint32_t front, uint32_t loop)
{
    _Atomic uint32_t *asleep = board_asleep(board, front, loop);

    atomic_store(asleep, BOARD_LOOP_ASLEEP);
    BOARD_STEP(LOOP_ASLEEP);
    if (!has_notices(board, front, loop))
        return true;
    bell_front_wake(board, front, loop);
    return false;
}

void bell_front_wake(const struct board *board, uint32_t front, uint32_t loop)
{
    _Atomic uint32_t *asleep = board_asleep(board, front, loop);

    if (atomic_load(asleep) != BOARD_LOOP_AWAKE &&
        atomic_exchange(asleep, BOARD_LOOP_AWAKE) == BOARD_LOOP_RUNG)
        bell_front_empty(board, front, loop);
}

void bell_front_empty(const struct board *board, uint32_t front, uint32_t loop)
{
    int fd = board->bells[front * board->shape.loops + loop];
    uint64_t count;
    ssize_t got;

    if (fd == -1)
        return;
    /* EAGAIN: the ringer has not come to its write yet. */
    do
        got = read(fd, &count, sizeof(count));
    while (got == -1 && errno == EINTR);
}

uint64_t bell_take_notices(const struct board *board, uint32_t front, uint32_t loop, uint32_t word)
{
    _Atomic uint64_t *notices = &board_notices(board, front, loop)[word];
    uint32_t threads = board_thread_count(board);
    uint64_t bits;

    if (!atomic_load_explicit(notices, memory_order_relaxed))
        return 0;
    bits = atomic_exchange(notices, 0);
    if (word >= threads / 64)
        bits = word > threads / 64 ? 0 : bits & ((UINT64_C(1) << threads % 64) - 1);
    return bits;
}

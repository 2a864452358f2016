/* SPDX-License-Identifier: MIT */
/*
 * Sleeping and waking across processes: futex words towards worker threads, eventfds towards front
 * loops. A bell is rung only when the other side sleeps. At most one wake of a worker for the queue is
 * in flight; the woken thread wakes the next while requests are queued.
 *
 *   header.wake: | thread + 1, 32 bits | time in milliseconds, 32 bits |
 *
 * Only a thread itself ever says that it is awake: a waker that dies between two steps leaves a sleeper
 * that still looks asleep, and the next wake goes to it (README 40).
 */
#pragma once

#include "board/board.h"

enum {
    BELL_REPEAT_MS = 5,    /* an unanswered wake goes to another thread after this */
    BELL_WAKE_COST_US = 60 /* waking a process on another processor takes about as long */
};

/* Front or worker: whether to wake nobody for what is queued (README 45), because the workers that are
 * busy now are expected to take all of it sooner than a woken one would be there, or because a woken
 * thread would only wait for them. A guess by what workers say of themselves: whoever relies on it looks
 * again when the oldest request is a millisecond old. */
bool bell_can_wait(const struct board *board, uint64_t now_us);

/* Front, or a worker that leaves requests queued: wakes a sleeping thread of the ready worker with the
 * fewest busy threads, the most recently asleep first, unless a wake younger than BELL_REPEAT_MS is in
 * flight. idle_only: only of a worker with no busy thread. Returns whether anybody was rung, or is being
 * woken already: then a front calls again after BELL_REPEAT_MS while its request is still queued. */
bool bell_wake_worker(const struct board *board, uint64_t now_us, bool idle_only);

/* Worker thread that was awake for the queue, after it took a request or when it takes none any more
 * (retiring, interrupted): wakes the next sleeper if requests are still queued. */
void bell_pass_on(const struct board *board, uint64_t now_us);

/* Worker thread: falls asleep on the queue until rung or timeout_ms passed (-1 = no limit). Call
 * bell_prepare first, look once more at all it would be woken for (queue, page, note, its worker's life,
 * interrupts), then bell_sleep or bell_stay.
 *
 *   bell = bell_prepare(board, thread, BOARD_SLEEP_QUEUE);
 *   if (something came meanwhile) bell_stay(board, thread); else bell_sleep(board, thread, bell, -1);
 *
 * bell_sleep may return early (EINTR); 0 or a negative errno of the wait. It leaves the thread awake and
 * clears a wake in flight that names it. */
uint32_t bell_prepare(const struct board *board, uint32_t thread, enum board_sleep what);
void bell_stay(const struct board *board, uint32_t thread);
int bell_sleep(const struct board *board, uint32_t thread, uint32_t bell, int timeout_ms);

/* Anybody: rings one thread whatever it sleeps for (retirement, page taken, interrupt). */
void bell_ring_thread(const struct board *board, uint32_t thread);

/* Master, or the worker's own threads: rings the worker's main thread, which looks at what it is asked
 * and at who has ended. */
void bell_ring_worker(const struct board *board, uint32_t worker);

/* The worker's main thread: sleeps until it is rung after `bell` was read from its entry. It reads the
 * bell, then looks at all it would be rung for, then sleeps. May return early. */
void bell_sleep_worker(const struct board *board, uint32_t worker, uint32_t bell);

/* Front: rings the thread if it sleeps for a page. */
void bell_ring_page(const struct board *board, uint32_t thread);

/* Worker: tells a front's loop that this thread has news (sets its notice bit) and rings the loop's
 * eventfd when the loop sleeps. */
void bell_notify_front(const struct board *board, uint32_t front, uint32_t loop, uint32_t thread);

/* Master: rings a front's loop so that it looks at the tables. */
void bell_ring_front(const struct board *board, uint32_t front, uint32_t loop);

/* Front loop: about to sleep. False when notices are waiting, then it must not. bell_front_wake ends
 * the sleep (harmless when awake) and empties the eventfd when it was rung. A ringer that was slow may
 * write the eventfd later: whoever watches it for reading empties it with bell_front_empty, or watches
 * it edge-triggered. */
bool bell_front_sleep(const struct board *board, uint32_t front, uint32_t loop);
void bell_front_wake(const struct board *board, uint32_t front, uint32_t loop);
void bell_front_empty(const struct board *board, uint32_t front, uint32_t loop);

/* Front loop: takes the notice bits of the word-th group of 64 threads, word < board->notice_words; bits
 * of threads that the board does not have are left out. */
uint64_t bell_take_notices(const struct board *board, uint32_t front, uint32_t loop, uint32_t word);

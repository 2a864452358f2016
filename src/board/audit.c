/* SPDX-License-Identifier: MIT */
#include "board/audit.h"

#include "base/base.h"
#include "board/bell.h"

enum { AUDIT_TRIES = 8 }; /* a slot's word changes at most twice under audit, if all are honest */

/* What audit_front found in a slot. */
enum finding { NOT_OURS, GIVEN_BACK, STILL_HELD, CHANGED };

static struct slot_word freed(struct slot_word word)
{
    return (struct slot_word){SLOT_FREE, 0, word.turn, 0};
}

static bool change(const struct board *board, uint32_t slot, struct slot_word seen,
                   struct slot_word next)
{
    uint64_t expected = slot_pack(seen);

    /* Sequentially consistent, for whoever holds or claims the slot next (README 10). */
    return atomic_compare_exchange_strong(&board->words[slot], &expected, slot_pack(next));
}

/* Whether a worker's thread owns the slot: held, or DONE and not yet freed by its front. */
static bool is_workers(struct slot_word word)
{
    return word.state >= SLOT_TAKEN && word.state <= SLOT_DONE;
}

static bool is_owned_by_worker(const struct board *board, struct slot_word word, uint32_t worker)
{
    return is_workers(word) && word.owner < board_thread_count(board) &&
           board_worker_of(board, word.owner) == worker;
}

static bool is_of_front(const struct board *board, uint32_t slot, struct slot_word word,
                        uint32_t front)
{
    uint32_t named, loop;

    if (is_workers(word))
        return slot_front(board, slot, &named, &loop) && named == front;
    return word.state != SLOT_FREE && word.owner == front;
}

/* A wake that names a thread of a dead worker would keep the next one waiting (README 42). */
static void forget_wake(const struct board *board, uint32_t worker)
{
    uint64_t seen = atomic_load(&board->header->wake);
    uint32_t thread = (uint32_t)(seen >> 32) - 1;

    if (thread < board_thread_count(board) && board_worker_of(board, thread) == worker)
        (void)atomic_compare_exchange_strong(&board->header->wake, &seen, 0);
}

static void empty_thread(const struct board *board, uint32_t thread)
{
    struct board_thread *dead = &board->threads[thread];

    for (unsigned page = 0; page < BOARD_PAGES; page++)
        atomic_store(&dead->pages[page], 0);
    if (atomic_exchange(&dead->asleep, BOARD_AWAKE) == BOARD_SLEEP_QUEUE)
        atomic_fetch_sub(&board->header->sleepers, 1);
}

/* The last store is the one that gives the entry free. */
static void empty_worker(const struct board *board, uint32_t worker)
{
    struct board_worker *dead = &board->workers[worker];

    for (uint32_t i = 0; i < board->shape.threads; i++)
        empty_thread(board, board_thread_of(board, worker, i));
    forget_wake(board, worker);
    atomic_store(&dead->ready, 0);
    atomic_store(&dead->busy, 0);
    atomic_store(&dead->requests, 0);
    atomic_store(&dead->service_ns, 0);
    atomic_store(&dead->taken_us, 0);
    atomic_store(&dead->private_bytes, 0);
    atomic_store(&dead->pss_bytes, 0);
    atomic_store(&dead->rss_bytes, 0);
    atomic_store(&dead->done_us, 0);
    atomic_store(&dead->streams, 0);
    atomic_store(&dead->generation, 0);
    atomic_store(&dead->audited, 0);
    atomic_store(&dead->pid, 0);
    atomic_store(&dead->life, BOARD_FREE);
}

/* Whether every front that may hold slots has given back what it had in the worker. */
static bool is_audited(const struct board *board, uint32_t worker)
{
    uint32_t audited = atomic_load(&board->workers[worker].audited);

    for (uint32_t front = 0; front < BOARD_FRONTS; front++)
        if (board_is_live(atomic_load(&board->fronts[front].life)) && !(audited & 1U << front))
            return false;
    return true;
}

/* A front's queue may have lost its waker or its place below the mark; whoever sleeps looks again. */
static void ring_sleepers(const struct board *board)
{
    for (uint32_t thread = 0; thread < board_thread_count(board); thread++)
        if (atomic_load(&board->threads[thread].asleep) == BOARD_SLEEP_QUEUE)
            bell_ring_thread(board, thread);
}

/* One slot of a dead front, looked at once. */
static enum finding audit_slot(const struct board *board, uint32_t slot, uint32_t front)
{
    struct slot_word seen = slot_look(board, slot);

    if (!is_of_front(board, slot, seen, front))
        return NOT_OURS;
    if (!is_workers(seen))
        return change(board, slot, seen, freed(seen)) ? GIVEN_BACK : CHANGED;
    /* Pages before the word, so that none outlives its turn (README 32). */
    (void)slot_set_note_of_turn(board, slot, seen.turn, SLOT_LEFT);
    if (seen.owner < board_thread_count(board)) {
        page_drop(board, seen.owner, slot, seen.turn);
        bell_ring_page(board, seen.owner);
    }
    if (slot_is_held(seen) && board_thread_lives(board, seen.owner))
        return STILL_HELD;
    return change(board, slot, seen, freed(seen)) ? GIVEN_BACK : CHANGED;
}

/* The entry's own words, and its vote on dead workers, in which its successor will have nothing. */
static void empty_front(const struct board *board, uint32_t front)
{
    for (uint32_t loop = 0; loop < board->shape.loops; loop++) {
        atomic_store(board_asleep(board, front, loop), BOARD_LOOP_AWAKE);
        for (uint32_t word = 0; word < board->notice_words; word++)
            atomic_store(&board_notices(board, front, loop)[word], 0);
    }
    for (uint32_t worker = 0; worker < board->shape.workers; worker++)
        if (atomic_load(&board->workers[worker].life) == BOARD_DEAD)
            audit_worker_done(board, worker, front);
    atomic_store(&board->fronts[front].pid, 0);
    atomic_store(&board->fronts[front].life, BOARD_FREE);
}

void audit_worker(const struct board *board, uint32_t worker, uint32_t front, uint32_t loop,
                  audit_visit *visit, void *context)
{
    forget_wake(board, worker);
    for (uint32_t slot = 0; slot < board->shape.slots; slot++) {
        struct slot_word word = slot_look(board, slot);
        uint32_t named_front, named_loop;

        if (is_owned_by_worker(board, word, worker) &&
            slot_front(board, slot, &named_front, &named_loop) && named_front == front &&
            named_loop == loop)
            visit(context, slot, word);
    }
}

void audit_worker_done(const struct board *board, uint32_t worker, uint32_t front)
{
    /* Releases what this front gave back to master (acquire in is_audited). */
    atomic_fetch_or(&board->workers[worker].audited, 1U << front);
}

bool audit_worker_free(const struct board *board, uint32_t worker)
{
    uint32_t life = atomic_load(&board->workers[worker].life);

    if (life == BOARD_FREE)
        return true;
    if (life != BOARD_DEAD || !is_audited(board, worker))
        return false;
    for (uint32_t slot = 0; slot < board->shape.slots; slot++) {
        struct slot_word word = slot_look(board, slot);

        if (is_owned_by_worker(board, word, worker))
            (void)change(board, slot, word, freed(word));
    }
    empty_worker(board, worker);
    if (!queue_is_empty(board))
        ring_sleepers(board);
    return true;
}

uint32_t audit_front(const struct board *board, uint32_t front)
{
    uint32_t held = 0;

    if (atomic_load(&board->fronts[front].life) != BOARD_DEAD)
        return 0;
    for (uint32_t slot = 0; slot < board->shape.slots; slot++) {
        enum finding finding = CHANGED;

        for (int tries = 0; finding == CHANGED && tries < AUDIT_TRIES; tries++)
            finding = audit_slot(board, slot, front);
        held += finding == STILL_HELD || finding == CHANGED;
    }
    queue_settle(board);
    if (!queue_is_empty(board))
        ring_sleepers(board);
    if (held == 0)
        empty_front(board, front);
    return held;
}

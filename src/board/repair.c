/* SPDX-License-Identifier: MIT */
#include "board/repair.h"

#include "base/base.h"
#include "board/queue.h"

#include <string.h>

enum { REPAIR_TRIES = 8 };

static bool header_is_right(const struct board *board, const char *runtime)
{
    const struct board_header *header = board->header;

    return header->magic == BOARD_MAGIC && header->version == BOARD_VERSION &&
           header->bytes == board->bytes &&
           memcmp(&header->shape, &board->shape, sizeof board->shape) == 0 &&
           strncmp(header->runtime, runtime, sizeof header->runtime) == 0;
}

/* Owners come and go by master's own hand only, so that one that is not there is nobody. */
static bool front_is_there(const struct board *board, uint32_t front)
{
    return front < BOARD_FRONTS && atomic_load(&board->fronts[front].life) != BOARD_FREE;
}

static bool worker_is_there(const struct board *board, uint32_t thread)
{
    return thread < board_thread_count(board) &&
           atomic_load(&board->workers[board_worker_of(board, thread)].life) != BOARD_FREE;
}

static bool is_possible(const struct board *board, struct slot_word word)
{
    if (word.state == SLOT_FREE)
        return true;
    if (word.state >= SLOT_TAKEN && word.state <= SLOT_DONE)
        return worker_is_there(board, word.owner);
    return word.state <= SLOT_CANCELLED && front_is_there(board, word.owner);
}

const char *repair_find_damage(const struct board *board, const char *runtime)
{
    if (!header_is_right(board, runtime))
        return "its header";
    if (atomic_load(&board->header->high) > board->shape.slots)
        return "the mark of its queue";
    for (uint32_t slot = 0; slot < board->shape.slots; slot++)
        if (!is_possible(board, slot_look(board, slot)))
            return "the words of its slots";
    return NULL;
}

static void write_header(const struct board *board, const char *runtime)
{
    struct board_header *header = board->header;

    header->magic = BOARD_MAGIC;
    header->version = BOARD_VERSION;
    header->shape = board->shape;
    header->bytes = board->bytes;
    memset(header->runtime, 0, sizeof header->runtime);
    memcpy(header->runtime, runtime, strnlen(runtime, sizeof header->runtime - 1));
    atomic_store(&header->wake, 0);
    atomic_store(&header->sleepers, 0);
    /* Too high is always right (README 24). */
    atomic_store(&header->high, board->shape.slots);
}

static void empty_thread(struct board_thread *thread)
{
    for (unsigned page = 0; page < BOARD_PAGES; page++)
        atomic_store(&thread->pages[page], 0);
    atomic_store(&thread->asleep, BOARD_AWAKE);
}

/* No worker is there: what one would own, or nobody can, is free. Fronts may change their own meanwhile. */
static void settle_slot(const struct board *board, uint32_t slot)
{
    for (int tries = 0; tries < REPAIR_TRIES; tries++) {
        struct slot_word word = slot_look(board, slot);
        uint64_t seen = slot_pack(word);

        if (is_possible(board, word))
            return;
        if (atomic_compare_exchange_strong(
                &board->words[slot], &seen,
                slot_pack((struct slot_word){SLOT_FREE, 0, word.turn, 0})))
            return;
    }
}

void repair_board(const struct board *board, const char *runtime)
{
    write_header(board, runtime);
    for (uint32_t thread = 0; thread < board_thread_count(board); thread++)
        empty_thread(&board->threads[thread]);
    for (uint32_t slot = 0; slot < board->shape.slots; slot++)
        settle_slot(board, slot);
    queue_settle(board);
}

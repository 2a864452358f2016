/* SPDX-License-Identifier: MIT */
#include "base/base.h"
#include "board/audit.h"

static uint32_t life_of_front(const struct board *board, uint32_t front)
{
    return atomic_load(&board->fronts[front].life);
}

static uint32_t life_of_thread(const struct board *board, uint32_t thread)
{
    return atomic_load(&board->workers[board_worker_of(board, thread)].life);
}

static const char *check_header(const struct board *board)
{
    const struct board_header *header = board->header;
    uint32_t thread = (uint32_t)(atomic_load(&header->wake) >> 32);

    if (header->magic != BOARD_MAGIC || header->version != BOARD_VERSION)
        return "the header is not that of a board";
    if (memcmp(&header->shape, &board->shape, sizeof(board->shape)) != 0 ||
        header->bytes != board->bytes)
        return "the header's shape is not the one the board was made with";
    if (atomic_load(&header->high) > board->shape.slots)
        return "the mark lies above the last slot";
    if (thread > board_thread_count(board))
        return "the wake in flight names no thread";
    return NULL;
}

static const char *check_front_slot(const struct board *board, struct slot_word word)
{
    bool trimming = word.state == SLOT_FILLING && word.owner == BOARD_FRONTS;

    if (trimming)
        return NULL;
    if (word.owner >= BOARD_FRONTS)
        return "a slot's owner is no front";
    if (life_of_front(board, word.owner) == BOARD_FREE)
        return "a slot belongs to a front that is not there";
    return NULL;
}

static const char *check_worker_slot(const struct board *board, uint32_t slot,
                                     struct slot_word word)
{
    uint32_t front, loop;

    if (word.owner >= board_thread_count(board))
        return "a slot's owner is no worker thread";
    if (life_of_thread(board, word.owner) == BOARD_FREE)
        return "a slot belongs to a worker that is not there";
    if (!slot_front(board, slot, &front, &loop))
        return "a request names no front and loop";
    if (life_of_front(board, front) == BOARD_FREE)
        return "a worker holds a slot of a front that is not there";
    return NULL;
}

static const char *check_slot(const struct board *board, uint32_t slot, uint32_t high,
                              uint32_t ticket)
{
    struct slot_word word = slot_look(board, slot);

    if (word.state > SLOT_CANCELLED)
        return "a slot's state is none";
    if (word.state == SLOT_FREE)
        return word.owner || word.ticket ? "a free slot has an owner or a ticket" : NULL;
    if (slot >= high && word.state != SLOT_FILLING)
        return "a slot above the mark is neither FREE nor FILLING";
    if (word.state != SLOT_FILLING && (int32_t)(ticket - word.ticket) <= 0)
        return "a slot has a ticket that was not yet drawn";
    if (word.state >= SLOT_TAKEN && word.state <= SLOT_DONE)
        return check_worker_slot(board, slot, word);
    return check_front_slot(board, word);
}

static const char *check_page(const struct board *board, uint32_t thread, uint64_t raw)
{
    struct page_word word = page_unpack(raw);
    struct slot_word slot;

    if (word.slot >= board->shape.slots)
        return "a page belongs to no slot";
    if (word.bytes < sizeof(struct page_record) || word.bytes > BOARD_PAGE_BYTES)
        return "a page has an impossible size";
    if (life_of_thread(board, thread) == BOARD_DEAD)
        return NULL;
    slot = slot_look(board, word.slot);
    if (slot.turn != word.turn || slot.owner != thread || slot.state < SLOT_TAKEN ||
        slot.state > SLOT_DONE)
        return "a page outlived its slot's turn";
    return NULL;
}

static const char *check_thread(const struct board *board, uint32_t thread, uint64_t *sleeping)
{
    const struct board_thread *self = &board->threads[thread];
    uint32_t asleep = atomic_load(&self->asleep);
    bool vacant = life_of_thread(board, thread) == BOARD_FREE;
    const char *broken = NULL;

    if (asleep > BOARD_SLEEP_PAGE)
        return "a thread sleeps for nothing known";
    if (vacant && asleep)
        return "a thread sleeps in a worker that is not there";
    *sleeping += asleep == BOARD_SLEEP_QUEUE;
    for (unsigned page = 0; page < BOARD_PAGES && !broken; page++) {
        uint64_t raw = atomic_load(&self->pages[page]);

        if (raw && vacant)
            return "a worker that is not there has a full page";
        if (raw)
            broken = check_page(board, thread, raw);
    }
    return broken;
}

static const char *check_worker(const struct board *board, uint32_t index)
{
    const struct board_worker *worker = &board->workers[index];
    uint32_t life = atomic_load(&worker->life);

    if (life > BOARD_DEAD)
        return "a worker's life is none";
    if (life == BOARD_FREE && (atomic_load(&worker->ready) || atomic_load(&worker->busy) ||
                               atomic_load(&worker->audited) || atomic_load(&worker->pid)))
        return "an unused worker entry is not empty";
    if (atomic_load(&worker->busy) > board->shape.threads)
        return "a worker is busier than it has threads";
    return NULL;
}

static const char *check_fronts(const struct board *board)
{
    for (uint32_t front = 0; front < BOARD_FRONTS; front++) {
        if (life_of_front(board, front) > BOARD_DEAD)
            return "a front's life is none";
        for (uint32_t loop = 0; loop < board->shape.loops; loop++)
            if (atomic_load(board_asleep(board, front, loop)) > BOARD_LOOP_RUNG)
                return "a loop's word is none";
    }
    return NULL;
}

static const char *check_slots(const struct board *board)
{
    uint32_t high = atomic_load(&board->header->high);
    uint32_t ticket = atomic_load(&board->header->ticket);
    const char *broken = NULL;

    for (uint32_t slot = 0; slot < board->shape.slots && !broken; slot++)
        broken = check_slot(board, slot, high, ticket);
    return broken;
}

const char *board_audit(const struct board *board)
{
    const char *broken = check_header(board);
    uint64_t sleeping = 0;

    if (!broken)
        broken = check_fronts(board);
    for (uint32_t i = 0; i < board->shape.workers && !broken; i++)
        broken = check_worker(board, i);
    for (uint32_t i = 0; i < board_thread_count(board) && !broken; i++)
        broken = check_thread(board, i, &sleeping);
    if (!broken)
        broken = check_slots(board);
    if (!broken && atomic_load(&board->header->sleepers) < sleeping)
        broken = "more threads sleep than are counted";
    return broken;
}

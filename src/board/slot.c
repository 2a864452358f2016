/* SPDX-License-Identifier: MIT */
#include "board/slot.h"

#include "base/base.h"
#include "board/bell.h"
#include "board/page.h"
#include "board/queue.h"
#include "board/step.h"

enum {
    NOTE_BITS = 2,
    NOTE_MASK = 3,
    FREE_TRIES = 4 /* only somebody who writes what is not his makes a second try necessary */
};

/* A plain 32-bit field of shared memory, read exactly once (README 3). */
static uint32_t read_once(const uint32_t *field)
{
    return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* Changes a slot's word unless it is no longer the one seen (README 10). */
static bool change(const struct board *board, uint32_t slot, struct slot_word seen,
                   struct slot_word next)
{
    uint64_t expected = slot_pack(seen);

    /* Sequentially consistent: it releases what this party wrote, acquires what the last one wrote, and
     * is ordered before the look at `high`, a front's life or a sleeper (README 20, 31, 41). */
    return atomic_compare_exchange_strong(&board->words[slot], &expected, slot_pack(next));
}

/* Whether a front may free a slot that it owns. States that cannot be have no owner to wait for. */
static bool can_free(const struct board *board, struct slot_word word)
{
    if (slot_is_held(word))
        return !board_thread_lives(board, word.owner);
    return word.state != SLOT_FREE && word.state != SLOT_QUEUED;
}

static bool is_front_lost(const struct board *board, uint32_t front)
{
    return !board_is_live(atomic_load(&board->fronts[front].life));
}

bool slot_front(const struct board *board, uint32_t slot, uint32_t *ret_front, uint32_t *ret_loop)
{
    const struct slot_request *request = slot_request(board, slot);
    uint32_t front = read_once(&request->front);
    uint32_t loop = read_once(&request->loop);

    if (front >= BOARD_FRONTS || loop >= board->shape.loops)
        return false;
    *ret_front = front;
    *ret_loop = loop;
    return true;
}

struct span slot_text(const struct board *board, uint32_t slot, struct slot_span part)
{
    uint32_t limit = board->shape.slot_bytes;

    if (part.offset > limit || part.size > limit - part.offset)
        return (struct span){NULL, 0};
    return span_make((const char *)slot_request(board, slot) + part.offset, part.size);
}

int64_t slot_claim(const struct board *board, uint32_t front, uint32_t *ret_turn)
{
    for (uint32_t slot = 0; slot < board->shape.slots; slot++) {
        uint64_t seen = atomic_load_explicit(&board->words[slot], memory_order_relaxed);
        struct slot_word word = slot_unpack(seen);

        if (word.state != SLOT_FREE)
            continue;
        word = (struct slot_word){SLOT_FILLING, front, (word.turn + 1) % SLOT_TURNS, 0};
        /* Acquire: partner of the release in slot_free, so that the old turn's readers are done. */
        if (!atomic_compare_exchange_strong_explicit(&board->words[slot], &seen, slot_pack(word),
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        BOARD_STEP(SLOT_CLAIMED);
        /* Relaxed: queue_push publishes it together with the request. */
        atomic_store_explicit(&board->notes[slot], word.turn << NOTE_BITS | SLOT_WANTED,
                              memory_order_relaxed);
        *ret_turn = word.turn;
        return slot;
    }
    return -1;
}

void slot_begin(const struct board *board, uint32_t slot, uint32_t front, uint32_t loop)
{
    struct slot_request *request = slot_request(board, slot);

    memset(request, 0, sizeof(*request));
    request->front = front;
    request->loop = loop;
    request->used = sizeof(*request);
    BOARD_STEP(SLOT_FILLED);
}

bool slot_append(const struct board *board, uint32_t slot, struct span bytes,
                 struct slot_span *ret_part)
{
    struct slot_request *request = slot_request(board, slot);
    uint32_t used = read_once(&request->used);

    if (used > board->shape.slot_bytes || bytes.size > board->shape.slot_bytes - used)
        return false;
    if (bytes.size)
        memcpy((char *)request + used, bytes.data, bytes.size);
    request->used = used + (uint32_t)bytes.size;
    *ret_part = (struct slot_span){used, (uint32_t)bytes.size};
    return true;
}

struct slot_field *slot_fields(const struct board *board, uint32_t slot, uint32_t count)
{
    struct slot_request *request = slot_request(board, slot);
    uint64_t start = ((uint64_t)read_once(&request->used) + 3) / 4 * 4;
    uint64_t end = start + count * (uint64_t)sizeof(struct slot_field);

    if (end > board->shape.slot_bytes)
        return NULL;
    request->field_offset = (uint32_t)start;
    request->field_count = count;
    request->used = (uint32_t)end;
    return (struct slot_field *)((char *)request + start);
}

bool slot_advance(const struct board *board, uint32_t slot, uint32_t thread, enum slot_state state)
{
    struct slot_word seen = slot_look(board, slot);
    struct slot_word next = seen;

    next.state = state;
    if (!slot_is_held(seen) || seen.owner != thread || !slot_is_held(next) || state <= seen.state ||
        !change(board, slot, seen, next))
        return false;
    if (state == SLOT_CALLED)
        BOARD_STEP(SLOT_CALLED);
    else
        BOARD_STEP(SLOT_REPLYING);
    return true;
}

bool slot_finish(const struct board *board, uint32_t slot, uint32_t thread)
{
    struct slot_word seen = slot_look(board, slot);
    struct slot_word done = seen;
    uint32_t front, loop;
    bool told;

    if (!slot_is_held(seen) || seen.owner != thread)
        return false;
    /* Who waits is read while the slot is still ours: once DONE, it may be another request's. */
    told = slot_front(board, slot, &front, &loop);
    done.state = SLOT_DONE;
    if (!change(board, slot, seen, done))
        return false;
    BOARD_STEP(SLOT_DONE);
    if (!told)
        return true;
    /* README 31: DONE comes before the look at the front's life, as DEAD does before master's audit. */
    if (is_front_lost(board, front)) {
        page_drop(board, thread, slot, done.turn);
        (void)change(board, slot, done, (struct slot_word){SLOT_FREE, 0, done.turn, 0});
        return true;
    }
    bell_notify_front(board, front, loop, thread);
    BOARD_STEP(SLOT_FINISHED);
    return true;
}

bool slot_free(const struct board *board, uint32_t slot)
{
    for (int tries = 0; tries < FREE_TRIES; tries++) {
        struct slot_word seen = slot_look(board, slot);

        if (!can_free(board, seen))
            return false;
        /* Before FREE, so that no page ever outlives its slot's turn (README 32). */
        if (seen.state >= SLOT_TAKEN && seen.state <= SLOT_DONE &&
            seen.owner < board_thread_count(board))
            page_drop(board, seen.owner, slot, seen.turn);
        BOARD_STEP(PAGES_DROPPED);
        if (change(board, slot, seen, (struct slot_word){SLOT_FREE, 0, seen.turn, 0})) {
            BOARD_STEP(SLOT_FREED);
            queue_lower(board, slot);
            return true;
        }
    }
    return false;
}

void slot_set_note(const struct board *board, uint32_t slot, enum slot_note note)
{
    uint32_t seen = atomic_load_explicit(&board->notes[slot], memory_order_relaxed);
    struct slot_word word;

    /* Sequentially consistent: before the look at the sleeper, which says that it sleeps before it looks
     * at the note (README 41). */
    atomic_store(&board->notes[slot], (seen & ~(uint32_t)NOTE_MASK) | note);
    BOARD_STEP(NOTE_SET);
    word = slot_look(board, slot);
    if (slot_is_held(word) && word.owner < board_thread_count(board))
        bell_ring_page(board, word.owner);
}

bool slot_set_note_of_turn(const struct board *board, uint32_t slot, uint32_t turn,
                           enum slot_note note)
{
    uint32_t wanted = turn << NOTE_BITS | SLOT_WANTED;

    /* Sequentially consistent as above. It fails when the slot has begun another turn. */
    return atomic_compare_exchange_strong(&board->notes[slot], &wanted, turn << NOTE_BITS | note);
}

enum slot_note slot_get_note(const struct board *board, uint32_t slot)
{
    uint32_t note = atomic_load(&board->notes[slot]) & NOTE_MASK;

    return note > SLOT_LATE ? SLOT_LEFT : (enum slot_note)note;
}

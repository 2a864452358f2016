/* SPDX-License-Identifier: MIT */
#include "board/queue.h"

#include "base/base.h"
#include "board/step.h"

enum {
    GROUP = BOARD_LINE / 8, /* words of one cache line; the mark is a multiple of it */
    RAISE_TRIES = 100       /* then the mark goes to the top, which is always right */
};

/* Sequentially consistent: a load as cheap as any, and the second look of a thread that has said that it
 * sleeps must not come before it said so (README 40). */
static uint64_t look(const struct board *board, uint32_t slot)
{
    return atomic_load(&board->words[slot]);
}

static bool is_state(uint64_t word, enum slot_state state)
{
    return word >> 60 == (uint64_t)state;
}

/* Whether ticket a was drawn before b; they count on through 0 and are never 2^31 apart. */
static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static uint32_t end_of_group(const struct board *board, uint32_t slot)
{
    uint32_t end = (slot / GROUP + 1) * GROUP;

    return end < board->shape.slots ? end : board->shape.slots;
}

/* The oldest queued request below the mark; false when none is queued. */
static bool find_oldest(const struct board *board, uint32_t *ret_slot, uint64_t *ret_word)
{
    uint32_t high = queue_high(board);
    bool found = false;
    uint32_t oldest = 0;

    for (uint32_t slot = 0; slot < high; slot++) {
        uint64_t word = look(board, slot);

        if (!is_state(word, SLOT_QUEUED) || (found && !is_before((uint32_t)word, oldest)))
            continue;
        found = true;
        oldest = (uint32_t)word;
        *ret_slot = slot;
        *ret_word = word;
    }
    return found;
}

/* One behind the highest slot below `from` that is not FREE. */
static uint32_t end_of_used(const struct board *board, uint32_t from)
{
    while (from > 0 && is_state(look(board, from - 1), SLOT_FREE))
        from--;
    return from;
}

uint32_t queue_high(const struct board *board)
{
    uint32_t high = atomic_load(&board->header->high);

    return high < board->shape.slots ? high : board->shape.slots;
}

void queue_raise(const struct board *board, uint32_t slot)
{
    uint32_t wanted = end_of_group(board, slot);
    uint32_t high = atomic_load(&board->header->high);

    /* README 20: the word was published before this load; a lowerer looks at words after its store. */
    for (int tries = 0; high < wanted; tries++) {
        if (tries == RAISE_TRIES) {
            atomic_store(&board->header->high, board->shape.slots);
            break;
        }
        if (atomic_compare_exchange_weak(&board->header->high, &high, wanted))
            break;
    }
    BOARD_STEP(HIGH_RAISED);
}

void queue_lower(const struct board *board, uint32_t slot)
{
    uint32_t seen = atomic_load(&board->header->high);
    uint32_t high = seen < board->shape.slots ? seen : board->shape.slots;
    uint32_t wanted, cut;

    /* README 22: one group above the used ones stays covered, so that a steady depth writes no mark. */
    if (high <= GROUP || slot + 2 * GROUP < high)
        return;
    wanted = (end_of_used(board, high) + 2 * GROUP - 1) / GROUP * GROUP;
    if (wanted >= high || !atomic_compare_exchange_strong(&board->header->high, &seen, wanted))
        return;
    BOARD_STEP(HIGH_LOWERED);
    /* README 21: whoever published below the old mark before the exchange did not raise it. */
    cut = end_of_used(board, high);
    if (cut > wanted)
        queue_raise(board, cut - 1);
}

void queue_settle(const struct board *board)
{
    uint32_t used = end_of_used(board, board->shape.slots);

    if (used > queue_high(board))
        queue_raise(board, used - 1);
    if (queue_high(board) > 0)
        queue_lower(board, queue_high(board) - 1);
}

bool queue_push(const struct board *board, uint32_t slot, uint64_t now_us)
{
    struct slot_word seen = slot_look(board, slot);
    uint64_t expected = slot_pack(seen);
    struct slot_word next = seen;

    if (seen.state != SLOT_FILLING)
        return false;
    /* Atomic as its reader is: another loop may look at it for the queue's age. */
    __atomic_store_n(&slot_request(board, slot)->queued_us, now_us, __ATOMIC_RELAXED);
    /* Relaxed: a ticket is only a number; the word below publishes it. */
    next.ticket = atomic_fetch_add_explicit(&board->header->ticket, 1, memory_order_relaxed);
    next.state = SLOT_QUEUED;
    BOARD_STEP(PUSH_TICKETED);
    /* Releases the request to the worker that takes it (acquire in queue_take); sequentially consistent
     * before the looks at `high` (README 20) and at header.wake and sleepers (README 40). */
    if (!atomic_compare_exchange_strong(&board->words[slot], &expected, slot_pack(next)))
        return false;
    BOARD_STEP(SLOT_QUEUED);
    queue_raise(board, slot);
    return true;
}

bool queue_push_again(const struct board *board, uint32_t slot, struct slot_word seen,
                      uint32_t front)
{
    uint64_t expected = slot_pack(seen);
    struct slot_word next = {SLOT_QUEUED, front, seen.turn, seen.ticket};

    /* As in queue_push. The turn stays: pages of the dead thread are never asked for again, and its
     * entry is not used before they are emptied (README 51). */
    if (!slot_is_held(seen) ||
        !atomic_compare_exchange_strong(&board->words[slot], &expected, slot_pack(next)))
        return false;
    BOARD_STEP(SLOT_REQUEUED);
    queue_raise(board, slot);
    return true;
}

int64_t queue_take(const struct board *board, uint32_t thread, struct slot_word *ret_word)
{
    uint32_t slot;
    uint64_t seen;

    CHECK(thread < board_thread_count(board));
    while (find_oldest(board, &slot, &seen)) {
        struct slot_word word = slot_unpack(seen);

        word.state = SLOT_TAKEN;
        word.owner = thread;
        /* Acquire: partner of the release in queue_push. A failure means that another thread took it or
         * its front cancelled it: somebody came forward. */
        if (!atomic_compare_exchange_strong_explicit(&board->words[slot], &seen, slot_pack(word),
                                                     memory_order_acq_rel, memory_order_relaxed))
            continue;
        BOARD_STEP(SLOT_TAKEN);
        *ret_word = word;
        return slot;
    }
    return -1;
}

int64_t queue_oldest_us(const struct board *board, uint64_t now_us)
{
    uint64_t word, since;
    uint32_t slot;

    if (!find_oldest(board, &slot, &word))
        return -1;
    since = __atomic_load_n(&slot_request(board, slot)->queued_us, __ATOMIC_RELAXED);
    return since < now_us && now_us - since <= INT64_MAX ? (int64_t)(now_us - since) : 0;
}

bool queue_is_empty(const struct board *board)
{
    uint32_t high = queue_high(board);

    for (uint32_t slot = 0; slot < high; slot++)
        if (is_state(look(board, slot), SLOT_QUEUED))
            return false;
    return true;
}

uint32_t queue_length(const struct board *board)
{
    uint32_t high = queue_high(board);
    uint32_t length = 0;

    for (uint32_t slot = 0; slot < high; slot++)
        length += is_state(look(board, slot), SLOT_QUEUED);
    return length;
}

bool queue_cancel(const struct board *board, uint32_t slot, uint32_t turn)
{
    struct slot_word seen = slot_look(board, slot);
    uint64_t expected = slot_pack(seen);
    struct slot_word next = seen;

    next.state = SLOT_CANCELLED;
    /* Relaxed: nothing is handed over, and the front reads the slot no more. */
    if (seen.state != SLOT_QUEUED || seen.turn != turn ||
        !atomic_compare_exchange_strong_explicit(&board->words[slot], &expected, slot_pack(next),
                                                 memory_order_relaxed, memory_order_relaxed))
        return false;
    BOARD_STEP(SLOT_CANCELLED);
    return true;
}

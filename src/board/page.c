/* SPDX-License-Identifier: MIT */
#include "board/page.h"

#include "base/base.h"
#include "board/bell.h"
#include "board/step.h"

enum { PADDING = 8 };

/* A full page of a thread: its index and what its word says. */
struct found {
    unsigned page;
    struct page_word word;
};

static _Atomic uint64_t *word_of(const struct board *board, uint32_t thread, unsigned page)
{
    return &board->threads[thread].pages[page];
}

static size_t padded(size_t size)
{
    return (size + PADDING - 1) / PADDING * PADDING;
}

/* Whether our own worker could have written this word. */
static bool is_possible(const struct board *board, uint64_t raw)
{
    struct page_word word = page_unpack(raw);

    return word.slot < board->shape.slots && word.bytes >= sizeof(struct page_record) &&
           word.bytes <= BOARD_PAGE_BYTES && word.bytes % PADDING == 0;
}

/* Whether sequence a was published before b; at most BOARD_PAGES apart, counted modulo
 * PAGE_SEQUENCES. */
static bool is_before(uint32_t a, uint32_t b)
{
    return ((a - b) & (PAGE_SEQUENCES - 1)) > PAGE_SEQUENCES / 2;
}

/* Puts one more page in its place in order of sequence. */
static void insert(struct found *list, unsigned count, struct found one)
{
    while (count > 0 && is_before(one.word.sequence, list[count - 1].word.sequence)) {
        list[count] = list[count - 1];
        count--;
    }
    list[count] = one;
}

/* The full pages of a thread in order of sequence. */
static unsigned find_full(const struct board *board, uint32_t thread,
                          struct found list[BOARD_PAGES])
{
    unsigned count = 0;

    for (unsigned page = 0; page < BOARD_PAGES; page++) {
        /* Acquire: partner of the release in page_publish, for the bytes of the page. */
        uint64_t raw = atomic_load_explicit(word_of(board, thread, page), memory_order_acquire);

        if (raw && is_possible(board, raw))
            insert(list, count++, (struct found){page, page_unpack(raw)});
    }
    return count;
}

static char *bytes_of(const struct board *board, uint32_t thread, unsigned page)
{
    return board->pages + ((size_t)thread * BOARD_PAGES + page) * BOARD_PAGE_BYTES;
}

bool page_can_write(const struct page_writer *writer)
{
    /* Sequentially consistent: partner of page_release; and the second look of a thread that has said
     * that it sleeps for a page (README 41). */
    return atomic_load(word_of(writer->board, writer->thread, writer->page)) == 0;
}

uint32_t page_room(const struct page_writer *writer)
{
    uint32_t needed = writer->used + (uint32_t)sizeof(struct page_record);

    return needed < BOARD_PAGE_BYTES ? BOARD_PAGE_BYTES - needed : 0;
}

char *page_put(struct page_writer *writer, uint8_t type, uint8_t flags, uint32_t size)
{
    struct page_record record = {type, flags, 0, size};
    char *at = bytes_of(writer->board, writer->thread, writer->page) + writer->used;

    /* An empty record needs no room behind its header. */
    CHECK(writer->used + sizeof(record) <= BOARD_PAGE_BYTES && size <= page_room(writer));
    memcpy(at, &record, sizeof(record));
    writer->used += (uint32_t)(sizeof(record) + padded(size));
    return at + sizeof(record);
}

void page_publish(struct page_writer *writer)
{
    struct page_word word = {writer->slot, writer->turn, writer->sequence, writer->used};
    uint32_t front, loop;

    if (writer->used == 0)
        return;
    CHECK(page_can_write(writer));
    BOARD_STEP(PAGE_FILLED);
    /* Release: the records become the front's (acquire in find_full). */
    atomic_store_explicit(word_of(writer->board, writer->thread, writer->page), page_pack(word),
                          memory_order_release);
    BOARD_STEP(PAGE_PUBLISHED);
    writer->sequence = (writer->sequence + 1) % PAGE_SEQUENCES;
    writer->page = (writer->page + 1) % BOARD_PAGES;
    writer->used = 0;
    if (slot_front(writer->board, writer->slot, &front, &loop))
        bell_notify_front(writer->board, front, loop, writer->thread);
}

bool page_is_lost(const struct page_writer *writer)
{
    const struct board *board = writer->board;
    uint32_t front, loop;

    return slot_get_note(board, writer->slot) != SLOT_WANTED ||
           !slot_front(board, writer->slot, &front, &loop) ||
           !board_is_live(atomic_load(&board->fronts[front].life));
}

int page_find(const struct board *board, uint32_t thread, uint32_t slot, uint32_t turn,
              struct page_word *ret_word)
{
    struct found list[BOARD_PAGES];
    unsigned count = find_full(board, thread, list);

    for (unsigned i = 0; i < count; i++) {
        if (list[i].word.slot != slot || list[i].word.turn != turn)
            continue;
        *ret_word = list[i].word;
        return (int)list[i].page;
    }
    return -1;
}

unsigned page_list(const struct board *board, uint32_t thread, struct page_word out[BOARD_PAGES])
{
    struct found list[BOARD_PAGES];
    unsigned count = find_full(board, thread, list);

    for (unsigned i = 0; i < count; i++)
        out[i] = list[i].word;
    return count;
}

bool page_is_broken(const struct board *board, uint32_t thread)
{
    for (unsigned page = 0; page < BOARD_PAGES; page++) {
        uint64_t raw = atomic_load_explicit(word_of(board, thread, page), memory_order_relaxed);

        if (raw && !is_possible(board, raw))
            return true;
    }
    return false;
}

const char *page_bytes(const struct board *board, uint32_t thread, unsigned page)
{
    return bytes_of(board, thread, page);
}

/* A thread that waits for a page sleeps until half of them are empty: one wake serves several answers.
 * The rest is always taken later, so that the wake comes (README 41). */
static bool is_half_empty(const struct board *board, uint32_t thread)
{
    unsigned empty = 0;

    for (unsigned page = 0; page < BOARD_PAGES; page++)
        empty += atomic_load_explicit(word_of(board, thread, page), memory_order_relaxed) == 0;
    return empty >= BOARD_PAGES / 2;
}

void page_release(const struct board *board, uint32_t thread, unsigned page, struct page_word seen)
{
    uint64_t expected = page_pack(seen);

    /* Releases the page to its writer once its bytes are copied (page_can_write), and comes before the
     * look at the sleeper (README 41). */
    (void)atomic_compare_exchange_strong(word_of(board, thread, page), &expected, 0);
    BOARD_STEP(PAGE_RELEASED);
    if (is_half_empty(board, thread))
        bell_ring_page(board, thread);
}

void page_drop(const struct board *board, uint32_t thread, uint32_t slot, uint32_t turn)
{
    bool dropped = false;

    for (unsigned page = 0; page < BOARD_PAGES; page++) {
        uint64_t raw = atomic_load_explicit(word_of(board, thread, page), memory_order_acquire);
        struct page_word word = page_unpack(raw);

        if (raw && word.slot == slot && word.turn == turn)
            dropped |= atomic_compare_exchange_strong(word_of(board, thread, page), &raw, 0);
    }
    if (dropped)
        bell_ring_page(board, thread);
}

bool page_next(struct span *bytes, struct page_record *ret_record, struct span *ret_payload,
               bool *ret_broken)
{
    struct page_record record;
    size_t room;

    *ret_broken = false;
    if (bytes->size == 0)
        return false;
    *ret_broken = true;
    if (bytes->size < sizeof(record))
        return false;
    memcpy(&record, bytes->data, sizeof(record));
    room = bytes->size - sizeof(record);
    if (record.type < PAGE_INTERIM || record.type > PAGE_END || record.zero != 0 ||
        record.size > room || padded(record.size) > room)
        return false;
    *ret_broken = false;
    *ret_record = record;
    *ret_payload = span_make(bytes->data + sizeof(record), record.size);
    *bytes = span_skip(*bytes, sizeof(record) + padded(record.size));
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reply pages: each worker thread owns BOARD_PAGES of them and fills them in turn, so that no answer
 * waits for another's. A page belongs to the front of its slot while its word is not 0.
 *
 *   word:   | slot 20 | turn 14 | sequence 14 | bytes 16 |      0 = empty, the worker may fill it
 *   page:   record record record ...
 *   record: | type 1 | flags 1 | 0 2 | size 4 | payload, padded to 8 |
 *
 * A reply is the sequence  INTERIM* HEAD+ (DATA | FILE)* TRAILERS? END  or  INTERIM* HEAD* TUNNEL, the head
 * with PAGE_RAW. A head larger than a page comes as several HEAD records, all but the last with PAGE_MORE. The worker is not trusted: the
 * front copies a page's bytes out before it looks at them, and page_next checks every length.
 */
#pragma once

#include "board/slot.h"

enum page_record_type {
    PAGE_INTERIM = 1, /* payload: a head, status 103 */
    PAGE_HEAD,        /* payload: struct page_head, then fields; see below */
    PAGE_DATA,        /* payload: bytes of the body */
    PAGE_FILE,        /* payload: struct page_file; the descriptor was passed before */
    PAGE_TUNNEL,      /* the connection was hijacked, the socket passed before; the last record */
    PAGE_TRAILERS,    /* payload: fields */
    PAGE_END          /* flags: PAGE_CUT when the answer is incomplete and must be seen so */
};

enum page_record_flag {
    PAGE_MORE = 1,    /* HEAD: another HEAD record continues it */
    PAGE_CUT = 2,     /* END: the body ended early (exception, client gone) */
    PAGE_STREAM = 4,  /* HEAD: parts are to be sent at once, with back-pressure */
    PAGE_CLOSE = 8,   /* HEAD: the application asked for "connection: close" */
    PAGE_RAW = 16,    /* HEAD: TUNNEL follows; the status may be 101 */
    PAGE_CHUNKED = 32 /* HEAD with RAW: the worker frames what it sends in chunks */
};

/* Start of the (joined) HEAD payload. Each field follows as u16 name size, u16 0, u32 value size, name,
 * value, without padding; names in lower case. */
struct page_head {
    uint16_t status; /* 200 .. 599, 101 with PAGE_RAW, 103 in INTERIM */
    uint16_t field_count;
};

struct page_file {
    uint64_t offset;
    uint64_t size; /* bytes from offset; the front checks it against the file */
};

struct page_record {
    uint8_t type;
    uint8_t flags;
    uint16_t zero;
    uint32_t size; /* of the payload */
};

/* A page word taken apart. */
struct page_word {
    uint32_t slot;
    uint32_t turn;
    uint32_t sequence;
    uint32_t bytes;
};

enum { PAGE_SEQUENCES = 1 << 14 }; /* sequences count modulo this */

static inline struct page_word page_unpack(uint64_t word)
{
    return (struct page_word){(uint32_t)(word >> 44), (uint32_t)(word >> 30) & 0x3fff,
                              (uint32_t)(word >> 16) & 0x3fff, (uint32_t)word & 0xffff};
}

static inline uint64_t page_pack(struct page_word word)
{
    return (uint64_t)word.slot << 44 | (uint64_t)(word.turn & 0x3fff) << 30 |
           (uint64_t)(word.sequence & 0x3fff) << 16 | (word.bytes & 0xffff);
}

/* One worker thread's side while it fills pages for one slot; lives in the worker. */
struct page_writer {
    const struct board *board;
    uint32_t thread;
    uint32_t slot;
    uint32_t turn;
    uint32_t sequence; /* of the next page to publish; runs on over slots */
    uint32_t page;     /* the next page to fill */
    uint32_t used;     /* bytes in the page being filled */
};

/* Worker: the page being filled; false when it still belongs to a front (wait with BOARD_SLEEP_PAGE on
 * the bell, then ask again; see page_is_lost). */
bool page_can_write(const struct page_writer *writer);

/* Worker: room for payload in the current page behind one more record header, 0 when full. */
uint32_t page_room(const struct page_writer *writer);

/* Worker: begins a record of at most page_room bytes and returns where its payload goes; the caller has
 * checked page_can_write. */
char *page_put(struct page_writer *writer, uint8_t type, uint8_t flags, uint32_t size);

/* Worker: hands the page over (release) and notifies the slot's front; harmless when it is empty. */
void page_publish(struct page_writer *writer);

/* Worker: nobody will take this thread's pages: the slot's front is dead, or the slot has a note. */
bool page_is_lost(const struct page_writer *writer);

/* Front: looks for the pages of this thread that belong to (slot, turn), oldest sequence first. Returns
 * the index of the page and its word, or -1. A hostile worker may fill pages without end: take at most
 * BOARD_PAGES of them before other work. Words that cannot be (no such slot, too many bytes) are skipped
 * here and in page_list, see page_is_broken. */
int page_find(const struct board *board, uint32_t thread, uint32_t slot, uint32_t turn,
              struct page_word *ret_word);

/* Front: the slots that this thread's full pages name now, as (slot, turn) words in order of sequence;
 * returns how many (at most BOARD_PAGES). Values are not trusted. */
unsigned page_list(const struct board *board, uint32_t thread, struct page_word out[BOARD_PAGES]);

/* Front: one of this thread's page words is none that our worker writes: its process is to be killed. */
bool page_is_broken(const struct board *board, uint32_t thread);

/* Front: the bytes of a page; copy them before looking at them. */
const char *page_bytes(const struct board *board, uint32_t thread, unsigned page);

/* Front: the page was taken; empties it if its word is still the one seen, and wakes the thread if it
 * waits for a page. */
void page_release(const struct board *board, uint32_t thread, unsigned page, struct page_word seen);

/* Front, or the worker when its front is dead: empties the pages of this thread that carry (slot, turn),
 * and wakes the thread if it waits for one. slot_free and slot_finish do it. */
void page_drop(const struct board *board, uint32_t thread, uint32_t slot, uint32_t turn);

/* Front: walks records in bytes that were copied out of a page. Returns true with the next record and
 * its payload; false at the end, or with *ret_broken true when the bytes are no records. */
bool page_next(struct span *bytes, struct page_record *ret_record, struct span *ret_payload,
               bool *ret_broken);

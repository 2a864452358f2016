/* SPDX-License-Identifier: MIT */
/*
 * A slot is one request's cell: a state word, a note, and the request itself.
 *
 *   word:  | state 4 | owner 14 | turn 14 | ticket 32 |
 *
 *   FREE -> FILLING -> QUEUED -> TAKEN -> CALLED -> REPLYING -> DONE -> FREE
 *           front      front     worker   worker    worker      worker  front
 *                      QUEUED -> CANCELLED -> FREE (front)
 *
 * The owner is a front's number up to QUEUED and a worker's thread number from TAKEN on. The turn counts
 * the uses of the slot: a word, page or question that carries another turn is stale and skipped. The
 * front keeps its own copy of everything it decides by (slot -> exchange, turn, lengths).
 */
#pragma once

#include "board/board.h"

enum slot_state {
    SLOT_FREE,
    SLOT_FILLING,
    SLOT_QUEUED,
    SLOT_TAKEN,
    SLOT_CALLED,
    SLOT_REPLYING,
    SLOT_DONE,
    SLOT_CANCELLED
};

/* What the front tells the worker about a request it no longer wants answered. */
enum slot_note { SLOT_WANTED, SLOT_LEFT, SLOT_LATE };

/* A slot word taken apart. */
struct slot_word {
    enum slot_state state;
    uint32_t owner;
    uint32_t turn;
    uint32_t ticket;
};

/* Part of the slot's bytes, counted from the slot's start. */
struct slot_span {
    uint32_t offset;
    uint32_t size;
};

struct slot_field {
    struct slot_span name; /* lower case */
    struct slot_span value;
};

enum slot_body { SLOT_BODY_NONE, SLOT_BODY_INLINE, SLOT_BODY_FILE };

enum slot_flag {
    SLOT_FLAG_HTTPS = 1,   /* rack.url_scheme is https */
    SLOT_FLAG_HEAD = 2,    /* a HEAD request: no body will be sent */
    SLOT_FLAG_HTTP10 = 4,  /* the client speaks HTTP/1.0 */
    SLOT_FLAG_UPGRADE = 8, /* the client asked for an upgrade and a tunnel is possible */
    SLOT_FLAG_TUNNEL = 16  /* the connection can be hijacked */
};

/* The head of a slot; field table and strings follow, then a small body. */
struct slot_request {
    uint32_t front; /* who waits for the answer */
    uint32_t loop;
    uint64_t queued_us;        /* monotonic; front */
    uint64_t wall_ms;          /* wall clock when the request was complete; front */
    _Atomic uint64_t taken_us; /* monotonic; worker */
    uint32_t flags;            /* enum slot_flag */
    uint32_t body_kind;        /* enum slot_body */
    uint64_t body_bytes;
    uint32_t body_offset; /* of an inline body */
    uint32_t field_count;
    uint32_t field_offset; /* of the struct slot_field table */
    uint32_t used;         /* bytes of the slot in use */
    struct slot_span method, target, path, query, script_name, protocol;
    struct slot_span server_name, server_port, remote_address, request_id;
    struct slot_span public_root; /* reserved for X-Sendfile; empty */
};

enum { SLOT_TURNS = 1 << 14 }; /* turns count modulo this */

/* Takes a word apart, and puts it together. */
static inline struct slot_word slot_unpack(uint64_t word)
{
    return (struct slot_word){(enum slot_state)(word >> 60), (uint32_t)(word >> 46) & 0x3fff,
                              (uint32_t)(word >> 32) & (SLOT_TURNS - 1), (uint32_t)word};
}

static inline uint64_t slot_pack(struct slot_word word)
{
    return (uint64_t)word.state << 60 | (uint64_t)(word.owner & 0x3fff) << 46 |
           (uint64_t)(word.turn & (SLOT_TURNS - 1)) << 32 | word.ticket;
}

/* Whether the worker of this thread holds the slot: TAKEN, CALLED or REPLYING. */
static inline bool slot_is_held(struct slot_word word)
{
    return word.state >= SLOT_TAKEN && word.state <= SLOT_REPLYING;
}

/* The slot's word as it is now (acquire). */
static inline struct slot_word slot_look(const struct board *board, uint32_t slot)
{
    return slot_unpack(atomic_load_explicit(&board->words[slot], memory_order_acquire));
}

/* The bytes of a slot. */
static inline struct slot_request *slot_request(const struct board *board, uint32_t slot)
{
    return (struct slot_request *)(board->slots + (size_t)slot * board->shape.slot_bytes);
}

/* The front and loop that a slot's request names, each read once; false when they cannot be. */
bool slot_front(const struct board *board, uint32_t slot, uint32_t *ret_front, uint32_t *ret_loop);

/* The bytes of a part, or an empty span when it does not lie inside the slot. */
struct span slot_text(const struct board *board, uint32_t slot, struct slot_span part);

/* Front: claims the lowest free slot for filling, with its next turn and a cleared note. Returns its
 * number, or -1 when all are taken (an ordinary answer). The filler owns the slot's bytes until
 * queue_push. */
int64_t slot_claim(const struct board *board, uint32_t front, uint32_t *ret_turn);

/* Front: appends bytes to a slot being filled (request->used grows; start with slot_begin). False, and
 * nothing written, when they do not fit. */
void slot_begin(const struct board *board, uint32_t slot, uint32_t front, uint32_t loop);
bool slot_append(const struct board *board, uint32_t slot, struct span bytes,
                 struct slot_span *ret_part);

/* Front: reserves the table of count fields; the caller fills it. NULL when it does not fit. */
struct slot_field *slot_fields(const struct board *board, uint32_t slot, uint32_t count);

/* Worker: moves a slot that it owns forward (TAKEN -> CALLED -> REPLYING). Release order. False, and
 * nothing changed, when this thread does not hold the slot or it is as far already. */
bool slot_advance(const struct board *board, uint32_t slot, uint32_t thread, enum slot_state state);

/* Worker: the answer is complete, or the request was given up. The slot becomes DONE for its front,
 * which is told, or FREE when that front is dead. False when this thread does not hold the slot. */
bool slot_finish(const struct board *board, uint32_t slot, uint32_t thread);

/* Front: gives back a slot of its own that is FILLING, CANCELLED or DONE, or held by a worker that is
 * dead; drops pages that still carry it and lowers the high-water mark when it can. False, and nothing
 * changed, while the slot is FREE, QUEUED or held by a living worker. The caller compares the turn with
 * its private copy first. */
bool slot_free(const struct board *board, uint32_t slot);

/* Front: tells the worker, and rings it when it waits for a page; worker: asks.
 *
 *   note:  | turn 14 | enum slot_note 2 |
 */
void slot_set_note(const struct board *board, uint32_t slot, enum slot_note note);
bool slot_set_note_of_turn(const struct board *board, uint32_t slot, uint32_t turn,
                           enum slot_note note); /* master, for a dead front; rings nobody */
enum slot_note slot_get_note(const struct board *board, uint32_t slot);

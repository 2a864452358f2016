/* SPDX-License-Identifier: MIT */
/*
 * Collects the body of one request, with a length or chunked, into memory and beyond a bound into an
 * unlinked file. Embedded in its connection, one loop.
 */
#pragma once

#include "http/exchange.h"
#include "http/h1_chunk.h"
#include "http/h1_framing.h"

/* Where bodies go; the connection's options. */
struct h1_spool {
    size_t memory_bytes; /* a body beyond this goes to a file */
    const char *folder;
    uint64_t *used; /* bytes in all files of this loop */
    uint64_t limit; /* of *used */
};

struct h1_body_reader {
    enum h1_body kind;
    bool dropped;           /* counted only; set by the owner behind h1_body_start */
    uint64_t left;          /* LENGTH: bytes still to come */
    struct h1_chunk chunk;  /* CHUNKED */
    uint64_t spooled_bytes; /* this body's share of *spool->used */
};

/* Prepares for the body that framing announces. */
void h1_body_start(struct h1_body_reader *reader, const struct h1_framing *framing,
                   size_t trailer_limit);

enum h1_body_result { H1_BODY_MORE, H1_BODY_END, H1_BODY_REFUSED };

/* Takes what belongs to the body off the front of bytes; *ret_used of them are used. After
 * H1_BODY_REFUSED *ret_refusal says why. */
enum h1_body_result h1_body_read(struct h1_body_reader *reader, struct request *request,
                                 const struct h1_spool *spool, struct span bytes, size_t *ret_used,
                                 enum refusal *ret_refusal);

/* Gives the share of the spool back; the file itself is the exchange's. */
void h1_body_done(struct h1_body_reader *reader, const struct h1_spool *spool);

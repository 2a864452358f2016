/* SPDX-License-Identifier: MIT */
/*
 * Reads the head of one request. It can be fed the whole head or any beginnings of it and always comes
 * to the same result; it keeps offsets, no pointers, so that the bytes may move between two calls. It
 * knows the grammar only: what fields mean is decided by http/h1_framing. One thread.
 */
#pragma once

#include "base/arena.h"
#include "http/http.h"

#include <stdint.h>

enum h1_result { H1_MORE, H1_DONE, H1_REFUSED };

/* Bytes, save field_count. */
struct h1_limits {
    size_t target_bytes;
    size_t field_bytes;  /* one field line without its CRLF */
    size_t header_bytes; /* everything up to and with the empty line, below 4 GB */
    unsigned field_count;
};

/* A part of the head, from its first byte. */
struct h1_part {
    uint32_t start;
    uint32_t size;
};

struct h1_line {
    struct h1_part name;
    struct h1_part value; /* with the white space around it */
};

struct h1_parser {
    const struct h1_limits *limits;
    struct arena *arena; /* holds lines */
    int state;           /* of the machine */
    bool begun;          /* a byte of the method was seen */
    uint32_t at;         /* bytes read so far; the size of the head when done */
    uint32_t mark;       /* where the part being read began */
    struct h1_part name; /* of the field being read */
    struct h1_part method;
    struct h1_part target;
    unsigned minor; /* 0 or 1; a later minor version is read as 1 (RFC 9110 2.5) */
    struct h1_line *lines;
    unsigned line_count;
    unsigned line_room;
    enum refusal refusal;
};

/* Prepares for the next head; limits and arena must live as long as the parser is used. */
void h1_parser_init(struct h1_parser *parser, const struct h1_limits *limits, struct arena *arena);

/* Reads on. bytes: all bytes since the beginning of this head, at least as many as at the last call.
 * After H1_DONE parser->at is where the body begins; after H1_REFUSED parser->refusal says why. */
enum h1_result h1_parser_read(struct h1_parser *parser, struct span bytes);

/* The bytes of a part. */
static inline struct span h1_part_span(struct h1_part part, struct span bytes)
{
    return span_make(bytes.data + part.start, part.size);
}

/* SPDX-License-Identifier: MIT */
/*
 * Reads the frame of a chunked body (RFC 9112 7.1): size lines, the line ends behind payload, trailer
 * lines (which are checked and dropped). Payload is skipped by its length and never looked at. It can
 * be fed any cuts of the bytes and keeps no pointer to them. One thread.
 *
 *   5;ext CRLF   hello   CRLF   0 CRLF   Trailer: x CRLF   CRLF
 *   `- read -'  payload  `------------- read -------------'
 */
#pragma once

#include "http/http.h"

#include <stdint.h>

enum h1_chunk_result {
    H1_CHUNK_MORE,    /* all bytes are read, more must come */
    H1_CHUNK_PAYLOAD, /* chunk->left bytes of payload follow: take them and call h1_chunk_took */
    H1_CHUNK_END,     /* the body is complete */
    H1_CHUNK_REFUSED  /* chunk->refusal says why */
};

struct h1_chunk {
    int state;            /* of the machine */
    uint64_t size;        /* of the chunk whose line is being read */
    uint64_t left;        /* payload bytes of the chunk still to come */
    size_t line_bytes;    /* of the size line being read */
    size_t excess_bytes;  /* of all lines, beyond what their payload excuses */
    size_t trailer_bytes; /* of the trailer */
    size_t trailer_limit; /* bytes */
    enum refusal refusal;
};

void h1_chunk_init(struct h1_chunk *chunk, size_t trailer_limit);

/* Reads on. *ret_used bytes were read and can be dropped; payload comes after them. */
enum h1_chunk_result h1_chunk_read(struct h1_chunk *chunk, struct span bytes, size_t *ret_used);

/* count bytes of payload, at most chunk->left, were taken off. */
void h1_chunk_took(struct h1_chunk *chunk, uint64_t count);

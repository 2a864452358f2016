/* SPDX-License-Identifier: MIT */
/*
 * Growable bytes. The owner embeds a struct buf by value; one thread at a time.
 *
 *   memory: [ consumed | data ... size ) | room ]
 *
 * Invariants: a buf of zeros is valid and empty; start + size <= room.
 */
#pragma once

#include "base/base.h"
#include "base/span.h"

struct buf {
    char *memory; /* owned; NULL while room is 0 */
    size_t start; /* bytes consumed at the front */
    size_t size;  /* bytes of content */
    size_t room;  /* bytes allocated */
};

/* Frees the memory; the buf is empty and usable again. */
void buf_done(struct buf *buf);

/* The content; valid until the next call that changes the buf. */
static inline struct span buf_span(const struct buf *buf)
{
    return (struct span){buf->memory + buf->start, buf->size};
}

/* Makes room for size more bytes behind the content and returns where they go, or NULL when memory
 * is out (the buf is unchanged). buf_grow takes them into the content once they are written. */
char *buf_reserve(struct buf *buf, size_t size);
void buf_grow(struct buf *buf, size_t size);

/* Append bytes; 0 or -ENOMEM, then the buf is unchanged. */
int buf_append(struct buf *buf, struct span bytes);
int buf_append_byte(struct buf *buf, char byte);
int buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends a value that has to stay within its line: `\n` and `\\` stand for a line's end and a backslash. 0
 * or -ENOMEM, then a part of it may be there. */
int buf_append_escaped(struct buf *buf, struct span value);

/* Drops count bytes at the front; an empty buf starts again at the beginning of its memory. */
void buf_consume(struct buf *buf, size_t count);

/* Drops everything, keeps the memory. */
void buf_clear(struct buf *buf);

/* Gives the memory back when the buf is empty and holds more than keep bytes. */
void buf_shrink(struct buf *buf, size_t keep);

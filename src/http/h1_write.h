/* SPDX-License-Identifier: MIT */
/*
 * Writes the answer of one exchange as HTTP/1.1: head, chunk lines, pieces, end. It makes the framing
 * bytes and hands them to the stream together with the pieces, so that a small answer is one system
 * call. Embedded in its connection, one loop.
 *
 *   lead (heads, chunk line) | frame_left bytes of the exchange's pieces | tail (line end, last chunk)
 */
#pragma once

#include "base/buf.h"
#include "http/exchange.h"
#include "loop/stream.h"

struct h1_writer {
    struct buf lead;     /* framing bytes before the payload; owned */
    uint64_t frame_left; /* payload bytes that belong between lead and tail */
    struct span tail;    /* framing bytes behind the payload; static memory */
    bool has_head;       /* the head of the answer is made */
    bool chunked;
    bool has_last;   /* the last chunk is made */
    bool keep_alive; /* decided with the head: the connection stays after the answer */
};

/* Prepares for the next answer; the memory of lead is kept. */
void h1_writer_init(struct h1_writer *writer);
void h1_writer_done(struct h1_writer *writer);

/* Makes an interim answer (1xx). 0 or -ENOMEM. */
int h1_writer_interim(struct h1_writer *writer, unsigned status, const struct fields *fields);

/* Makes the head of the exchange's answer. keep_alive: the request and the connection allow another
 * request; what becomes of it is in writer->keep_alive. 0 or -ENOMEM. */
int h1_writer_head(struct h1_writer *writer, const struct exchange *exchange, bool keep_alive);

/* Sends what is there in one system call. Returns the bytes moved, 0 when there is nothing to send,
 * -EAGAIN when the stream is full, another negative errno when the connection or the source of the
 * body failed (-EPIPE, -ENODATA: a file became shorter). */
ssize_t h1_writer_send(struct h1_writer *writer, struct exchange *exchange, struct stream *stream);

/* Whether the answer has ended and all of it was sent. */
bool h1_writer_is_finished(const struct h1_writer *writer, const struct exchange *exchange);

/* Whether bytes wait that could be sent now. */
bool h1_writer_has_output(const struct h1_writer *writer, const struct exchange *exchange);

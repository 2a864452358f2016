/* SPDX-License-Identifier: MIT */
/*
 * What an HTTP/1 connection needs only while it has a request: read buffer, parser, exchange, writer. It
 * is taken from spares of the thread when the first byte comes and given back when the connection is
 * idle, so that a request costs no allocation and an idle connection no memory.
 */
#pragma once

#include "http/h1_body.h"
#include "http/h1_conn.h"
#include "http/h1_framing.h"
#include "http/h1_parser.h"
#include "http/h1_rate.h"
#include "http/h1_write.h"

struct h1_work {
    struct h1_work *next; /* among the spares */
    struct h1_conn *conn;
    struct exchange exchange;
    struct buf input; /* read and not yet used */
    struct h1_limits limits;
    struct h1_spool spool;
    struct h1_parser parser;
    struct h1_framing framing;
    struct h1_body_reader body;
    struct h1_writer writer;
    struct h1_rate rate;
    uint64_t body_bytes; /* received since the head was complete */
    bool begun;          /* the exchange is prepared */
    bool shown;          /* the service knows the exchange, so it must see its end */
    bool drops;          /* refused, but its body is small enough to be read behind the answer */
    bool unread;         /* bytes of a refused request may still come */
};

/* A work for a connection of these options; NULL when memory is out. */
struct h1_work *h1_work_take(struct h1_conn *conn, const struct h1_options *options);

/* Ends the request that the work holds, if any; it is ready for the next one. */
void h1_work_clear(struct h1_work *work);

/* Clears the work and puts it among the spares; takes NULL. */
void h1_work_give(struct h1_work *work);

/* Frees the spares of this thread. */
void h1_work_free_spares(void);

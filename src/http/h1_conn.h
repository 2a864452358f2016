/* SPDX-License-Identifier: MIT */
/*
 * One HTTP/1 connection: reads requests one at a time (pipelined ones wait in the buffer), collects their
 * bodies, hands exchanges to the service and writes responses. It is a table of states, each with its
 * deadline. One loop for life; it frees itself.
 */
#pragma once

#include "http/exchange.h"
#include "loop/stream.h"
#include "loop/timer.h"

/* Limits and times for all connections of a listener; the front owns it and keeps it unchanged while
 * connections use it. Bytes and milliseconds. */
struct h1_options {
    const struct service *service;
    void *service_data;
    size_t target_bytes;      /* request target: 414 */
    size_t field_bytes;       /* one field line: 431 */
    size_t header_bytes;      /* the whole head: 431 */
    unsigned field_count;     /* 431 */
    size_t body_memory_bytes; /* a body beyond this goes to a file */
    const char *spool_folder;
    uint64_t *spool_used; /* bytes in spool files of this loop, for spool_limit */
    uint64_t spool_limit; /* bytes of all spool files: 503 beyond */
    uint64_t header_ms;   /* first byte to end of head; a new connection's first byte too */
    uint64_t keepalive_ms;
    uint64_t body_rate; /* bytes per second over any 10 s */
    uint64_t write_rate;
    uint64_t linger_ms; /* how long a refused client's bytes are drained before the close */
};

struct h1_conn;

/* Opens a connection on an accepted, non-blocking socket, which is the connection's from now on, also
 * on failure. peer is copied, local must outlive the connection. on_close is called once, last, when
 * the connection is gone. NULL when memory is out or the loop refuses. */
struct h1_conn *h1_conn_open(const struct h1_options *options, struct loop *loop, int fd,
                             const struct address *peer, const struct address *local,
                             void (*on_close)(struct h1_conn *conn, void *owner), void *owner);

/* The same on a stream that is open already (TLS). Its memory stays the caller's: the struct may be
 * freed in on_close, not before. */
struct h1_conn *h1_conn_open_stream(const struct h1_options *options, struct stream *stream,
                                    const struct address *peer, const struct address *local,
                                    void (*on_close)(struct h1_conn *conn, void *owner),
                                    void *owner);

/* Whether it waits for a request and none has begun (it may be closed to save descriptors). */
bool h1_conn_is_idle(const struct h1_conn *conn);

/* Whether an application has taken the connection over (101, hijack), so that no answer is under way. */
bool h1_conn_is_tunnel(const struct h1_conn *conn);

/* Draining: an idle connection closes now (one that never sent a request included), a busy one says
 * "connection: close" with its answer; answer_once: an idle one is given one more request. */
void h1_conn_drain(struct h1_conn *conn, bool answer_once);

/* Ends it now, whatever it does. */
void h1_conn_close(struct h1_conn *conn, enum refusal refusal);

/* Frees what ended requests of this thread left for the next ones; before a loop thread ends. */
void h1_conn_free_spares(void);

/* SPDX-License-Identifier: MIT */
#include "http/h1_tunnel.h"

#include "base/ascii.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "http/h1_answer.h"
#include "http/tunnel.h"

#include <errno.h>
#include <stdlib.h>

enum { UNKNOWN_STATUS = 101 /* of an application that spoke no HTTP on its connection */ };

/* The status of an answer that the application wrote itself: "HTTP/1.1 101 ...". */
static unsigned read_status(struct span start)
{
    static const struct span version = SPAN("HTTP/1.");
    const size_t skip = sizeof("HTTP/1.1 ") - 1;
    uint64_t status;

    if (!span_starts_with(start, version) || start.size < skip + 3 ||
        !num_decimal(span_first(span_skip(start, skip), 3), &status))
        return UNKNOWN_STATUS;
    return status >= 100 ? (unsigned)status : UNKNOWN_STATUS;
}

/* What the log will say of it. */
static void settle(struct h1_conn *conn)
{
    struct exchange *exchange = &conn->work->exchange;
    struct response *response = &exchange->response;
    const struct tunnel_flow *down = &conn->tunnel->down;

    if (!response->status)
        response->status = read_status(span_make(down->start, down->start_size));
    exchange->sent_bytes += down->bytes;
    response->no_body = false;
    response->written = down->bytes > conn->head_bytes ? down->bytes - conn->head_bytes : 0;
}

void h1_tunnel_close(struct h1_conn *conn)
{
    if (!conn->tunnel)
        return;
    settle(conn);
    tunnel_close(conn->tunnel);
    free(conn->tunnel);
    conn->tunnel = NULL;
}

static void end_exchange(struct h1_conn *conn)
{
    struct exchange *exchange = &conn->work->exchange;

    exchange->times.end_us = clock_us();
    exchange->response.ended = true;
    exchange->finished = true;
    conn->work->shown = false;
    exchange->service->on_end(exchange);
}

/* Whoever ended it, the request came to what the application made of it: no failure of ours. */
static void on_over(struct tunnel *tunnel, bool client_left)
{
    struct h1_conn *conn = tunnel->owner;
    bool is_quiet = client_left || tunnel->up.is_ended;

    conn->driving = true;
    h1_tunnel_close(conn);
    end_exchange(conn);
    if (is_quiet)
        h1_state_close(conn, REFUSAL_NONE, false);
    else if (conn->state != H1_CLOSED)
        h1_answer_start_linger(conn);
    conn->driving = false;
    h1_state_free_closed(conn);
}

/* An idle tunnel keeps what its log line needs, and nothing of the request's body. */
static void shed_memory(struct h1_work *work)
{
    struct body *body = &work->exchange.request.body;

    h1_body_done(&work->body, &work->spool);
    fd_close(&body->fd);
    buf_done(&body->memory);
    h1_writer_done(&work->writer);
    buf_done(&work->input);
}

static int make_head(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (!work->exchange.response.status || work->writer.has_head)
        return 0;
    return h1_writer_head(&work->writer, &work->exchange, false);
}

static int start(struct h1_conn *conn, int fd)
{
    struct h1_work *work = conn->work;
    const struct tunnel_options options = {
        .client = conn->stream,
        .fd = fd,
        .head = buf_span(&work->writer.lead),
        .early = &work->input,
        .client_ended = conn->eof,
        .on_over = on_over,
        .owner = conn,
    };

    conn->head_bytes = options.head.size;
    return tunnel_open(conn->tunnel, &options);
}

/* Only heads may be waiting: a body that was begun cannot become something else. */
static bool can_begin(const struct h1_conn *conn)
{
    const struct response *response = &conn->work->exchange.response;

    return (conn->state == H1_ANSWER || conn->state == H1_WRITING) && !response->ended &&
           !response->pending && (!response->status || response->raw);
}

int h1_tunnel_open(struct exchange *exchange, int fd)
{
    struct h1_conn *conn = CONTAINER_OF(exchange, struct h1_work, exchange)->conn;
    int error = can_begin(conn) ? make_head(conn) : -EINVAL;

    if (!error)
        conn->tunnel = calloc(1, sizeof(*conn->tunnel));
    if (error || !conn->tunnel) {
        fd_close(&fd);
        return error ? error : -ENOMEM;
    }
    h1_state_enter(conn, H1_TUNNEL);
    error = start(conn, fd);
    if (error) {
        free(conn->tunnel);
        conn->tunnel = NULL;
        h1_state_enter(conn, H1_ANSWER);
        return error;
    }
    if (!exchange->times.answer_us)
        exchange->times.answer_us = loop_now_us(conn->loop);
    shed_memory(conn->work);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "http/h1_conn.h"

#include "base/fd.h"
#include "http/h1_state.h"
#include "http/h1_tunnel.h"

#include <stdlib.h>

static void on_task(struct task *task)
{
    h1_state_drive(CONTAINER_OF(task, struct h1_conn, task));
}

static void on_event(struct stream *stream, unsigned events)
{
    struct h1_conn *conn = stream->owner;

    if (events & STREAM_HANGUP)
        h1_state_close(conn, conn->state == H1_READING ? REFUSAL_BODY_SHORT : REFUSAL_CLIENT_LEFT,
                       false);
    conn->ready |= events & STREAM_READ;
    h1_state_drive(conn);
}

static struct h1_conn *conn_of(struct exchange *exchange)
{
    return CONTAINER_OF(exchange, struct h1_work, exchange)->conn;
}

static void op_update(struct exchange *exchange)
{
    struct h1_conn *conn = conn_of(exchange);

    if (conn->state != H1_ANSWER && conn->state != H1_WRITING)
        return;
    if (exchange->response.ended && !conn->driving && conn->state == H1_ANSWER)
        h1_state_drive(conn);
    else if (conn->state == H1_ANSWER)
        loop_defer(conn->loop, &conn->task);
}

static void op_interim(struct exchange *exchange, unsigned status, const struct fields *fields)
{
    struct h1_conn *conn = conn_of(exchange);

    if (conn->work->writer.has_head)
        return;
    if (h1_writer_interim(&conn->work->writer, status, fields) == 0)
        op_update(exchange);
}

static void op_cut(struct exchange *exchange, enum refusal refusal)
{
    h1_conn_close(conn_of(exchange), refusal);
}

static const struct conn h1_conn_ops = {
    .interim = op_interim, .update = op_update, .tunnel = h1_tunnel_open, .cut = op_cut};

static struct h1_conn *new_conn(const struct h1_options *options, const struct address *peer,
                                const struct address *local,
                                void (*on_close)(struct h1_conn *conn, void *owner), void *owner)
{
    struct h1_conn *conn = calloc(1, sizeof(*conn));

    if (!conn)
        return NULL;
    conn->options = options;
    conn->ops = &h1_conn_ops;
    conn->peer = *peer;
    conn->local = local;
    conn->on_close = on_close;
    conn->owner = owner;
    task_init(&conn->task, on_task);
    return conn;
}

static struct h1_conn *start(struct h1_conn *conn, struct stream *stream)
{
    stream->owner = conn;
    conn->stream = stream;
    conn->loop = stream->loop;
    h1_state_enter(conn, H1_IDLE);
    return conn;
}

struct h1_conn *h1_conn_open(const struct h1_options *options, struct loop *loop, int fd,
                             const struct address *peer, const struct address *local,
                             void (*on_close)(struct h1_conn *conn, void *owner), void *owner)
{
    struct h1_conn *conn = new_conn(options, peer, local, on_close, owner);

    if (!conn) {
        fd_close(&fd);
        return NULL;
    }
    if (stream_open_socket(&conn->socket, loop, fd, on_event)) {
        free(conn);
        return NULL;
    }
    return start(conn, &conn->socket);
}

struct h1_conn *h1_conn_open_stream(const struct h1_options *options, struct stream *stream,
                                    const struct address *peer, const struct address *local,
                                    void (*on_close)(struct h1_conn *conn, void *owner),
                                    void *owner)
{
    struct h1_conn *conn = new_conn(options, peer, local, on_close, owner);

    if (!conn) {
        stream_close(stream, false);
        return NULL;
    }
    stream->on_event = on_event;
    return start(conn, stream);
}

bool h1_conn_is_idle(const struct h1_conn *conn)
{
    return conn->state == H1_IDLE && (!conn->work || !conn->work->input.size);
}

bool h1_conn_is_tunnel(const struct h1_conn *conn)
{
    return conn->state == H1_TUNNEL && !conn->work->exchange.response.raw_chunked;
}

void h1_conn_drain(struct h1_conn *conn, bool answer_once)
{
    conn->draining = true;
    if (answer_once || conn->driving || !h1_conn_is_idle(conn))
        return;
    conn->driving = true;
    conn->ready |= STREAM_READ; /* a request that has just come is still answered */
    h1_state_run(conn);
    if (h1_conn_is_idle(conn))
        h1_state_close(conn, REFUSAL_DRAINING, false);
    conn->driving = false;
    h1_state_free_closed(conn);
}

void h1_conn_close(struct h1_conn *conn, enum refusal refusal)
{
    h1_state_close(conn, refusal, false);
    h1_state_free_closed(conn);
}

void h1_conn_free_spares(void)
{
    h1_work_free_spares();
}

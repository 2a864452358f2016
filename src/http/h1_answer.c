/* SPDX-License-Identifier: MIT */
#include "http/h1_answer.h"

#include "base/clock.h"

#include <errno.h>

enum {
    WRITES = 16, /* of one connection in a row */
    LINGER_PART = 16 * 1024,
    LINGER_PARTS = 16,               /* reads of one lingering connection in a row */
    LINGER_BYTES = 256 * 1024 * 1024 /* dropped for a refused client at most */
};

bool h1_answer_refuse(struct h1_conn *conn, enum refusal refusal)
{
    struct h1_work *work = conn->work;
    struct exchange *exchange = &work->exchange;

    if (!http_refusal_status(refusal)) {
        h1_state_close(conn, refusal, false);
        return false;
    }
    exchange->refusal = refusal;
    exchange->times.body_us = loop_now_us(conn->loop);
    work->shown = true;
    h1_state_enter(conn, H1_ANSWER);
    exchange->service->on_request(exchange);
    return true;
}

bool h1_answer_refuse_unread(struct h1_conn *conn, enum refusal refusal)
{
    conn->work->framing.keep_alive = false;
    conn->work->unread = true;
    return h1_answer_refuse(conn, refusal);
}

/* Reads on after the answer, so that closing with unread bytes does not reset the connection and take
 * the answer out of the client's hands (RFC 9112 9.6). */
void h1_answer_start_linger(struct h1_conn *conn)
{
    stream_shutdown(conn->stream);
    h1_work_give(conn->work);
    conn->work = NULL;
    h1_state_enter(conn, H1_LINGER);
}

bool h1_answer_linger(struct h1_conn *conn)
{
    char dropped[LINGER_PART];

    conn->ready &= ~(unsigned)STREAM_READ;
    for (int i = 0; i < LINGER_PARTS; i++) {
        ssize_t size = stream_read(conn->stream, dropped, sizeof(dropped));

        if (size == -EAGAIN)
            return false;
        if (size > 0)
            conn->linger_bytes += (uint64_t)size;
        if (size <= 0 || conn->linger_bytes > LINGER_BYTES) {
            h1_state_close(conn, REFUSAL_NONE, false);
            return false;
        }
        if ((size_t)size < sizeof(dropped))
            return false;
    }
    return false;
}

/* Only the connection's end tells an HTTP/1.0 client that the body is complete: a cut one must end
 * otherwise. */
static bool ends_by_close(const struct h1_work *work)
{
    const struct response *response = &work->exchange.response;

    return work->writer.has_head && !response->no_body && response->length < 0 &&
           !work->writer.chunked;
}

static bool end_connection(struct h1_conn *conn, bool cut, bool by_close)
{
    const struct h1_work *work = conn->work;
    /* A client that asked for the end sends nothing more; one that did not may be about to. */
    bool may_send = work->unread || work->input.size || work->framing.keep_alive;

    if (work->writer.has_head && !cut && may_send && !conn->eof)
        h1_answer_start_linger(conn);
    else
        h1_state_close(conn, REFUSAL_NONE, cut && by_close);
    return false;
}

static bool finish(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    struct exchange *exchange = &work->exchange;
    bool cut = exchange->response.cut, by_close = ends_by_close(work);
    bool stays = work->writer.has_head && work->writer.keep_alive && !cut;

    exchange->times.end_us = clock_us();
    exchange->finished = true;
    work->shown = false;
    conn->used = true;
    exchange->service->on_end(exchange);
    task_cancel(&conn->task);
    if (conn->state == H1_CLOSED)
        return false;
    if (!stays)
        return end_connection(conn, cut, by_close);
    if (work->drops) {
        h1_state_enter(conn, H1_DROPPING);
        return true;
    }
    h1_work_clear(work);
    h1_state_enter(conn, H1_IDLE);
    return true;
}

static bool make_head(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (!work->exchange.response.status || work->writer.has_head)
        return true;
    exchange_settle(&work->exchange);
    if (h1_writer_head(&work->writer, &work->exchange,
                       work->framing.keep_alive && !conn->draining) == 0)
        return true;
    h1_state_close(conn, REFUSAL_INTERNAL, false);
    return false;
}

static bool wait_for_room(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (conn->state != H1_WRITING) {
        h1_rate_start(&work->rate, work->exchange.sent_bytes);
        h1_state_enter(conn, H1_WRITING);
    }
    return false;
}

static bool wait_for_handler(struct h1_conn *conn)
{
    if (conn->state == H1_WRITING)
        h1_state_enter(conn, H1_ANSWER);
    return false;
}

bool h1_answer_step(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    struct exchange *exchange = &work->exchange;

    for (int i = 0; i < WRITES; i++) {
        ssize_t sent;

        if (!make_head(conn))
            return false;
        sent = h1_writer_send(&work->writer, exchange, conn->stream);
        if (sent == -EAGAIN)
            return wait_for_room(conn);
        if (sent < 0) {
            h1_state_close(conn, sent == -ENODATA ? REFUSAL_ANSWER_CUT : REFUSAL_CLIENT_LEFT,
                           false);
            return false;
        }
        if (h1_writer_is_finished(&work->writer, exchange))
            return finish(conn);
        exchange_pull(exchange);
        if (conn->state != H1_ANSWER && conn->state != H1_WRITING)
            return false;
        if (!h1_writer_has_output(&work->writer, exchange) && !exchange->response.ended)
            return wait_for_handler(conn);
    }
    return wait_for_room(conn); /* it has room, so this is the others' turn only */
}

void h1_answer_check_rate(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    /* A reset also frees what the kernel still holds for the client. */
    if (h1_rate_is_slow(&work->rate, work->exchange.sent_bytes, conn->options->write_rate))
        h1_state_close(conn, REFUSAL_WRITE_RATE, true);
    else
        h1_state_set_deadline(conn);
}

/* SPDX-License-Identifier: MIT */
#include "http/h1_receive.h"

#include "http/h1_answer.h"
#include "http/h1_request.h"

#include <errno.h>

enum {
    READ_HEAD = 16 * 1024, /* room for one read while a head is expected: small bodies come along */
    READ_BODY = 64 * 1024,
    DROP_BYTES = 64 * 1024 /* of a refused body, to keep the connection */
};

/* One read. False when the connection is over. */
static bool receive(struct h1_conn *conn)
{
    struct h1_work *work =
        conn->work ? conn->work : (conn->work = h1_work_take(conn, conn->options));
    size_t room = conn->state == H1_READING ? READ_BODY : READ_HEAD;
    char *out = work ? buf_reserve(&work->input, room) : NULL;
    ssize_t size;

    conn->ready &= ~(unsigned)STREAM_READ;
    if (!out) {
        h1_state_close(conn, REFUSAL_INTERNAL, false);
        return false;
    }
    size = stream_read(conn->stream, out, room);
    if (size < 0 && size != -EAGAIN) {
        h1_state_close(conn, REFUSAL_CLIENT_LEFT, false);
        return false;
    }
    if (size == 0)
        conn->eof = true;
    if (size > 0) {
        buf_grow(&work->input, (size_t)size);
        if (conn->state == H1_READING)
            work->body_bytes += (uint64_t)size;
        if ((size_t)size == room)
            conn->ready |= STREAM_READ;
    }
    return true;
}

static bool read_ready(struct h1_conn *conn)
{
    return !(conn->ready & STREAM_READ) || receive(conn);
}

static void set_client(struct h1_conn *conn)
{
    struct client *client = &conn->work->exchange.client;

    client->peer = &conn->peer;
    client->local = conn->local;
    client->secure = conn->stream->secure;
}

static void begin(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    const struct h1_options *options = conn->options;

    exchange_init(&work->exchange, conn->loop, conn->ops, options->service, options->service_data);
    work->exchange.carrier = conn->owner;
    h1_parser_init(&work->parser, &work->limits, &work->exchange.arena);
    h1_writer_init(&work->writer);
    work->framing = (struct h1_framing){0};
    work->body = (struct h1_body_reader){0};
    work->body_bytes = 0;
    work->begun = true;
    work->exchange.times.start_us = loop_now_us(conn->loop);
    set_client(conn);
}

static bool hand_over(struct h1_conn *conn)
{
    struct exchange *exchange = &conn->work->exchange;

    exchange->times.body_us = loop_now_us(conn->loop);
    h1_state_enter(conn, H1_ANSWER);
    exchange->service->on_request(exchange);
    /* What was not ended at once may grow until the end of the batch. */
    return conn->state == H1_ANSWER && exchange->response.ended;
}

/* RFC 9110 10.1.1: asked for once the head is accepted, unless the client has begun on its own. */
static void ask_for_body(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (!work->framing.expects_continue || work->input.size)
        return;
    if (h1_writer_interim(&work->writer, 100, NULL) == 0)
        (void)h1_writer_send(&work->writer, &work->exchange, conn->stream);
}

/* A client that waits to be asked sends no body, or may not; else what is left of a small one is read
 * behind the answer. */
static bool refuse_head(struct h1_conn *conn, enum refusal refusal)
{
    struct h1_work *work = conn->work;
    struct request *request = &work->exchange.request;

    if (!request->has_body)
        return h1_answer_refuse(conn, refusal);
    if (work->framing.expects_continue || !work->framing.keep_alive || request->length > DROP_BYTES)
        return h1_answer_refuse_unread(conn, refusal);
    h1_body_start(&work->body, &work->framing, conn->options->header_bytes);
    work->body.dropped = true;
    request->body_limit = DROP_BYTES;
    work->drops = true;
    return h1_answer_refuse(conn, refusal);
}

static bool take_head(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    struct exchange *exchange = &work->exchange;
    struct request *request = &exchange->request;
    enum refusal refusal;

    exchange->times.head_us = loop_now_us(conn->loop);
    refusal = h1_request_read(request, &exchange->arena, &work->parser, buf_span(&work->input),
                              &work->framing);
    buf_consume(&work->input, work->parser.at);
    if (refusal != REFUSAL_NONE)
        return h1_answer_refuse_unread(conn, refusal);
    work->shown = true;
    request->body_limit = UINT64_MAX;
    refusal = exchange->service->on_head(exchange);
    if (conn->state == H1_CLOSED)
        return false;
    if (refusal == REFUSAL_NONE && request->length > 0 &&
        (uint64_t)request->length > request->body_limit)
        refusal = REFUSAL_TOO_LARGE;
    if (refusal != REFUSAL_NONE)
        return refuse_head(conn, refusal);
    if (!request->has_body)
        return hand_over(conn);
    h1_body_start(&work->body, &work->framing, conn->options->header_bytes);
    h1_rate_start(&work->rate, 0);
    ask_for_body(conn);
    h1_state_enter(conn, H1_READING);
    return true;
}

static void rest(struct h1_conn *conn)
{
    h1_work_give(conn->work);
    conn->work = NULL;
}

/* Empty lines between requests (RFC 9112 2.2) begin none. */
static void skip_empty_lines(struct buf *input)
{
    static const struct span line_end = SPAN("\r\n");

    while (span_starts_with(buf_span(input), line_end))
        buf_consume(input, line_end.size);
}

bool h1_receive_head(struct h1_conn *conn)
{
    struct h1_work *work;

    if (!read_ready(conn))
        return false;
    work = conn->work;
    if (conn->state == H1_IDLE && work)
        skip_empty_lines(&work->input);
    if (!work || !work->input.size) {
        if (conn->eof)
            h1_state_close(conn, REFUSAL_NONE, false);
        else
            rest(conn);
        return false;
    }
    if (!work->begun)
        begin(conn);
    switch (h1_parser_read(&work->parser, buf_span(&work->input))) {
    case H1_DONE:
        return take_head(conn);
    case H1_REFUSED:
        h1_request_read_refused(&work->exchange.request, &work->exchange.arena, &work->parser,
                                buf_span(&work->input));
        return h1_answer_refuse_unread(conn, work->parser.refusal);
    case H1_MORE:
        break;
    }
    if (conn->eof)
        h1_state_close(conn, REFUSAL_NONE, false);
    else if (conn->state == H1_IDLE)
        h1_state_enter(conn, H1_HEAD);
    return conn->ready;
}

/* Takes what has come of the body. */
static enum h1_body_result read_body(struct h1_work *work, enum refusal *ret_refusal)
{
    size_t used;
    enum h1_body_result result = h1_body_read(&work->body, &work->exchange.request, &work->spool,
                                              buf_span(&work->input), &used, ret_refusal);

    buf_consume(&work->input, used);
    return result;
}

bool h1_receive_body(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    enum h1_body_result result;
    enum refusal refusal;

    if (!read_ready(conn))
        return false;
    result = read_body(work, &refusal);
    if (result == H1_BODY_REFUSED)
        return h1_answer_refuse_unread(conn, refusal);
    if (result == H1_BODY_END)
        return hand_over(conn);
    /* Half a body is never handed over: the application could not tell it from a whole one. */
    if (conn->eof)
        h1_state_close(conn, REFUSAL_BODY_SHORT, false);
    return conn->ready;
}

bool h1_receive_dropped(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    enum h1_body_result result;
    enum refusal refusal;

    if (!read_ready(conn))
        return false;
    result = read_body(work, &refusal);
    if (result == H1_BODY_END) {
        h1_work_clear(work);
        h1_state_enter(conn, H1_IDLE);
        return true;
    }
    if (result == H1_BODY_REFUSED)
        h1_answer_start_linger(conn);
    else if (conn->eof)
        h1_state_close(conn, REFUSAL_NONE, false);
    return conn->ready;
}

void h1_receive_late_head(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    h1_request_read_refused(&work->exchange.request, &work->exchange.arena, &work->parser,
                            buf_span(&work->input));
    (void)h1_answer_refuse_unread(conn, REFUSAL_HEADER_TIMEOUT);
}

void h1_receive_check_rate(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (h1_rate_is_slow(&work->rate, work->body_bytes, conn->options->body_rate))
        (void)h1_answer_refuse_unread(conn, REFUSAL_BODY_RATE);
    else
        h1_state_set_deadline(conn);
}

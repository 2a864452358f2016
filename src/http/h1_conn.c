/* SPDX-License-Identifier: MIT */
#include "http/h1_conn.h"

#include "base/clock.h"
#include "base/fd.h"
#include "http/h1_body.h"
#include "http/h1_framing.h"
#include "http/h1_parser.h"
#include "http/h1_rate.h"
#include "http/h1_request.h"
#include "http/h1_write.h"

#include <errno.h>
#include <stdlib.h>

enum {
    READ_HEAD = 8 * 1024, /* room for one read while a head is expected */
    READ_BODY = 64 * 1024,
    INPUT_KEEP = 16 * 1024, /* read buffer that goes back to the spares */
    SPARES = 64,
    STEPS = 64,  /* of one connection in a row */
    WRITES = 16, /* of one connection in a row */
    LINGER_PART = 16 * 1024,
    LINGER_PARTS = 16,              /* reads of one lingering connection in a row */
    LINGER_BYTES = 32 * 1024 * 1024 /* dropped for a refused client at most */
};

enum state { IDLE, HEAD, BODY, ANSWER, WRITING, LINGER, CLOSED };

/* What a connection needs only while it has a request; an idle one has none. */
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
    bool unread;         /* bytes of a refused request may still come */
};

struct h1_conn {
    const struct h1_options *options;
    struct stream *stream; /* socket, or the caller's */
    struct stream socket;
    struct loop *loop;
    struct timer timer;
    struct task task; /* sends what was added in this batch */
    struct address peer;
    struct address local;
    void (*on_close)(struct h1_conn *conn, void *owner);
    void *owner;
    struct h1_work *work; /* NULL while idle */
    enum state state;
    unsigned ready;        /* STREAM_READ: a read may bring something */
    bool driving;          /* guards against recursion, and the memory against its own end */
    bool used;             /* a request was answered */
    bool draining;         /* no further request after the next answer */
    bool eof;              /* the client has ended its direction */
    uint64_t linger_bytes; /* dropped so far */
};

/* Works of ended requests, per thread, so that a request costs no allocation and an idle connection no
 * memory. A connection's loop never changes its thread. */
static _Thread_local struct h1_work *spares;
static _Thread_local unsigned spare_count;

/* ---- work ---- */

static struct h1_work *take_work(struct h1_conn *conn)
{
    const struct h1_options *options = conn->options;
    struct h1_work *work = spares;

    if (work) {
        spares = work->next;
        spare_count--;
    } else {
        work = calloc(1, sizeof(*work));
        if (!work)
            return NULL;
    }
    work->conn = conn;
    work->limits = (struct h1_limits){.target_bytes = options->target_bytes,
                                      .field_bytes = options->field_bytes,
                                      .header_bytes = options->header_bytes,
                                      .field_count = options->field_count};
    work->spool = (struct h1_spool){.memory_bytes = options->body_memory_bytes,
                                    .folder = options->spool_folder,
                                    .used = options->spool_used,
                                    .limit = options->spool_limit};
    return work;
}

static void free_work(struct h1_work *work)
{
    exchange_done(&work->exchange);
    h1_writer_done(&work->writer);
    buf_done(&work->input);
    free(work);
}

/* Ends the request that the work holds, if any; it is ready for the next one. */
static void clear_work(struct h1_work *work)
{
    if (!work->begun)
        return;
    h1_body_done(&work->body, &work->spool);
    exchange_reset(&work->exchange);
    work->begun = work->shown = work->unread = false;
}

static void give_work(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    conn->work = NULL;
    if (!work)
        return;
    clear_work(work);
    buf_clear(&work->input);
    buf_shrink(&work->input, INPUT_KEEP);
    if (spare_count == SPARES) {
        free_work(work);
        return;
    }
    work->conn = NULL;
    work->next = spares;
    spares = work;
    spare_count++;
}

void h1_conn_free_spares(void)
{
    while (spares) {
        struct h1_work *work = spares;

        spares = work->next;
        free_work(work);
    }
    spare_count = 0;
}

/* ---- closing ---- */

static void close_conn(struct h1_conn *conn, enum refusal refusal, bool reset)
{
    struct h1_work *work = conn->work;

    if (conn->state == CLOSED)
        return;
    conn->state = CLOSED; /* what the service does from here on does not come back */
    timer_stop(&conn->timer);
    task_cancel(&conn->task);
    stream_close(conn->stream, reset);
    if (work && work->shown)
        exchange_abort(&work->exchange, refusal);
}

/* The work lives as long as a caller further up may look at the exchange. */
static void free_closed(struct h1_conn *conn)
{
    if (conn->state != CLOSED || conn->driving)
        return;
    give_work(conn);
    if (conn->on_close)
        conn->on_close(conn, conn->owner);
    free(conn);
}

/* ---- the states ---- */

struct state_row {
    const char *name;
    unsigned wants; /* of the stream */
    /* What can be done now; true when the connection should be looked at again. */
    bool (*step)(struct h1_conn *conn);
    /* Milliseconds until on_due, 0 = the state has no deadline. */
    uint64_t (*deadline_ms)(const struct h1_conn *conn);
    void (*on_due)(struct h1_conn *conn);
};

static const struct state_row states[CLOSED + 1];
static void on_timer(struct timer *timer);

static void set_deadline(struct h1_conn *conn)
{
    uint64_t (*deadline_ms)(const struct h1_conn *) = states[conn->state].deadline_ms;

    /* A deadline of a former state that comes due in one without is ignored there, which is cheaper
     * than taking it out for each request. */
    if (deadline_ms)
        timer_set(conn->loop, &conn->timer, deadline_ms(conn), on_timer);
}

static void enter(struct h1_conn *conn, enum state state)
{
    conn->state = state;
    stream_want(conn->stream, states[state].wants);
    set_deadline(conn);
}

/* One read. False when the connection is over. */
static bool receive(struct h1_conn *conn)
{
    struct h1_work *work = conn->work ? conn->work : (conn->work = take_work(conn));
    size_t room = conn->state == BODY ? READ_BODY : READ_HEAD;
    char *out = work ? buf_reserve(&work->input, room) : NULL;
    ssize_t size;

    conn->ready &= ~(unsigned)STREAM_READ;
    if (!out) {
        close_conn(conn, REFUSAL_INTERNAL, false);
        return false;
    }
    size = stream_read(conn->stream, out, room);
    if (size < 0 && size != -EAGAIN) {
        close_conn(conn, REFUSAL_CLIENT_LEFT, false);
        return false;
    }
    if (size == 0)
        conn->eof = true;
    if (size > 0) {
        buf_grow(&work->input, (size_t)size);
        if (conn->state == BODY)
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

/* The service makes a page for the refusal, which then goes out like any answer. */
static bool refuse(struct h1_conn *conn, enum refusal refusal)
{
    struct h1_work *work = conn->work;
    struct exchange *exchange = &work->exchange;

    if (!http_refusal_status(refusal)) {
        close_conn(conn, refusal, false);
        return false;
    }
    exchange->refusal = refusal;
    exchange->times.body_us = loop_now_us(conn->loop);
    work->shown = true;
    enter(conn, ANSWER);
    exchange->service->on_request(exchange);
    return true;
}

/* A request whose end is not known or not read: nothing behind it can be understood. */
static bool refuse_unread(struct h1_conn *conn, enum refusal refusal)
{
    conn->work->framing.keep_alive = false;
    conn->work->unread = true;
    return refuse(conn, refusal);
}

static void set_client(struct h1_conn *conn)
{
    struct client *client = &conn->work->exchange.client;

    client->peer = &conn->peer;
    client->local = &conn->local;
    client->secure = conn->stream->secure;
}

static const struct conn h1_conn_ops;

static void begin(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    const struct h1_options *options = conn->options;

    exchange_init(&work->exchange, conn->loop, &h1_conn_ops, options->service,
                  options->service_data);
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
    enter(conn, ANSWER);
    exchange->service->on_request(exchange);
    /* What was not ended at once may grow until the end of the batch. */
    return conn->state == ANSWER && exchange->response.ended;
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
        return refuse_unread(conn, refusal);
    work->shown = true;
    request->body_limit = UINT64_MAX;
    refusal = exchange->service->on_head(exchange);
    if (conn->state == CLOSED)
        return false;
    if (refusal == REFUSAL_NONE && request->length > 0 &&
        (uint64_t)request->length > request->body_limit)
        refusal = REFUSAL_TOO_LARGE;
    if (refusal != REFUSAL_NONE)
        return request->has_body ? refuse_unread(conn, refusal) : refuse(conn, refusal);
    if (!request->has_body)
        return hand_over(conn);
    h1_body_start(&work->body, &work->framing, conn->options->header_bytes);
    h1_rate_start(&work->rate, 0);
    ask_for_body(conn);
    enter(conn, BODY);
    return true;
}

/* Empty lines between requests (RFC 9112 2.2) begin none. */
static void skip_empty_lines(struct buf *input)
{
    static const struct span line_end = SPAN("\r\n");

    while (span_starts_with(buf_span(input), line_end))
        buf_consume(input, line_end.size);
}

static bool step_head(struct h1_conn *conn)
{
    struct h1_work *work;

    if (!read_ready(conn))
        return false;
    work = conn->work;
    if (conn->state == IDLE && work)
        skip_empty_lines(&work->input);
    if (!work || !work->input.size) {
        if (conn->eof)
            close_conn(conn, REFUSAL_NONE, false);
        else
            give_work(conn);
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
        return refuse_unread(conn, work->parser.refusal);
    case H1_MORE:
        break;
    }
    if (conn->eof)
        close_conn(conn, REFUSAL_NONE, false);
    else if (conn->state == IDLE)
        enter(conn, HEAD);
    return conn->ready;
}

static bool step_body(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;
    enum h1_body_result result;
    enum refusal refusal;
    size_t used;

    if (!read_ready(conn))
        return false;
    result = h1_body_read(&work->body, &work->exchange.request, &work->spool,
                          buf_span(&work->input), &used, &refusal);
    buf_consume(&work->input, used);
    if (result == H1_BODY_REFUSED)
        return refuse_unread(conn, refusal);
    if (result == H1_BODY_END)
        return hand_over(conn);
    /* Half a body is never handed over: the application could not tell it from a whole one. */
    if (conn->eof)
        close_conn(conn, REFUSAL_BODY_SHORT, false);
    return conn->ready;
}

/* Reads on after the answer, so that closing with unread bytes does not reset the connection and take
 * the answer out of the client's hands (RFC 9112 9.6). */
static bool linger(struct h1_conn *conn)
{
    stream_shutdown(conn->stream);
    give_work(conn);
    enter(conn, LINGER);
    return false;
}

static bool step_linger(struct h1_conn *conn)
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
            close_conn(conn, REFUSAL_NONE, false);
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
        return linger(conn);
    close_conn(conn, REFUSAL_NONE, cut && by_close);
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
    if (conn->state == CLOSED)
        return false;
    if (!stays)
        return end_connection(conn, cut, by_close);
    clear_work(work);
    enter(conn, IDLE);
    return true;
}

static bool make_head(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (!work->exchange.response.status || work->writer.has_head)
        return true;
    if (h1_writer_head(&work->writer, &work->exchange,
                       work->framing.keep_alive && !conn->draining) == 0)
        return true;
    close_conn(conn, REFUSAL_INTERNAL, false);
    return false;
}

static bool wait_for_room(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (conn->state != WRITING) {
        h1_rate_start(&work->rate, work->exchange.sent_bytes);
        enter(conn, WRITING);
    }
    return false;
}

static bool wait_for_handler(struct h1_conn *conn)
{
    if (conn->state == WRITING)
        enter(conn, ANSWER);
    return false;
}

static bool step_answer(struct h1_conn *conn)
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
            close_conn(conn, sent == -ENODATA ? REFUSAL_ANSWER_CUT : REFUSAL_CLIENT_LEFT, false);
            return false;
        }
        if (h1_writer_is_finished(&work->writer, exchange))
            return finish(conn);
        exchange_pull(exchange);
        if (conn->state == CLOSED)
            return false;
        if (!h1_writer_has_output(&work->writer, exchange) && !exchange->response.ended)
            return wait_for_handler(conn);
    }
    return wait_for_room(conn); /* it has room, so this is the others' turn only */
}

static bool step_nothing(struct h1_conn *conn)
{
    (void)conn;
    return false;
}

static void run_steps(struct h1_conn *conn)
{
    int steps = 0;

    while (states[conn->state].step(conn)) {
        if (++steps == STEPS) {
            loop_defer(conn->loop, &conn->task);
            return;
        }
    }
}

static void drive(struct h1_conn *conn)
{
    if (conn->driving)
        return;
    conn->driving = true;
    run_steps(conn);
    conn->driving = false;
    free_closed(conn);
}

/* ---- deadlines ---- */

static uint64_t idle_ms(const struct h1_conn *conn)
{
    return conn->used ? conn->options->keepalive_ms : conn->options->header_ms;
}

static uint64_t head_ms(const struct h1_conn *conn)
{
    return conn->options->header_ms;
}

static uint64_t tick_ms(const struct h1_conn *conn)
{
    (void)conn;
    return H1_RATE_TICK_MS;
}

static uint64_t linger_ms(const struct h1_conn *conn)
{
    return conn->options->linger_ms;
}

static void end_quietly(struct h1_conn *conn)
{
    close_conn(conn, REFUSAL_NONE, false);
}

static void refuse_late_head(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    h1_request_read_refused(&work->exchange.request, &work->exchange.arena, &work->parser,
                            buf_span(&work->input));
    (void)refuse_unread(conn, REFUSAL_HEADER_TIMEOUT);
}

static void check_body_rate(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    if (h1_rate_is_slow(&work->rate, work->body_bytes, conn->options->body_rate))
        (void)refuse_unread(conn, REFUSAL_BODY_RATE);
    else
        set_deadline(conn);
}

static void check_write_rate(struct h1_conn *conn)
{
    struct h1_work *work = conn->work;

    /* A reset also frees what the kernel still holds for the client. */
    if (h1_rate_is_slow(&work->rate, work->exchange.sent_bytes, conn->options->write_rate))
        close_conn(conn, REFUSAL_WRITE_RATE, true);
    else
        set_deadline(conn);
}

static const struct state_row states[] = {
    [IDLE] = {"idle", STREAM_READ, step_head, idle_ms, end_quietly},
    [HEAD] = {"head", STREAM_READ, step_head, head_ms, refuse_late_head},
    [BODY] = {"body", STREAM_READ, step_body, tick_ms, check_body_rate},
    [ANSWER] = {"answer", 0, step_answer, NULL, NULL},
    [WRITING] = {"writing", STREAM_WRITE, step_answer, tick_ms, check_write_rate},
    [LINGER] = {"linger", STREAM_READ, step_linger, linger_ms, end_quietly},
    [CLOSED] = {"closed", 0, step_nothing, NULL, NULL},
};

/* ---- what calls in ---- */

static void on_timer(struct timer *timer)
{
    struct h1_conn *conn = CONTAINER_OF(timer, struct h1_conn, timer);

    if (!states[conn->state].on_due)
        return;
    conn->driving = true;
    states[conn->state].on_due(conn);
    conn->driving = false;
    drive(conn);
}

static void on_task(struct task *task)
{
    drive(CONTAINER_OF(task, struct h1_conn, task));
}

static void on_event(struct stream *stream, unsigned events)
{
    struct h1_conn *conn = stream->owner;

    if (events & STREAM_HANGUP)
        close_conn(conn, conn->state == BODY ? REFUSAL_BODY_SHORT : REFUSAL_CLIENT_LEFT, false);
    conn->ready |= events & STREAM_READ;
    drive(conn);
}

static struct h1_conn *conn_of(struct exchange *exchange)
{
    return CONTAINER_OF(exchange, struct h1_work, exchange)->conn;
}

static void op_update(struct exchange *exchange)
{
    struct h1_conn *conn = conn_of(exchange);

    if (conn->state != ANSWER && conn->state != WRITING)
        return;
    if (exchange->response.ended && !conn->driving && conn->state == ANSWER)
        drive(conn);
    else if (conn->state == ANSWER)
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

static const struct conn h1_conn_ops = {.interim = op_interim, .update = op_update};

static struct h1_conn *new_conn(const struct h1_options *options, const struct address *peer,
                                const struct address *local,
                                void (*on_close)(struct h1_conn *conn, void *owner), void *owner)
{
    struct h1_conn *conn = calloc(1, sizeof(*conn));

    if (!conn)
        return NULL;
    conn->options = options;
    conn->peer = *peer;
    conn->local = *local;
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
    enter(conn, IDLE);
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
    return conn->state == IDLE && (!conn->work || !conn->work->input.size);
}

void h1_conn_drain(struct h1_conn *conn, bool answer_once)
{
    conn->draining = true;
    if (answer_once || conn->driving || !h1_conn_is_idle(conn))
        return;
    conn->driving = true;
    conn->ready |= STREAM_READ; /* a request that has just come is still answered */
    run_steps(conn);
    if (h1_conn_is_idle(conn))
        close_conn(conn, REFUSAL_DRAINING, false);
    conn->driving = false;
    free_closed(conn);
}

void h1_conn_close(struct h1_conn *conn, enum refusal refusal)
{
    close_conn(conn, refusal, false);
    free_closed(conn);
}

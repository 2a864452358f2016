/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/1 connection over a stream in memory, which gives and takes so many bytes at a time, with a
 * service that answers in several ways and writes down what it saw.
 */
#pragma once

#include "base/base.h"
#include "http/h1_conn.h"

#include <errno.h>

struct line {
    struct stream stream;
    struct span rest; /* what the client still sends; then it closes its direction */
    size_t step;      /* bytes per read and write */
    struct buf out;
    struct buf seen;          /* "POST /x 5 <sum> <refusal>|" */
    struct buf heads;         /* a byte for each answer: 'H' to a HEAD request, 'E' an empty one */
    struct exchange *waiting; /* answered by the next round */
    bool closed, deaf;        /* deaf: the next write has no room */
};

static struct line *line_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct line, stream);
}

static ssize_t line_read(struct stream *stream, char *out, size_t room)
{
    struct line *line = line_of(stream);
    struct span part = span_first(line->rest, room < line->step ? room : line->step);

    memcpy(out, part.data, part.size);
    line->rest = span_skip(line->rest, part.size);
    return (ssize_t)part.size;
}

static ssize_t line_write(struct stream *stream, const struct iovec *parts, int count, bool more)
{
    struct line *line = line_of(stream);
    size_t size = parts[0].iov_len < line->step ? parts[0].iov_len : line->step;

    (void)more;
    CHECK(count > 0);
    if (line->step < 100 && (line->deaf = !line->deaf))
        return -EAGAIN;
    CHECK(buf_append(&line->out, span_make(parts[0].iov_base, size)) == 0);
    return (ssize_t)size;
}

static void line_shutdown(struct stream *stream)
{
    (void)stream;
}

static void line_close(struct stream *stream, bool reset)
{
    (void)reset;
    CHECK(!line_of(stream)->closed);
    line_of(stream)->closed = true;
}

static const struct stream_ops line_ops = {
    .read = line_read, .write = line_write, .shutdown = line_shutdown, .close = line_close};

/* How a request is answered depends on it alone: its path's last byte. */
static unsigned choice(const struct exchange *exchange)
{
    struct span path = exchange->request.path;

    return exchange->refusal == REFUSAL_NONE && path.size ? (unsigned)path.data[path.size - 1] % 8
                                                          : 8;
}

static enum refusal on_head(struct exchange *exchange)
{
    exchange->request.body_limit = 1000;
    return choice(exchange) == 0 ? REFUSAL_NO_SITE : REFUSAL_NONE;
}

static void answer(struct exchange *exchange)
{
    struct line *line = exchange->service_data;
    unsigned how = choice(exchange);
    bool is_head = exchange->request.method == METHOD_HEAD;

    CHECK(buf_append_byte(&line->heads, is_head ? 'H' : how == 7 ? 'E' : '-') == 0);
    exchange_head(exchange, how == 8 ? http_refusal_status(exchange->refusal) : 200,
                  how % 2 ? -1 : 4);
    exchange_write(exchange, span_of(how == 7 ? "" : "body"));
    exchange_end(exchange, false);
}

static void on_cancel(struct exchange *exchange)
{
    ((struct line *)exchange->service_data)->waiting = NULL;
}

static const struct handler late_handler = {.name = "late", .cancel = on_cancel};

static void on_request(struct exchange *exchange)
{
    struct line *line = exchange->service_data;
    const struct request *request = &exchange->request;
    uint32_t sum = 0;

    for (size_t i = 0; i < request->body.memory.size; i++)
        sum = sum * 31 + (unsigned char)buf_span(&request->body.memory).data[i];
    if (exchange->refusal == REFUSAL_NONE)
        CHECK(request->length < 0 || (uint64_t)request->length == request->body.size);
    CHECK(buf_printf(&line->seen, "%.*s %.*s %lu %u %s|", SPAN_ARG(request->method_text),
                     SPAN_ARG(request->target), (unsigned long)request->body.size, sum,
                     http_refusal_word(exchange->refusal)) == 0);
    if (choice(exchange) == 5) {
        exchange->handler = &late_handler;
        line->waiting = exchange;
    } else {
        answer(exchange);
    }
}

static void on_end(struct exchange *exchange)
{
    CHECK(((struct line *)exchange->service_data)->waiting != exchange);
}

static const struct service line_service = {on_head, on_request, on_end};
static uint64_t line_spool;

/* Small limits, and deadlines that never come. */
static struct h1_options line_options(struct line *line)
{
    return (struct h1_options){.service = &line_service,
                               .service_data = line,
                               .target_bytes = 1024,
                               .field_bytes = 1024,
                               .header_bytes = 3072,
                               .field_count = 16,
                               .body_memory_bytes = 1 << 20,
                               .spool_folder = "/tmp",
                               .spool_used = &line_spool,
                               .spool_limit = 1 << 20,
                               .header_ms = 3600000,
                               .keepalive_ms = 3600000,
                               .linger_ms = 3600000};
}

/* What a loop would do next: a late answer, news of the stream, tasks. */
static void line_round(struct line *line)
{
    struct exchange *exchange = line->waiting;

    line->waiting = NULL;
    if (exchange)
        answer(exchange);
    if (!line->closed && line->stream.wants)
        line->stream.on_event(&line->stream, line->stream.wants);
    if (!line->closed)
        (void)loop_step(line->stream.loop, 0);
}

static bool skip(struct span *rest, const char *text)
{
    bool starts = span_starts_with(*rest, span_of(text));

    *rest = span_skip(*rest, starts ? strlen(text) : 0);
    return starts;
}

static bool has(struct span head, const char *line)
{
    return memmem(head.data, head.size, line, strlen(line));
}

/* Every final answer has its body, framed as its head says. */
static void check_answers(struct span out, struct span requests)
{
    while (out.size) {
        const char *end = memmem(out.data, out.size, "\r\n\r\n", 4);
        struct span head = span_first(out, end ? (size_t)(end + 4 - out.data) : 0);
        bool chunked = has(head, "transfer-encoding: chunked\r\n"), sized;

        CHECK(span_starts_with(head, span_of("HTTP/1.1 ")) && requests.size);
        out = span_skip(out, head.size);
        if (head.data[9] == '1')
            continue;
        sized =
            has(head, requests.data[0] == 'E' ? "content-length: 0\r\n" : "content-length: 4\r\n");
        CHECK(!(sized && chunked));
        if (requests.data[0] == '-')
            CHECK(skip(&out, chunked ? "4\r\nbody\r\n" : "body"));
        if (requests.data[0] != 'H')
            CHECK(chunked ? skip(&out, "0\r\n\r\n") : sized || !out.size);
        requests = span_skip(requests, 1);
    }
    CHECK(!requests.size);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_write.c"

#include "base/fd.h"

#include <stdlib.h>
#include <unistd.h>

/* A stream that takes at most `room` bytes a call into a buffer. */
struct sink {
    struct stream stream;
    struct buf taken;
    size_t room;
    bool no_files;
    bool corked; /* more was promised */
    unsigned corks;
};

static ssize_t sink_write(struct stream *stream, const struct iovec *parts, int count, bool more)
{
    struct sink *sink = CONTAINER_OF(stream, struct sink, stream);
    size_t left = sink->room, moved = 0;

    sink->corked = more;
    sink->corks += more;

    for (int i = 0; i < count && left; i++) {
        size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;

        assert_int_equal(buf_append(&sink->taken, span_make(parts[i].iov_base, part)), 0);
        left -= part;
        moved += part;
    }
    return moved ? (ssize_t)moved : -EAGAIN;
}

static ssize_t sink_send_file(struct stream *stream, int fd, off_t offset, size_t size)
{
    struct sink *sink = CONTAINER_OF(stream, struct sink, stream);
    size_t part = size < sink->room ? size : sink->room;
    char *out = buf_reserve(&sink->taken, part);
    ssize_t moved;

    if (sink->no_files)
        return -EOPNOTSUPP;
    sink->corked = false;
    moved = pread(fd, out, part, offset);
    if (moved > 0)
        buf_grow(&sink->taken, (size_t)moved);
    return moved;
}

static const struct stream_ops sink_ops = {.write = sink_write, .send_file = sink_send_file};

static void on_update(struct exchange *exchange)
{
    (void)exchange;
}

static const struct conn conn = {.update = on_update};
static struct loop *loop;

static int open_loop(void **state)
{
    (void)state;
    loop = loop_new();
    return loop ? 0 : -1;
}

static int close_loop(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static struct exchange *exchange_of(unsigned minor)
{
    static struct exchange exchange;

    exchange_init(&exchange, loop, &conn, NULL, NULL);
    exchange.request.minor = minor;
    exchange_add_field(&exchange, span_of("date"), span_of("D"));
    return &exchange;
}

/* Sends all and returns what came out, as text that the caller frees. */
static char *send_all(struct exchange *exchange, struct h1_writer *writer, size_t room)
{
    struct sink sink = {.stream.ops = &sink_ops, .room = room};
    char *text;

    if (!writer->has_head)
        assert_int_equal(h1_writer_head(writer, exchange, true), 0);
    while (h1_writer_send(writer, exchange, &sink.stream) > 0)
        continue;
    assert_int_equal(exchange->response.pending, 0);
    text = strndup(sink.taken.size ? buf_span(&sink.taken).data : "", sink.taken.size);
    buf_done(&sink.taken);
    return text;
}

/* The same answer must come out whatever the stream takes at once. */
static void expect_sent(unsigned minor, void (*answer)(struct exchange *), const char *expected,
                        bool finished)
{
    static const size_t rooms[] = {1, 7, 1 << 20};

    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        struct exchange *exchange = exchange_of(minor);
        struct h1_writer writer = {0};
        char *text;

        h1_writer_init(&writer);
        answer(exchange);
        text = send_all(exchange, &writer, rooms[i]);
        assert_string_equal(text, expected);
        assert_int_equal(exchange->sent_bytes, strlen(expected));
        assert_int_equal(h1_writer_is_finished(&writer, exchange), finished);
        free(text);
        h1_writer_done(&writer);
        exchange_done(exchange);
    }
}

static void answer_ok(struct exchange *exchange)
{
    exchange_add_field(exchange, span_of("x-a"), span_of("1"));
    exchange_head(exchange, 200, 2);
    exchange_write(exchange, span_of("OK"));
    exchange_end(exchange, false);
}

static void known_lengths_are_told(void **state)
{
    (void)state;
    expect_sent(1, answer_ok, "HTTP/1.1 200 OK\r\ndate: D\r\nx-a: 1\r\ncontent-length: 2\r\n\r\nOK",
                true);
    expect_sent(0, answer_ok,
                "HTTP/1.1 200 OK\r\ndate: D\r\nx-a: 1\r\ncontent-length: 2\r\n"
                "connection: keep-alive\r\n\r\nOK",
                true);
}

static void answer_hops(struct exchange *exchange)
{
    exchange_add_field(exchange, span_of("Connection"), span_of("Close"));
    exchange_add_field(exchange, span_of("Transfer-Encoding"), span_of("chunked"));
    exchange_add_field(exchange, span_of("Content-Length"), span_of("99"));
    exchange_add_field(exchange, span_of("Keep-Alive"), span_of("timeout=5"));
    answer_ok(exchange);
}

static void hop_by_hop_fields_end_here_and_close_closes(void **state)
{
    (void)state;
    expect_sent(1, answer_hops,
                "HTTP/1.1 200 OK\r\ndate: D\r\nx-a: 1\r\ncontent-length: 2\r\n"
                "connection: close\r\n\r\nOK",
                true);
}

static void answer_ended_at_once(struct exchange *exchange)
{
    exchange_head(exchange, 200, -1);
    exchange_write(exchange, span_of("OK"));
    exchange_end(exchange, false);
}

static void an_answer_that_ended_before_its_head_has_a_length(void **state)
{
    (void)state;
    expect_sent(1, answer_ended_at_once,
                "HTTP/1.1 200 OK\r\ndate: D\r\ncontent-length: 2\r\n\r\nOK", true);
}

static void answer_no_content(struct exchange *exchange)
{
    exchange_add_field(exchange, span_of("content-type"), span_of("text/plain"));
    exchange_head(exchange, 204, 5);
    exchange_write(exchange, span_of("hello"));
    exchange_end(exchange, false);
}

static void answer_head(struct exchange *exchange)
{
    exchange->request.method = METHOD_HEAD;
    answer_ok(exchange);
}

static void answers_without_body_send_none(void **state)
{
    (void)state;
    expect_sent(1, answer_no_content, "HTTP/1.1 204 No Content\r\ndate: D\r\n\r\n", true);
    expect_sent(1, answer_head, "HTTP/1.1 200 OK\r\ndate: D\r\nx-a: 1\r\ncontent-length: 2\r\n\r\n",
                true);
}

static void answer_cut(struct exchange *exchange)
{
    exchange_head(exchange, 200, -1);
    exchange_write(exchange, span_of("part"));
    exchange_end(exchange, true);
}

static void a_cut_answer_lacks_its_last_chunk(void **state)
{
    (void)state;
    expect_sent(1, answer_cut,
                "HTTP/1.1 200 OK\r\ndate: D\r\ntransfer-encoding: chunked\r\n"
                "connection: close\r\n\r\n4\r\npart\r\n",
                true);
    expect_sent(0, answer_cut, "HTTP/1.1 200 OK\r\ndate: D\r\nconnection: close\r\n\r\npart", true);
}

static void parts_of_a_stream_become_whole_chunks(void **state)
{
    struct exchange *exchange = exchange_of(1);
    struct h1_writer writer = {0};
    char *text;
    (void)state;

    h1_writer_init(&writer);
    exchange_head(exchange, 200, -1);
    exchange_write(exchange, span_of("0123456789abcdef"));
    exchange_write(exchange, span_of(""));
    text = send_all(exchange, &writer, 3);
    assert_non_null(strstr(text, "\r\n\r\n10\r\n0123456789abcdef\r\n"));
    assert_false(h1_writer_has_output(&writer, exchange));
    free(text);
    exchange_end(exchange, false);
    assert_true(h1_writer_has_output(&writer, exchange));
    text = send_all(exchange, &writer, 3);
    assert_string_equal(text, "0\r\n\r\n");
    assert_true(h1_writer_is_finished(&writer, exchange));
    free(text);
    h1_writer_done(&writer);
    exchange_done(exchange);
}

static void send_file_of(size_t size, bool no_files)
{
    struct exchange *exchange = exchange_of(1);
    struct h1_writer writer = {0};
    struct sink sink = {.stream.ops = &sink_ops, .room = 10000, .no_files = no_files};
    int fd = fd_temporary("/tmp");
    char *bytes = calloc(1, size);
    struct span sent;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 7);
    assert_int_equal(fd_write_all(fd, span_make(bytes, size)), 0);
    h1_writer_init(&writer);
    exchange_head(exchange, 200, (int64_t)size + 2);
    exchange_write(exchange, span_of("<"));
    exchange_write_file(exchange, fd, true, 0, size);
    exchange_write(exchange, span_of(">"));
    exchange_end(exchange, false);
    assert_int_equal(h1_writer_head(&writer, exchange, true), 0);
    while (h1_writer_send(&writer, exchange, &sink.stream) > 0)
        continue;
    assert_true(h1_writer_is_finished(&writer, exchange));
    assert_false(sink.corked);
    assert_true(sink.corks >= 1);
    sent = buf_span(&sink.taken);
    assert_true(sent.size > size);
    assert_memory_equal(sent.data + sent.size - size - 1, bytes, size);
    free(bytes);
    buf_done(&sink.taken);
    h1_writer_done(&writer);
    exchange_done(exchange);
}

static void files_go_out_between_other_pieces_with_or_without_sendfile(void **state)
{
    (void)state;
    send_file_of(100, false);
    send_file_of(300000, false);
    send_file_of(300000, true);
}

static void a_file_that_became_shorter_is_no_data(void **state)
{
    struct exchange *exchange = exchange_of(1);
    struct h1_writer writer = {0};
    struct sink sink = {.stream.ops = &sink_ops, .room = 1 << 20};
    ssize_t result;
    (void)state;

    h1_writer_init(&writer);
    exchange_head(exchange, 200, 100000);
    exchange_write_file(exchange, fd_temporary("/tmp"), true, 0, 100000);
    exchange_end(exchange, false);
    assert_int_equal(h1_writer_head(&writer, exchange, true), 0);
    do
        result = h1_writer_send(&writer, exchange, &sink.stream);
    while (result > 0);
    assert_int_equal(result, -ENODATA);
    buf_done(&sink.taken);
    h1_writer_done(&writer);
    exchange_done(exchange);
}

static void the_head_of_a_pulse_is_a_hundred_bytes_with_its_date(void **state)
{
    struct exchange *exchange = exchange_of(1);
    struct h1_writer writer = {0};
    (void)state;

    exchange->response.fields.size = 0;
    exchange_add_field(exchange, span_of("content-type"), span_of("text/plain"));
    exchange_head(exchange, 200, 2);
    h1_writer_init(&writer);
    assert_int_equal(h1_writer_head(&writer, exchange, true), 0);
    assert_int_equal(writer.lead.size, 100);
    h1_writer_done(&writer);
    exchange_done(exchange);
}

static void interim_answers_come_before_the_head(void **state)
{
    struct exchange *exchange = exchange_of(1);
    struct h1_writer writer = {0};
    struct fields links;
    char *text;
    (void)state;

    h1_writer_init(&writer);
    fields_init(&links, &exchange->arena);
    fields_add(&links, span_of("link"), span_of("</a>"));
    assert_int_equal(h1_writer_interim(&writer, 103, &links), 0);
    answer_ok(exchange);
    text = send_all(exchange, &writer, 11);
    assert_true(span_starts_with(
        span_of(text),
        span_of("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n")));
    free(text);
    h1_writer_done(&writer);
    exchange_done(exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_lengths_are_told),
        cmocka_unit_test(hop_by_hop_fields_end_here_and_close_closes),
        cmocka_unit_test(an_answer_that_ended_before_its_head_has_a_length),
        cmocka_unit_test(answers_without_body_send_none),
        cmocka_unit_test(a_cut_answer_lacks_its_last_chunk),
        cmocka_unit_test(parts_of_a_stream_become_whole_chunks),
        cmocka_unit_test(files_go_out_between_other_pieces_with_or_without_sendfile),
        cmocka_unit_test(a_file_that_became_shorter_is_no_data),
        cmocka_unit_test(the_head_of_a_pulse_is_a_hundred_bytes_with_its_date),
        cmocka_unit_test(interim_answers_come_before_the_head),
    };

    return cmocka_run_group_tests(tests, open_loop, close_loop);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/exchange.c"

#include <fcntl.h>
#include <unistd.h>

/* A world without a connection: what it would be told is counted. */
static unsigned updates, cancels, ends, pages, resumes;

static void on_update(struct exchange *exchange)
{
    (void)exchange;
    updates++;
}

static enum refusal on_head(struct exchange *exchange)
{
    (void)exchange;
    return REFUSAL_NONE;
}

static void on_page(struct exchange *exchange)
{
    pages++;
    exchange_head(exchange, http_refusal_status(exchange->refusal), 4);
    exchange_write(exchange, span_of("page"));
    exchange_end(exchange, false);
}

static void on_end(struct exchange *exchange)
{
    (void)exchange;
    ends++;
}

static void on_cancel(struct exchange *exchange)
{
    (void)exchange;
    cancels++;
}

static void on_resume(struct exchange *exchange)
{
    resumes++;
    exchange_write(exchange, span_of("more"));
    exchange_pull(exchange); /* does not recurse */
}

static const struct conn conn = {.update = on_update};
static const struct service service = {on_head, on_page, on_end};
static const struct handler handler = {"test", NULL, on_resume, on_cancel};

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

static struct exchange *started(void)
{
    static struct exchange exchange;

    updates = cancels = ends = pages = resumes = 0;
    exchange_init(&exchange, loop, &conn, &service, NULL);
    exchange.handler = &handler;
    exchange.times.body_us = 1;
    return &exchange;
}

static unsigned piece_count(const struct exchange *exchange)
{
    unsigned count = 0;

    list_for_each (link, &exchange->response.pieces)
        count++;
    return count;
}

static void small_writes_become_one_piece(void **state)
{
    struct exchange *exchange = started();
    (void)state;

    exchange_head(exchange, 200, -1);
    for (int i = 0; i < 100; i++)
        exchange_write(exchange, span_of("0123456789"));
    assert_int_equal(piece_count(exchange), 1);
    assert_int_equal(exchange->response.pending, 1000);
    exchange_consume(exchange, 999);
    assert_int_equal(exchange->response.memory, 1);
    exchange_consume(exchange, 1);
    assert_int_equal(piece_count(exchange), 0);
    exchange_done(exchange);
}

static void a_long_stream_does_not_grow_the_arena(void **state)
{
    static char part[4096];
    struct exchange *exchange = started();
    size_t taken;
    (void)state;

    exchange_head(exchange, 200, -1);
    for (int i = 0; i < 100; i++)
        exchange_write(exchange, span_make(part, sizeof(part)));
    assert_true(exchange_is_full(exchange));
    taken = exchange->arena.taken;
    assert_in_range(taken, 1, 2 * ARENA_BODY);
    exchange_consume(exchange, exchange->response.pending);
    for (int i = 0; i < 1000; i++) {
        exchange_write(exchange, span_make(part, sizeof(part)));
        exchange_consume(exchange, exchange->response.pending);
    }
    assert_int_equal(exchange->arena.taken, taken);
    exchange_done(exchange);
}

static void bytes_beyond_the_length_are_dropped_and_the_answer_is_cut(void **state)
{
    struct exchange *exchange = started();
    (void)state;

    exchange_head(exchange, 200, 5);
    exchange_write(exchange, span_of("hello, HTTP/1.1 200 OK"));
    assert_int_equal(exchange->response.pending, 5);
    exchange_end(exchange, false);
    assert_true(exchange->response.cut);
    assert_true(exchange->response.close);
    assert_int_equal(exchange->refusal, REFUSAL_ANSWER_CUT);
    exchange_done(exchange);
}

static void an_end_before_the_length_is_cut_but_not_for_head(void **state)
{
    struct exchange *exchange = started();
    (void)state;

    exchange_head(exchange, 200, 5);
    exchange_write(exchange, span_of("hell"));
    exchange_end(exchange, false);
    assert_true(exchange->response.cut);
    exchange_done(exchange);

    exchange = started();
    exchange->request.method = METHOD_HEAD;
    exchange_head(exchange, 200, 5);
    exchange_write(exchange, span_of("hell"));
    exchange_end(exchange, false);
    assert_false(exchange->response.cut);
    assert_int_equal(exchange->response.pending, 0);
    exchange_done(exchange);
}

static void illegal_fields_are_left_out(void **state)
{
    struct exchange *exchange = started();
    (void)state;

    exchange_add_field(exchange, span_of("x-a"), span_of("a\r\nx-injected: 1"));
    exchange_add_field(exchange, span_of("x-a"), span_make("a\0b", 3));
    exchange_add_field(exchange, span_of("x a"), span_of("1"));
    exchange_add_field(exchange, span_of("x-a\r\nb"), span_of("1"));
    exchange_add_field(exchange, span_of(""), span_of("1"));
    assert_int_equal(exchange->response.fields.size, 0);
    exchange_add_field(exchange, span_of("x-a"), span_of(""));
    exchange_add_field(exchange, span_of("x-b"), span_of("\xc3\xa9\tc"));
    assert_int_equal(exchange->response.fields.size, 2);
    exchange_done(exchange);
}

static void a_refusal_before_the_head_becomes_a_page_and_after_it_a_cut(void **state)
{
    struct exchange *exchange = started();
    (void)state;

    exchange_add_field(exchange, span_of("x-a"), span_of("1"));
    exchange_refuse(exchange, REFUSAL_APP_TIMEOUT);
    assert_int_equal(pages, 1);
    assert_int_equal(exchange->response.status, 504);
    assert_int_equal(exchange->response.fields.size, 0);
    assert_false(exchange->response.cut);
    exchange_done(exchange);

    exchange = started();
    exchange_head(exchange, 200, -1);
    exchange_refuse(exchange, REFUSAL_WORKER_DIED);
    assert_int_equal(pages, 0);
    assert_true(exchange->response.cut && exchange->response.ended);
    exchange_done(exchange);

    exchange = started();
    exchange_end(exchange, true);
    assert_int_equal(exchange->response.status, 502);
    exchange_done(exchange);
}

static void an_abort_cancels_once_and_only_a_handler_that_has_begun(void **state)
{
    struct exchange *exchange = started();
    (void)state;

    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    exchange_abort(exchange, REFUSAL_WRITE_RATE);
    assert_int_equal(cancels, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(exchange->refusal, REFUSAL_CLIENT_LEFT);
    exchange_done(exchange);

    exchange = started();
    exchange->times.body_us = 0;
    exchange_abort(exchange, REFUSAL_BODY_SHORT);
    assert_int_equal(cancels, 0);
    assert_int_equal(ends, 1);
    exchange_done(exchange);

    exchange = started();
    exchange_head(exchange, 200, 0);
    exchange_end(exchange, false);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    assert_int_equal(cancels, 0);
    exchange_done(exchange);
}

static void a_handler_is_resumed_below_the_low_mark_only(void **state)
{
    static char much[EXCHANGE_LOW];
    struct exchange *exchange = started();
    (void)state;

    exchange_pull(exchange);
    assert_int_equal(resumes, 0);
    exchange_head(exchange, 200, -1);
    exchange_write(exchange, span_make(much, sizeof(much)));
    exchange_pull(exchange);
    assert_int_equal(resumes, 0);
    exchange_consume(exchange, 1);
    exchange_pull(exchange);
    assert_int_equal(resumes, 1);
    exchange_end(exchange, false);
    exchange_pull(exchange);
    assert_int_equal(resumes, 1);
    exchange_done(exchange);
}

/* A filter that passes everything on in its own words. */
static void on_filter_head(struct exchange *exchange)
{
    exchange->response.length = -1;
}

static void on_filter_write(struct exchange *exchange, struct span bytes)
{
    exchange_put(exchange, span_of("<"));
    exchange_put(exchange, bytes);
}

static void on_filter_file(struct exchange *exchange, int fd, bool owns_fd, uint64_t offset,
                           uint64_t size)
{
    (void)offset, (void)size;
    if (owns_fd)
        fd_close(&fd);
    exchange_put(exchange, span_of("file"));
}

static void on_filter_flush(struct exchange *exchange)
{
    exchange_put(exchange, span_of("!"));
}

static void on_filter_end(struct exchange *exchange, bool cut)
{
    exchange->filter = NULL;
    exchange_put(exchange, span_of(">"));
    exchange_finish(exchange, cut);
}

static bool on_filter_pull(struct exchange *exchange)
{
    return exchange->response.stream;
}

static const struct filter filter = {
    .head = on_filter_head,
    .settle = on_filter_flush,
    .write = on_filter_write,
    .write_file = on_filter_file,
    .flush = on_filter_flush,
    .end = on_filter_end,
    .pull = on_filter_pull,
};

static void a_filter_stands_between_the_handler_and_the_output(void **state)
{
    struct exchange *exchange = started();
    struct piece *piece;
    (void)state;

    exchange->filter = &filter;
    exchange_settle(exchange); /* there is no head */
    exchange_flush(exchange);
    exchange_head(exchange, 200, 3);
    assert_int_equal(exchange->response.length, -1);
    exchange_settle(exchange);
    exchange_write(exchange, span_of("abc"));
    exchange_flush(exchange);
    exchange_write_file(exchange, fd_temporary("/tmp"), true, 0, 1);
    resumes = 0;
    exchange_pull(exchange);
    assert_int_equal(resumes, 0);
    exchange->response.stream = true;
    exchange_pull(exchange);
    assert_int_equal(resumes, 1);
    exchange_end(exchange, false);
    assert_true(exchange->response.ended);
    piece = CONTAINER_OF(exchange->response.pieces.next, struct piece, link);
    assert_true(span_is(span_make(piece->data, piece->size), "!<abc!file<more>"));
    exchange_done(exchange);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

static void files_are_loaded_in_parts_and_closed_when_sent_or_dropped(void **state)
{
    struct exchange *exchange = started();
    int fd = fd_temporary("/tmp");
    (void)state;

    assert_int_equal(write(fd, "0123456789", 10), 10);
    exchange_head(exchange, 200, 8);
    exchange_write_file(exchange, fd, true, 1, 8);
    assert_int_equal(exchange->response.pending, 8);
    assert_int_equal(exchange->response.memory, 0);
    assert_int_equal(exchange_load(exchange, 3, true), 3);
    assert_int_equal(exchange->response.memory, 3);
    assert_int_equal(exchange->response.pending, 8);
    exchange_consume(exchange, 5);
    assert_true(is_open(fd));
    assert_int_equal(exchange_load(exchange, 100, true), 3);
    assert_false(is_open(fd));
    exchange_done(exchange);

    exchange = started();
    fd = fd_temporary("/tmp");
    exchange_head(exchange, 200, -1);
    exchange_write_file(exchange, fd, true, 0, 8);
    assert_int_equal(exchange_load(exchange, 8, true), 0); /* shorter than promised */
    exchange_reset(exchange);
    assert_false(is_open(fd));
    exchange_done(exchange);

    exchange = started();
    fd = fd_temporary("/tmp");
    exchange->request.method = METHOD_HEAD;
    exchange_head(exchange, 200, 8);
    exchange_write_file(exchange, fd, true, 0, 8);
    assert_false(is_open(fd));
    exchange_done(exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_writes_become_one_piece),
        cmocka_unit_test(a_long_stream_does_not_grow_the_arena),
        cmocka_unit_test(bytes_beyond_the_length_are_dropped_and_the_answer_is_cut),
        cmocka_unit_test(an_end_before_the_length_is_cut_but_not_for_head),
        cmocka_unit_test(illegal_fields_are_left_out),
        cmocka_unit_test(a_refusal_before_the_head_becomes_a_page_and_after_it_a_cut),
        cmocka_unit_test(an_abort_cancels_once_and_only_a_handler_that_has_begun),
        cmocka_unit_test(a_handler_is_resumed_below_the_low_mark_only),
        cmocka_unit_test(a_filter_stands_between_the_handler_and_the_output),
        cmocka_unit_test(files_are_loaded_in_parts_and_closed_when_sent_or_dropped),
    };

    return cmocka_run_group_tests(tests, open_loop, close_loop);
}

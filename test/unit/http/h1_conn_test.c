/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_conn.c"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A whole connection over a socket pair, with a service that answers by path. Time is the loop's own; the
 * deadlines are short. */

static struct loop *loop;
static struct h1_conn *conn;
static int client = -1;
static unsigned requests, ends, closes, cancels;
static enum refusal last_refusal;
static struct exchange *waiting; /* of /wait: answered by the test */
static struct buf got;
static uint64_t spool_used;
static struct h1_options options;

static void on_cancel(struct exchange *exchange)
{
    assert_ptr_equal(exchange, waiting);
    waiting = NULL;
    cancels++;
}

static void endless(struct exchange *exchange)
{
    static char bytes[8192];

    while (!exchange_is_full(exchange))
        exchange_write(exchange, span_make(bytes, sizeof(bytes)));
}

static const struct handler wait_handler = {"wait", NULL, NULL, on_cancel};
static const struct handler endless_handler = {"endless", NULL, endless, NULL};

static enum refusal on_head(struct exchange *exchange)
{
    exchange->request.body_limit = 1000;
    if (span_is(exchange->request.path, "/nowhere"))
        return REFUSAL_NO_SITE;
    return REFUSAL_NONE;
}

static void answer(struct exchange *exchange, unsigned status, struct span body)
{
    exchange_head(exchange, status, (int64_t)body.size);
    exchange_write(exchange, body);
    exchange_end(exchange, false);
}

static void on_request(struct exchange *exchange)
{
    struct span path = exchange->request.path;

    if (exchange->refusal != REFUSAL_NONE) {
        answer(exchange, http_refusal_status(exchange->refusal),
               span_of(http_refusal_word(exchange->refusal)));
        return;
    }
    requests++;
    if (span_is(path, "/wait")) {
        waiting = exchange;
        exchange->handler = &wait_handler;
    } else if (span_is(path, "/endless")) {
        exchange->handler = &endless_handler;
        exchange_head(exchange, 200, -1);
        endless(exchange);
    } else if (span_is(path, "/cut")) {
        exchange_head(exchange, 200, -1);
        exchange_write(exchange, span_of("part"));
        exchange_end(exchange, true);
    } else if (exchange->request.body.size) {
        answer(exchange, 200, buf_span(&exchange->request.body.memory));
    } else {
        answer(exchange, 200, path);
    }
}

static void on_end(struct exchange *exchange)
{
    ends++;
    last_refusal = exchange->refusal;
}

static const struct service service = {on_head, on_request, on_end};

static void on_close(struct h1_conn *closed, void *owner)
{
    assert_ptr_equal(owner, &closes);
    assert_ptr_equal(closed, conn);
    conn = NULL;
    closes++;
}

static int open_world(void **state)
{
    struct address none = {0};
    int pair[2];
    (void)state;

    requests = ends = closes = cancels = 0;
    waiting = NULL;
    last_refusal = REFUSAL_NONE;
    options = (struct h1_options){.service = &service,
                                  .target_bytes = 1000,
                                  .field_bytes = 1000,
                                  .header_bytes = 4000,
                                  .field_count = 20,
                                  .body_memory_bytes = 500,
                                  .spool_folder = "/tmp",
                                  .spool_used = &spool_used,
                                  .spool_limit = 10000,
                                  .header_ms = 60,
                                  .keepalive_ms = 120,
                                  .body_rate = 500,
                                  .write_rate = 500,
                                  .linger_ms = 60};
    loop = loop_new();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    client = pair[1];
    none.socket.any.sa_family = AF_UNIX;
    conn = h1_conn_open(&options, loop, pair[0], &none, &none, on_close, &closes);
    return conn ? 0 : -1;
}

static int close_world(void **state)
{
    (void)state;
    if (conn)
        h1_conn_close(conn, REFUSAL_NONE);
    assert_int_equal(closes, 1);
    assert_int_equal(spool_used, 0);
    fd_close(&client);
    buf_done(&got);
    h1_conn_free_spares();
    loop_free(loop);
    return 0;
}

static void say(const char *text)
{
    assert_int_equal(write(client, text, strlen(text)), (ssize_t)strlen(text));
}

/* Runs the loop until nothing happens for some milliseconds, and takes what the client can read.
 * Returns false at the end of file. */
static bool run(int quiet_ms)
{
    bool open = true;

    while (loop_step(loop, quiet_ms) > 0)
        continue;
    for (;;) {
        char *out = buf_reserve(&got, 65536);
        ssize_t size = read(client, out, 65536);

        if (size == 0 || (size == -1 && errno == ECONNRESET))
            open = false;
        if (size <= 0)
            return open;
        buf_grow(&got, (size_t)size);
        while (loop_step(loop, 0) > 0)
            continue;
    }
}

static unsigned count(const char *part)
{
    unsigned found = 0;
    struct span rest = buf_span(&got);
    size_t size = strlen(part);

    for (; rest.size >= size; rest = span_skip(rest, 1))
        found += memcmp(rest.data, part, size) == 0;
    return found;
}

static void expect_answers(unsigned answers, const char *part)
{
    if (count("HTTP/1.1 ") != answers || !count(part))
        print_error("%.*s\n", SPAN_ARG(buf_span(&got)));
    assert_int_equal(count("HTTP/1.1 "), answers);
    assert_true(count(part));
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    say("GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nContent-Length: "
        "3\r\n\r\nxyz"
        "GET /wait HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    expect_answers(2, "/aHTTP/1.1 200 OK");
    assert_true(count("xyz"));
    assert_non_null(waiting);
    answer(waiting, 200, span_of("late"));
    assert_true(run(5));
    expect_answers(4, "lateHTTP/1.1 200 OK");
    assert_true(count("/c"));
    assert_int_equal(ends, 4);
    assert_true(h1_conn_is_idle(conn));
}

static void an_idle_connection_holds_no_work(void **state)
{
    (void)state;
    assert_null(conn->work);
    say("GET /a HTTP/1.1\r\n");
    assert_true(run(5));
    assert_non_null(conn->work);
    assert_false(h1_conn_is_idle(conn));
    say("Host: x\r\n\r\n");
    assert_true(run(5));
    expect_answers(1, "/a");
    assert_null(conn->work);
}

static void a_body_is_asked_for_when_it_is_expected(void **state)
{
    (void)state;
    say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    assert_true(run(5));
    expect_answers(1, "HTTP/1.1 100 Continue\r\n\r\n");
    say("abc");
    assert_true(run(5));
    expect_answers(2, "abc");
    say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\ndef");
    assert_true(run(5));
    expect_answers(3, "def");
}

static void a_refused_body_is_not_asked_for_and_its_client_reads_the_page(void **state)
{
    char much[5000];
    (void)state;

    memset(much, 'x', sizeof(much));
    say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n");
    assert_false(run(5));
    expect_answers(1, "413 Content Too Large");
    assert_true(count("connection: close"));
    assert_int_equal(write(client, much, sizeof(much)), (ssize_t)sizeof(much));
    assert_false(run(5));
    assert_int_equal(closes, 0); /* lingers until its time is over or the client closes */
    while (closes == 0)
        (void)loop_step(loop, 200);
    assert_int_equal(requests, 0);
    assert_int_equal(last_refusal, REFUSAL_TOO_LARGE);
}

static void a_head_that_is_no_http_gets_a_whole_answer_and_a_close(void **state)
{
    (void)state;
    say("GET / HTTP/1.1\nHost: x\n\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_false(run(5));
    expect_answers(1, "400 Bad Request");
    assert_int_equal(requests, 0);
    fd_close(&client);
    while (closes == 0)
        (void)loop_step(loop, 200);
}

static void a_refusal_without_body_keeps_the_connection(void **state)
{
    (void)state;
    say("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    expect_answers(2, "404 Not Found");
    assert_int_equal(ends, 2);
}

static void half_a_body_never_reaches_the_service(void **state)
{
    (void)state;
    say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\n\r\nhalf");
    assert_true(run(5));
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_false(run(5));
    assert_int_equal(requests, 0);
    assert_int_equal(ends, 1);
    assert_int_equal(last_refusal, REFUSAL_BODY_SHORT);
    assert_int_equal(closes, 1);
}

static void a_half_closed_client_still_gets_its_answer(void **state)
{
    (void)state;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_true(run(5));
    assert_non_null(waiting);
    answer(waiting, 200, span_of("late"));
    assert_false(run(5));
    expect_answers(1, "late");
    assert_int_equal(closes, 1);
}

static void a_client_that_is_gone_cancels_the_handler(void **state)
{
    (void)state;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    fd_close(&client);
    while (loop_step(loop, 5) > 0)
        continue;
    assert_int_equal(cancels, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(last_refusal, REFUSAL_CLIENT_LEFT);
    assert_int_equal(closes, 1);
}

static void a_slow_head_gets_408(void **state)
{
    (void)state;
    say("GET / HT");
    assert_false(run(100));
    expect_answers(1, "408 Request Timeout");
    assert_int_equal(last_refusal, REFUSAL_HEADER_TIMEOUT);
    while (closes == 0)
        (void)loop_step(loop, 200);
}

static void a_silent_connection_is_closed_without_a_word(void **state)
{
    (void)state;
    while (closes == 0)
        (void)loop_step(loop, 200);
    assert_false(run(0));
    assert_int_equal(got.size, 0);
    assert_int_equal(ends, 0);
}

static void an_endless_answer_is_held_back_by_its_reader(void **state)
{
    (void)state;
    say("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
    while (loop_step(loop, 5) > 0)
        continue;
    assert_int_equal(conn->state, H1_WRITING);
    assert_in_range(conn->work->exchange.response.memory, 1, EXCHANGE_HIGH + 8192);
    (void)read(client, buf_reserve(&got, 1 << 16), 1 << 16);
    while (loop_step(loop, 5) > 0)
        continue;
    assert_int_equal(conn->state, H1_WRITING);
    assert_true(exchange_is_full(&conn->work->exchange));
}

static void a_reader_slower_than_the_rate_is_ended(void **state)
{
    (void)state;
    say("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
    while (loop_step(loop, 5) > 0)
        continue;
    for (int i = 0; i < H1_RATE_TICKS && conn; i++)
        conn->timer.on_due(&conn->timer);
    assert_int_equal(closes, 1);
    assert_int_equal(last_refusal, REFUSAL_WRITE_RATE);
}

static void a_body_slower_than_the_rate_gets_408(void **state)
{
    (void)state;
    say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\n\r\nhalf");
    assert_true(run(5));
    for (int i = 0; i < H1_RATE_TICKS; i++)
        conn->timer.on_due(&conn->timer);
    assert_false(run(5));
    expect_answers(1, "408 Request Timeout");
    assert_int_equal(last_refusal, REFUSAL_BODY_RATE);
}

static void http10_gets_no_chunks_and_a_close_unless_it_asks(void **state)
{
    (void)state;
    say("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_true(run(5));
    expect_answers(1, "connection: keep-alive\r\n");
    say("GET /a HTTP/1.0\r\n\r\n");
    assert_false(run(5));
    expect_answers(2, "connection: close\r\n");
    assert_int_equal(closes, 1);
}

static void a_cut_answer_ends_the_connection_without_a_last_chunk(void **state)
{
    (void)state;
    say("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_false(run(5));
    expect_answers(1, "4\r\npart\r\n");
    assert_int_equal(count("0\r\n\r\n"), 0);
    assert_int_equal(last_refusal, REFUSAL_ANSWER_CUT);
}

static void draining_lets_a_busy_connection_say_close(void **state)
{
    (void)state;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    h1_conn_drain(conn, false);
    answer(waiting, 200, span_of("last"));
    assert_false(run(5));
    expect_answers(1, "connection: close\r\n");
}

static void draining_an_idle_connection_still_answers_what_has_come(void **state)
{
    (void)state;
    say("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    h1_conn_drain(conn, false);
    assert_false(run(5));
    expect_answers(1, "connection: close\r\n");
}

static void draining_may_leave_an_idle_connection_one_more_answer(void **state)
{
    (void)state;
    h1_conn_drain(conn, true);
    assert_true(run(5));
    say("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_false(run(5));
    expect_answers(1, "connection: close\r\n");
}

static void draining_an_idle_connection_closes_it(void **state)
{
    (void)state;
    h1_conn_drain(conn, false);
    assert_int_equal(closes, 1);
    assert_false(run(0));
}

static void a_large_body_goes_to_a_file_and_its_room_is_given_back(void **state)
{
    char body[900];
    (void)state;

    memset(body, 'b', sizeof(body));
    say("POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n");
    assert_int_equal(write(client, body, sizeof(body)), (ssize_t)sizeof(body));
    assert_true(run(5));
    assert_int_equal(spool_used, 900);
    assert_true(waiting->request.body.fd >= 0);
    answer(waiting, 200, span_of("ok"));
    assert_true(run(5));
    assert_int_equal(spool_used, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pipelined_requests_are_answered_in_order),
        TEST(an_idle_connection_holds_no_work),
        TEST(a_body_is_asked_for_when_it_is_expected),
        TEST(a_refused_body_is_not_asked_for_and_its_client_reads_the_page),
        TEST(a_head_that_is_no_http_gets_a_whole_answer_and_a_close),
        TEST(a_refusal_without_body_keeps_the_connection),
        TEST(half_a_body_never_reaches_the_service),
        TEST(a_half_closed_client_still_gets_its_answer),
        TEST(a_client_that_is_gone_cancels_the_handler),
        TEST(a_slow_head_gets_408),
        TEST(a_silent_connection_is_closed_without_a_word),
        TEST(an_endless_answer_is_held_back_by_its_reader),
        TEST(a_reader_slower_than_the_rate_is_ended),
        TEST(a_body_slower_than_the_rate_gets_408),
        TEST(http10_gets_no_chunks_and_a_close_unless_it_asks),
        TEST(a_cut_answer_ends_the_connection_without_a_last_chunk),
        TEST(draining_lets_a_busy_connection_say_close),
        TEST(draining_an_idle_connection_still_answers_what_has_come),
        TEST(draining_may_leave_an_idle_connection_one_more_answer),
        TEST(draining_an_idle_connection_closes_it),
        TEST(a_large_body_goes_to_a_file_and_its_room_is_given_back),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

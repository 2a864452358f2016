/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_receive.c"

#include "h1_world.h"

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

static void a_small_refused_body_is_dropped_and_the_connection_stays(void **state)
{
    char rest[1996] = "";
    (void)state;

    memset(rest, 'G', sizeof(rest) - 1);
    say("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\nGET /");
    assert_true(run(5));
    expect_answers(1, "404 Not Found");
    assert_false(count("close"));
    assert_false(h1_conn_is_idle(conn));
    say(rest);
    say("POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nGET /\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    expect_answers(3, "/next");
    assert_int_equal(requests, 1);
    assert_int_equal(ends, 3);
    assert_true(h1_conn_is_idle(conn));
}

static void a_refused_body_that_may_be_large_ends_the_connection(void **state)
{
    static const char *const rests[] = {
        "Content-Length: 65537\r\n\r\n",
        "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n",
        "Content-Length: 10\r\nConnection: close\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n10001\r\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(rests); i++) {
        say("POST /nowhere HTTP/1.1\r\nHost: x\r\n");
        say(rests[i]);
        assert_false(run(5));
        expect_answers(1, "404 Not Found");
        assert_int_equal(close_world(state), 0);
        assert_int_equal(open_world(state), 0);
    }
}

static void a_refused_body_that_does_not_come_is_not_waited_for_long(void **state)
{
    (void)state;
    say("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345");
    assert_false(run(200));
    expect_answers(1, "404 Not Found");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pipelined_requests_are_answered_in_order),
        TEST(a_body_is_asked_for_when_it_is_expected),
        TEST(half_a_body_never_reaches_the_service),
        TEST(a_small_refused_body_is_dropped_and_the_connection_stays),
        TEST(a_refused_body_that_may_be_large_ends_the_connection),
        TEST(a_refused_body_that_does_not_come_is_not_waited_for_long),
        TEST(a_slow_head_gets_408),
        TEST(a_body_slower_than_the_rate_gets_408),
        TEST(a_head_that_is_no_http_gets_a_whole_answer_and_a_close),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_conn.c"

#include "h1_world.h"

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

static enum refusal refuse_and_close(struct exchange *exchange)
{
    (void)exchange;
    h1_conn_close(conn, REFUSAL_OVERLOAD);
    return REFUSAL_NONE;
}

static void a_service_may_close_the_connection_in_its_own_call(void **state)
{
    const struct service closing = {refuse_and_close, on_request, on_end};
    (void)state;

    options.service = &closing;
    say("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_false(run(5));
    assert_int_equal(closes, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(requests, 0);
    assert_int_equal(last_refusal, REFUSAL_OVERLOAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(draining_lets_a_busy_connection_say_close),
        TEST(draining_an_idle_connection_still_answers_what_has_come),
        TEST(draining_may_leave_an_idle_connection_one_more_answer),
        TEST(draining_an_idle_connection_closes_it),
        TEST(a_service_may_close_the_connection_in_its_own_call),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

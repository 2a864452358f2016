/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_answer.c"

#include "h1_world.h"

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

static void a_refusal_without_body_keeps_the_connection(void **state)
{
    (void)state;
    say("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    expect_answers(2, "404 Not Found");
    assert_int_equal(ends, 2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_refused_body_is_not_asked_for_and_its_client_reads_the_page),
        TEST(a_refusal_without_body_keeps_the_connection),
        TEST(a_half_closed_client_still_gets_its_answer),
        TEST(an_endless_answer_is_held_back_by_its_reader),
        TEST(a_reader_slower_than_the_rate_is_ended),
        TEST(http10_gets_no_chunks_and_a_close_unless_it_asks),
        TEST(a_cut_answer_ends_the_connection_without_a_last_chunk),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

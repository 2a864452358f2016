/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_state.c"

#include "h1_world.h"

static void a_silent_connection_is_closed_without_a_word(void **state)
{
    (void)state;
    while (closes == 0)
        (void)loop_step(loop, 200);
    assert_false(run(0));
    assert_int_equal(got.size, 0);
    assert_int_equal(ends, 0);
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

static void a_deadline_that_comes_due_in_a_later_state_is_ignored(void **state)
{
    (void)state;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(150)); /* longer than header_ms and keepalive_ms */
    assert_non_null(waiting);
    answer(waiting, 200, span_of("late"));
    assert_true(run(5));
    expect_answers(1, "late");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_silent_connection_is_closed_without_a_word),
        TEST(a_client_that_is_gone_cancels_the_handler),
        TEST(a_deadline_that_comes_due_in_a_later_state_is_ignored),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_work.c"

#include "h1_world.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_idle_connection_holds_no_work),
        TEST(a_large_body_goes_to_a_file_and_its_room_is_given_back),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

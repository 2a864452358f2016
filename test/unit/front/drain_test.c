/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/drain.c"

#include "front_world.h"

static void idle_ones_close_and_busy_ones_are_answered(void **state)
{
    struct page_writer writer;
    int idle, busy;
    const char *answer;
    (void)state;

    world_configure();
    world_start();
    idle = world_connect(0);
    world_send(idle, "GET /pulse HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)world_read_until(idle, "\r\n\r\nOK");
    busy = world_connect(0);
    world_send(busy, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    writer = world_take();
    world_say(FRONT_DRAIN, 0, 5000);
    assert_true(world_is_over(idle));
    world_answer(&writer, "the last");
    answer = world_read_until(busy, "the last");
    assert_non_null(strstr(answer, "connection:close") ? answer
                                                       : strstr(answer, "connection: close"));
    assert_true(world_is_over(busy));
    assert_int_equal(world_hear(FRONT_DRAINED).number, 0);
    close(idle);
    close(busy);
    assert_int_equal(world_end(), 0);
}

static void a_request_on_its_way_is_answered_as_the_last(void **state)
{
    int used, fresh, probe;
    (void)state;

    world_configure();
    world_start();
    used = world_connect(0);
    world_send(used, "GET /pulse HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)world_read_until(used, "\r\n\r\nOK");
    fresh = world_connect(0);
    while (atomic_load(&world.counters->accepted) < 2)
        sched_yield();
    fd_close(&world.listeners[0].fd); /* the front has the last copy, and closes it */
    world_say(FRONT_DRAIN, 0, 5000);
    while ((probe = address_connect(&world.listeners[0].address, 1000)) >= 0)
        close(probe);
    for (int i = 0; i < 2; i++) {
        int client = i ? fresh : used;

        world_send(client, "GET /pulse HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_non_null(strstr(world_read_until(client, "\r\n\r\nOK"), "close"));
        assert_true(world_is_over(client));
        close(client);
    }
    assert_int_equal(world_hear(FRONT_DRAINED).number, 0);
    assert_int_equal(world_end(), 0);
}

static void what_waits_in_the_backlog_is_still_answered(void **state)
{
    int client;
    (void)state;

    world_configure();
    world_start();
    assert_int_equal(kill(world.front, SIGSTOP), 0);
    client = world_connect(0);
    world_send(client, "GET /pulse HTTP/1.1\r\nHost: a\r\n\r\n");
    world_say(FRONT_DRAIN, 0, 5000);
    assert_int_equal(kill(world.front, SIGCONT), 0);
    (void)world_read_until(client, "\r\n\r\nOK");
    assert_int_equal(world_hear(FRONT_DRAINED).number, 0);
    close(client);
    assert_int_equal(world_end(), 0);
}

static void when_time_is_over_requests_are_cut_and_counted(void **state)
{
    int client;
    (void)state;

    world_configure();
    world_start();
    client = world_connect(0);
    world_send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)world_take();
    world_say(FRONT_DRAIN, 0, 50);
    assert_int_equal(world_hear(FRONT_DRAINED).number, 1);
    assert_true(world_is_over(client));
    assert_int_equal(slot_get_note(&world.board, 0), SLOT_LEFT);
    close(client);
    assert_int_equal(world_end(), 0);
}

/* One round on a connection that the client would keep; whether it was told to leave. */
static bool is_last_answer(int client)
{
    struct page_writer writer;
    const char *answer;

    world_send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    writer = world_take();
    world_answer(&writer, "served");
    answer = world_read_until(client, "served");
    return strstr(answer, "connection:close") || strstr(answer, "connection: close");
}

static bool is_pulse_refused(void)
{
    int client = world_connect(0);
    bool refused;

    world_send(client, "GET /pulse HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    refused = strstr(world_read_until(client, "\r\n\r\n"), " 503 ");
    close(client);
    return refused;
}

static void before_a_stop_all_are_answered_and_told_not_to_stay(void **state)
{
    int used, fresh;
    (void)state;

    world_configure();
    world_start();
    used = world_connect(0);
    assert_false(is_last_answer(used));
    world_say(FRONT_LEAVE, 0, 0);
    while (!is_pulse_refused())
        sched_yield();
    fresh = world_connect(0);
    assert_true(is_last_answer(used));
    assert_true(is_last_answer(fresh));
    assert_true(world_is_over(used));
    assert_true(world_is_over(fresh));
    world_say(FRONT_DRAIN, 0, 5000);
    assert_int_equal(world_hear(FRONT_DRAINED).number, 0);
    close(used);
    close(fresh);
    assert_int_equal(world_end(), 0);
}

static void
one_that_retires_leaves_its_listeners_to_others_and_empties_what_was_given_up(void **state)
{
    struct page_writer writer;
    int waiting, given_up, busy;
    (void)state;

    world_configure();
    world_start();
    busy = world_connect(0);
    world_send(busy, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    writer = world_take();
    assert_int_equal(kill(world.front, SIGSTOP), 0);
    given_up = world_connect(1);
    world_send(given_up, "GET /live HTTP/1.1\r\nHost: a\r\n\r\n");
    world_say(FRONT_GIVE_UP, 0, 1);
    world_say(FRONT_RETIRE, 0, 0);
    assert_int_equal(kill(world.front, SIGCONT), 0);
    (void)world_hear(FRONT_RELEASED);
    assert_non_null(strstr(world_read_until(given_up, "\r\n\r\n"), " 200 "));
    assert_int_equal(listen_accept(world.listeners[1].fd, NULL), -EAGAIN);
    fd_close(&given_up);
    waiting = world_connect(0);
    given_up = listen_accept(world.listeners[0].fd, NULL);
    assert_true(given_up >= 0); /* for the next front */
    world_answer(&writer, "the last");
    assert_non_null(strstr(world_read_until(busy, "the last"), "close"));
    assert_int_equal(world_hear(FRONT_DRAINED).number, 0);
    close(given_up);
    close(waiting);
    close(busy);
    assert_int_equal(world_end(), 0);
}

static void one_that_retires_ends_its_streams_when_its_place_is_needed(void **state)
{
    int client;
    (void)state;

    world_configure();
    world_start();
    client = world_connect(0);
    world_send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)world_take();
    world_say(FRONT_RETIRE, 0, 0);
    world_say(FRONT_END_STREAMS, 0, 0);
    assert_int_equal(world_hear(FRONT_DRAINED).number, 0);
    assert_true(world_is_over(client));
    close(client);
    assert_int_equal(world_end(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_ones_close_and_busy_ones_are_answered),
        cmocka_unit_test(a_request_on_its_way_is_answered_as_the_last),
        cmocka_unit_test(what_waits_in_the_backlog_is_still_answered),
        cmocka_unit_test(when_time_is_over_requests_are_cut_and_counted),
        cmocka_unit_test(
            one_that_retires_leaves_its_listeners_to_others_and_empties_what_was_given_up),
        cmocka_unit_test(one_that_retires_ends_its_streams_when_its_place_is_needed),
        cmocka_unit_test(before_a_stop_all_are_answered_and_told_not_to_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

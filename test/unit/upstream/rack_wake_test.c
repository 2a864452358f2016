/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_wake.c"

#include "rack_world.h"

static bool was_rung(uint32_t thread)
{
    return atomic_load(&world.board.threads[thread].bell) != 0;
}

static void a_request_wakes_one_sleeper_only(void **state)
{
    struct exchange *first, *second;
    (void)state;

    world_open(0, 0);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 1, BOARD_SLEEP_QUEUE);
    first = world_start("GET", "/");
    second = world_start("GET", "/");
    assert_int_equal(was_rung(0) + was_rung(1), 0);
    world_turn(0);
    assert_int_equal(was_rung(0) + was_rung(1), 1);
    exchange_abort(first, REFUSAL_CLIENT_LEFT);
    exchange_abort(second, REFUSAL_CLIENT_LEFT);
    world_end(first);
    world_end(second);
    world_close();
}

static void an_unanswered_wake_goes_to_another(void **state)
{
    struct exchange *exchange;
    (void)state;

    world_open(0, 0);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 1, BOARD_SLEEP_QUEUE);
    exchange = world_start("GET", "/");
    for (int i = 0; i < 100 && !(was_rung(0) && was_rung(1)); i++)
        world_turn(10);
    assert_true(was_rung(0));
    assert_true(was_rung(1));
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    world_close();
}

static void a_thread_of_a_busy_process_is_woken_only_after_a_moment(void **state)
{
    struct exchange *exchange;
    (void)state;

    world_open(0, 0);
    atomic_store(&world.board.workers[0].busy, 1);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    exchange = world_start("GET", "/");
    assert_false(was_rung(0));
    for (int i = 0; i < 100 && !was_rung(0); i++)
        world_turn(10);
    assert_true(was_rung(0));
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    world_close();
}

static void nothing_ticks_when_nothing_waits(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_answer(&writer, "x");
    world_turn(0);
    for (int i = 0; i < 10 && timer_is_set(&world.rack->nudge_timer); i++)
        world_turn(10);
    assert_false(timer_is_set(&world.rack->nudge_timer));
    world_end(exchange);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_wakes_one_sleeper_only),
        cmocka_unit_test(an_unanswered_wake_goes_to_another),
        cmocka_unit_test(a_thread_of_a_busy_process_is_woken_only_after_a_moment),
        cmocka_unit_test(nothing_ticks_when_nothing_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_notice.c"

#include "rack_world.h"

static void a_sleeping_loop_is_woken_by_its_bell(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    /* What the loop says before it sleeps; the answer then rings. */
    assert_true(bell_front_sleep(&world.board, 0, 0));
    world_answer(&writer, "x");
    loop_step(world.loop, 5000);
    assert_int_equal(exchange->response.status, 200);
    world_end(exchange);
    world_close();
}

static void pages_of_other_loops_and_old_turns_are_left_alone(void **state)
{
    struct page_word word = {.slot = 1, .turn = 7, .bytes = 8};
    uint64_t packed = page_pack(word);
    (void)state;

    world_open(0, 0);
    atomic_store(&world.board.threads[0].pages[0], packed);
    bell_notify_front(&world.board, 0, 0, 0);
    world_turn(0);
    assert_int_equal(atomic_load(&world.board.threads[0].pages[0]), packed);
    world_close();
}

static void another_threads_page_ends_the_answer(void **state)
{
    struct exchange *exchange;
    struct page_writer writer, other;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    other = writer;
    other.thread = 1;
    world_put_head(&writer, 200, 0);
    page_publish(&writer);
    world_turn(0);
    world_put(&other, PAGE_END, 0, span_of(""));
    page_publish(&other);
    world_turn(0);
    assert_true(exchange->response.ended && exchange->response.cut);
    assert_int_equal(world.broken, 1);
    assert_int_equal(world.last_worker, 1);
    world_end(exchange);
    world_close();
}

static void pages_of_a_client_that_left_are_emptied(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    world_put_head(&writer, 200, 0);
    page_publish(&writer);
    world_turn(0);
    assert_int_equal(atomic_load(&world.board.threads[0].pages[0]), 0);
    assert_int_equal(rack_held(world.rack), 1);
    slot_finish(&world.board, writer.slot, 0);
    world_turn(0);
    assert_int_equal(rack_held(world.rack), 0);
    world_close();
}

static void pages_held_back_are_taken_once_the_worker_is_done(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    struct rack_job *job;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put_head(&writer, 200, 0);
    page_publish(&writer);
    world_turn(0);
    job = exchange->handler_data;
    job->is_held_back = true;
    world_put(&writer, PAGE_DATA, 0, span_of("late"));
    page_publish(&writer);
    world_turn(0);
    assert_int_not_equal(atomic_load(&world.board.threads[0].pages[1]), 0);
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    slot_finish(&world.board, writer.slot, 0);
    world_turn(0);
    assert_int_equal(atomic_load(&world.board.threads[0].pages[1]), 0);
    assert_true(exchange->response.ended && !exchange->response.cut);
    world_end(exchange);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeping_loop_is_woken_by_its_bell),
        cmocka_unit_test(pages_of_other_loops_and_old_turns_are_left_alone),
        cmocka_unit_test(another_threads_page_ends_the_answer),
        cmocka_unit_test(pages_held_back_are_taken_once_the_worker_is_done),
        cmocka_unit_test(pages_of_a_client_that_left_are_emptied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

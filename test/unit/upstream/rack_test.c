/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack.c"

#include "rack_world.h"

static void an_answer_comes_back_and_the_slot_is_free_again(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    char room[64];
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    assert_int_equal(rack_held(world.rack), 1);
    writer = world_take(0);
    world_answer(&writer, "hello");
    world_turn(0);
    assert_int_equal(exchange->response.status, 200);
    assert_true(exchange->response.ended && !exchange->response.cut);
    assert_true(span_is(world_text(exchange, room), "hello"));
    assert_int_equal(rack_held(world.rack), 0);
    assert_null(board_audit(&world.board));
    world_end(exchange);
    world_close();
}

static void a_full_queue_refuses_at_once(void **state)
{
    struct exchange *exchanges[WORLD_SLOTS + 1];
    (void)state;

    world_open(0, 0);
    for (int i = 0; i <= WORLD_SLOTS; i++)
        exchanges[i] = world_start("GET", "/");
    assert_int_equal(exchanges[WORLD_SLOTS]->refusal, REFUSAL_QUEUE_FULL);
    assert_int_equal(exchanges[WORLD_SLOTS]->response.status, 503);
    assert_int_equal(exchanges[0]->refusal, REFUSAL_NONE);
    assert_int_equal(world.shed, 1);
    for (int i = 0; i < WORLD_SLOTS; i++)
        exchange_abort(exchanges[i], REFUSAL_CLIENT_LEFT);
    for (int i = 0; i <= WORLD_SLOTS; i++)
        world_end(exchanges[i]);
    world_close();
}

static void who_waits_too_long_is_taken_out_of_the_queue(void **state)
{
    struct exchange *exchange;
    struct slot_word word;
    (void)state;

    world_open(20, 0);
    exchange = world_start("POST", "/");
    for (int i = 0; i < 50 && !exchange->response.ended; i++)
        world_turn(10);
    assert_int_equal(exchange->refusal, REFUSAL_QUEUE_TIMEOUT);
    assert_int_equal(world.expired, 1);
    assert_int_equal(queue_take(&world.board, 0, &word), -1);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

static void a_client_that_leaves_the_queue_is_never_run(void **state)
{
    struct exchange *exchange;
    struct slot_word word;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    assert_int_equal(queue_take(&world.board, 0, &word), -1);
    assert_int_equal(world.abandoned, 1);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

static void a_client_that_leaves_later_is_told_to_the_worker(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    assert_int_equal(slot_get_note(&world.board, writer.slot), SLOT_LEFT);
    assert_int_equal(rack_held(world.rack), 1);
    world_answer(&writer, "nobody reads this");
    world_turn(0);
    assert_int_equal(rack_held(world.rack), 0);
    assert_int_equal(world.broken, 0);
    assert_null(board_audit(&world.board));
    world_close();
}

static void over_the_time_limit_the_client_gets_504_and_the_worker_is_named(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(10000, 20);
    exchange = world_start("GET", "/");
    writer = world_take(1);
    for (int i = 0; i < 50 && !exchange->response.ended; i++)
        world_turn(10);
    assert_int_equal(exchange->response.status, 504);
    assert_int_equal(world.late, 1);
    assert_int_equal(world.last_worker, 1);
    assert_int_equal(slot_get_note(&world.board, writer.slot), SLOT_LATE);
    world_end(exchange);
    world_close();
}

static void a_worker_cannot_put_its_deadline_off(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 30);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    for (int i = 0; i < 50 && !exchange->response.ended; i++) {
        atomic_store(&slot_request(&world.board, writer.slot)->taken_us, clock_us());
        world_turn(5);
    }
    assert_int_equal(exchange->response.status, 504);
    world_end(exchange);
    world_close();
}

static void kill_worker(uint32_t worker)
{
    atomic_store(&world.board.workers[worker].life, BOARD_DEAD);
    rack_bury_worker(world.rack, worker);
}

static void a_request_whose_worker_died_runs_again_on_another(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("POST", "/");
    (void)world_take(0);
    kill_worker(0);
    assert_false(exchange->response.ended);
    assert_int_equal(world.reruns, 1);
    writer = world_take(1);
    world_answer(&writer, "second");
    world_turn(0);
    assert_int_equal(exchange->response.status, 200);
    world_end(exchange);
    world_close();
}

static void a_post_that_the_application_saw_is_not_run_twice(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    struct slot_word word;
    (void)state;

    world_open(0, 0);
    exchange = world_start("POST", "/");
    writer = world_take(0);
    slot_advance(&world.board, writer.slot, 0, SLOT_CALLED);
    kill_worker(0);
    assert_int_equal(exchange->response.status, 502);
    assert_int_equal(exchange->refusal, REFUSAL_WORKER_DIED);
    assert_int_equal(queue_take(&world.board, 1, &word), -1);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

static void two_dead_workers_end_a_request(void **state)
{
    struct exchange *exchange;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    (void)world_take(0);
    kill_worker(0);
    (void)world_take(1);
    kill_worker(1);
    assert_int_equal(exchange->response.status, 502);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

static void what_a_worker_published_before_it_died_counts(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    char room[64];
    (void)state;

    world_open(0, 0);
    exchange = world_start("POST", "/");
    writer = world_take(0);
    world_put_head(&writer, 200, 0);
    world_put(&writer, PAGE_DATA, 0, span_of("all"));
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    kill_worker(0);
    assert_int_equal(exchange->response.status, 200);
    assert_true(exchange->response.ended && !exchange->response.cut);
    assert_true(span_is(world_text(exchange, room), "all"));
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

static void an_answer_that_had_begun_is_visibly_cut(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put_head(&writer, 200, 0);
    world_put(&writer, PAGE_DATA, 0, span_of("half"));
    page_publish(&writer);
    world_turn(0);
    assert_int_equal(exchange->response.status, 200);
    kill_worker(0);
    assert_true(exchange->response.ended && exchange->response.cut);
    world_end(exchange);
    world_close();
}

static void a_slot_that_was_given_away_ends_its_request(void **state)
{
    struct exchange *first, *second;
    (void)state;

    world_open(0, 0);
    first = world_start("GET", "/");
    atomic_store(&world.board.words[0], 0);
    second = world_start("GET", "/");
    assert_int_equal(first->response.status, 502);
    assert_false(second->response.ended);
    assert_int_equal(rack_held(world.rack), 1);
    exchange_abort(second, REFUSAL_CLIENT_LEFT);
    world_end(first);
    world_end(second);
    world_close();
}

static void requests_that_wait_long_ask_for_workers(void **state)
{
    struct exchange *exchange;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    for (int i = 0; i < 100 && !world.wanted; i++)
        world_turn(10);
    assert_int_equal(world.wanted, 1);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_comes_back_and_the_slot_is_free_again),
        cmocka_unit_test(a_full_queue_refuses_at_once),
        cmocka_unit_test(who_waits_too_long_is_taken_out_of_the_queue),
        cmocka_unit_test(a_client_that_leaves_the_queue_is_never_run),
        cmocka_unit_test(a_client_that_leaves_later_is_told_to_the_worker),
        cmocka_unit_test(over_the_time_limit_the_client_gets_504_and_the_worker_is_named),
        cmocka_unit_test(a_worker_cannot_put_its_deadline_off),
        cmocka_unit_test(a_request_whose_worker_died_runs_again_on_another),
        cmocka_unit_test(a_post_that_the_application_saw_is_not_run_twice),
        cmocka_unit_test(two_dead_workers_end_a_request),
        cmocka_unit_test(what_a_worker_published_before_it_died_counts),
        cmocka_unit_test(an_answer_that_had_begun_is_visibly_cut),
        cmocka_unit_test(a_slot_that_was_given_away_ends_its_request),
        cmocka_unit_test(requests_that_wait_long_ask_for_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

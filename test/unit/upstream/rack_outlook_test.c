/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_outlook.c"

#include "rack_world.h"

/* Both workers say that a request takes so long, and this loop has seen as much. */
static void set_pace(uint64_t service_us)
{
    for (unsigned i = 0; i < WORLD_WORKERS; i++)
        atomic_store(&world.board.workers[i].service_ns, service_us * 1000);
    for (unsigned i = 0; i < FORECAST_RECENT; i++)
        forecast_note(&world.rack->recent, service_us);
    world.rack->step_us = 0;
}

static void leave(struct exchange **exchanges, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        if (!exchanges[i]->response.ended)
            exchange_abort(exchanges[i], REFUSAL_CLIENT_LEFT);
        world_end(exchanges[i]);
    }
}

static void who_would_wait_too_long_is_refused_at_once(void **state)
{
    struct exchange *exchanges[4];
    (void)state;

    world_open(1000, 0);
    set_pace(900000);
    for (unsigned i = 0; i < 4; i++)
        exchanges[i] = world_start("GET", "/");
    /* Behind two, the wait is 0.9 s; behind three, 1.35 s. */
    assert_int_equal(exchanges[2]->refusal, REFUSAL_NONE);
    assert_int_equal(exchanges[3]->refusal, REFUSAL_QUEUE_LONG);
    assert_int_equal(exchanges[3]->response.status, 503);
    assert_int_equal(exchanges[3]->retry_s, 2);
    assert_int_equal(world.shed, 1);
    assert_int_equal(queue_length(&world.board), 3);
    leave(exchanges, 4);
    world_close();
}

static void nobody_is_refused_while_nothing_is_known(void **state)
{
    struct exchange *exchanges[WORLD_SLOTS];
    (void)state;

    world_open(1, 0);
    for (unsigned i = 0; i < WORLD_SLOTS; i++)
        exchanges[i] = world_start("GET", "/");
    assert_int_equal(world.shed, 0);
    leave(exchanges, WORLD_SLOTS);
    world_close();
}

static void nobody_is_refused_without_a_limit_or_a_worker(void **state)
{
    struct exchange *exchanges[WORLD_SLOTS];
    (void)state;

    world_open(0, 0);
    set_pace(3600000000);
    for (unsigned i = 0; i < WORLD_SLOTS; i++)
        exchanges[i] = world_start("GET", "/");
    assert_int_equal(world.shed, 0);
    leave(exchanges, WORLD_SLOTS);
    world_close();

    world_open(100, 0);
    set_pace(3600000000);
    for (unsigned i = 0; i < WORLD_WORKERS; i++)
        atomic_store(&world.board.workers[i].life, BOARD_RETIRING);
    for (unsigned i = 0; i < WORLD_SLOTS; i++)
        exchanges[i] = world_start("GET", "/");
    assert_int_equal(world.shed, 0);
    leave(exchanges, WORLD_SLOTS);
    world_close();
}

static void an_empty_queue_takes_anybody(void **state)
{
    struct exchange *exchanges[2];
    struct page_writer writer;
    (void)state;

    world_open(10, 0);
    set_pace(3600000000);
    exchanges[0] = world_start("GET", "/");
    writer = world_take(0);
    exchanges[1] = world_start("GET", "/");
    assert_int_equal(exchanges[1]->refusal, REFUSAL_NONE);
    world_answer(&writer, "x");
    world_turn(0);
    leave(exchanges, 2);
    world_close();
}

static void answers_teach_what_is_usual_and_streams_do_not(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_answer(&writer, "x");
    world_turn(0);
    assert_int_equal(world.rack->recent.seen, 1);
    world_end(exchange);

    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put_head(&writer, 200, PAGE_STREAM);
    page_publish(&writer);
    world_turn(0);
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    slot_finish(&world.board, writer.slot, writer.thread);
    world_turn(0);
    assert_true(exchange->response.ended);
    world_end(exchange);

    exchange = world_start("GET", "/");
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    assert_int_equal(world.rack->recent.seen, 1);
    world_close();
}

static void a_full_queue_says_when_it_is_expected_to_be_empty(void **state)
{
    struct exchange *exchanges[WORLD_SLOTS + 1];
    (void)state;

    world_open(60000, 0);
    set_pace(5000000);
    for (unsigned i = 0; i <= WORLD_SLOTS; i++)
        exchanges[i] = world_start("GET", "/");
    assert_int_equal(exchanges[WORLD_SLOTS]->refusal, REFUSAL_QUEUE_FULL);
    assert_int_equal(exchanges[WORLD_SLOTS]->retry_s, 10);
    leave(exchanges, WORLD_SLOTS + 1);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_would_wait_too_long_is_refused_at_once),
        cmocka_unit_test(nobody_is_refused_while_nothing_is_known),
        cmocka_unit_test(nobody_is_refused_without_a_limit_or_a_worker),
        cmocka_unit_test(an_empty_queue_takes_anybody),
        cmocka_unit_test(answers_teach_what_is_usual_and_streams_do_not),
        cmocka_unit_test(a_full_queue_says_when_it_is_expected_to_be_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

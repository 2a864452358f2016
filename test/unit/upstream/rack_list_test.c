/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_list.c"

#include "rack_world.h"

/* What was shown; spans are copied, as they are valid for a moment only. */
struct sight {
    unsigned size;
    struct rack_request requests[8];
    char paths[8][64];
};

static void see(void *data, const struct rack_request *request)
{
    struct sight *sight = data;

    assert_in_range(sight->size, 0, 7);
    sight->requests[sight->size] = *request;
    assert_in_range(request->path.size, 0, 63);
    if (request->path.size)
        memcpy(sight->paths[sight->size], request->path.data, request->path.size);
    sight->paths[sight->size][request->path.size] = '\0';
    sight->size++;
}

static struct sight look_around(void)
{
    struct sight sight = {.size = 0};

    rack_list(world.rack, see, &sight);
    return sight;
}

static struct sight end_by_hand(const char *id)
{
    struct sight sight = {.size = 0};

    rack_kill(world.rack, span_of(id), see, &sight);
    return sight;
}

static struct exchange *start_with_id(const char *target, const char *id)
{
    struct exchange *exchange = world_request("POST", target);

    exchange->id = span_of(id);
    rack_start(world.rack, exchange);
    return exchange;
}

static void open_world(void)
{
    world_open(0, 0);
    for (unsigned i = 0; i < WORLD_WORKERS; i++)
        atomic_store(&world.board.workers[i].pid, 100 + i);
}

static void begin_stream(struct page_writer *writer)
{
    world_put_head(writer, 200, PAGE_STREAM);
    page_publish(writer);
    world_turn(0);
}

static void every_stage_is_shown_as_what_it_is(void **state)
{
    struct exchange *stream, *running, *waiting;
    struct page_writer writer;
    struct sight sight;
    (void)state;

    open_world();
    assert_int_equal(look_around().size, 0);
    stream = start_with_id("/stream?a=b", "id-1");
    writer = world_take(0);
    begin_stream(&writer);
    running = start_with_id("/running", "id-2");
    (void)world_take(1);
    waiting = start_with_id("/waiting", "id-3");
    sight = look_around();
    assert_int_equal(sight.size, 3);
    assert_int_equal(sight.requests[0].stage, RACK_STREAMING);
    assert_int_equal(sight.requests[0].pid, 100);
    assert_string_equal(sight.paths[0], "/stream");
    assert_int_equal(sight.requests[1].stage, RACK_RUNNING);
    assert_int_equal(sight.requests[1].pid, 101);
    assert_true(span_is(sight.requests[1].id, "id-2"));
    assert_true(span_is(sight.requests[1].client, "192.0.2.7"));
    assert_int_equal(sight.requests[2].stage, RACK_QUEUED);
    assert_int_equal(sight.requests[2].pid, 0);
    assert_int_equal(sight.requests[2].run_us, 0);
    exchange_abort(stream, REFUSAL_CLIENT_LEFT);
    exchange_abort(running, REFUSAL_CLIENT_LEFT);
    exchange_abort(waiting, REFUSAL_CLIENT_LEFT);
    world_end(stream);
    world_end(running);
    world_end(waiting);
    world_close();
}

static void what_runs_for_nobody_is_shown_from_the_board(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    struct sight sight;
    (void)state;

    open_world();
    exchange = start_with_id("/left?a=b", "id-1");
    writer = world_take(1);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    sight = look_around();
    assert_int_equal(sight.size, 1);
    assert_int_equal(sight.requests[0].stage, RACK_LEFT);
    assert_int_equal(sight.requests[0].pid, 101);
    assert_string_equal(sight.paths[0], "/left");
    assert_true(span_is(sight.requests[0].id, "id-1"));
    world_answer(&writer, "x");
    assert_int_equal(look_around().size, 0);
    world_turn(0);
    world_close();
}

static void what_a_worker_scribbled_shows_nothing_beyond_its_slot(void **state)
{
    struct exchange *exchange;
    struct slot_request *request;
    (void)state;

    world_open(0, 0);
    exchange = start_with_id("/left", "id-1");
    request = slot_request(&world.board, world_take(0).slot);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    request->path = (struct slot_span){128 * 1024 - 10, 4000};
    request->request_id = (struct slot_span){UINT32_MAX, 4};
    request->queued_us = UINT64_MAX;
    assert_int_equal(look_around().size, 1);
    assert_int_equal(look_around().requests[0].path.size, 0);
    assert_int_equal(look_around().requests[0].age_us, 0);
    assert_int_equal(end_by_hand("id-1").size, 0);
    world_close();
}

static void one_that_waits_is_answered_503_and_never_taken(void **state)
{
    struct exchange *first, *second;
    struct sight sight;
    (void)state;

    world_open(0, 0);
    first = start_with_id("/first", "id-1");
    second = start_with_id("/second", "id-2");
    sight = end_by_hand("id-1");
    assert_int_equal(sight.size, 1);
    assert_int_equal(sight.requests[0].stage, RACK_QUEUED);
    assert_int_equal(first->response.status, 503);
    assert_int_equal(first->refusal, REFUSAL_KILLED_WAITING);
    assert_int_equal(world.killed, 0);
    assert_int_equal(rack_held(world.rack), 1);
    assert_int_equal(second->refusal, REFUSAL_NONE);
    exchange_abort(second, REFUSAL_CLIENT_LEFT);
    world_end(first);
    world_end(second);
    assert_null(board_audit(&world.board));
    world_close();
}

static void one_that_runs_is_answered_502_and_its_worker_named(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    struct slot_word word;
    (void)state;

    world_open(0, 0);
    exchange = start_with_id("/", "id-1");
    writer = world_take(1);
    assert_int_equal(end_by_hand("id-1").size, 1);
    assert_int_equal(exchange->response.status, 502);
    assert_int_equal(exchange->refusal, REFUSAL_KILLED);
    assert_true(exchange->times.taken_us);
    assert_int_equal(world.killed, 1);
    assert_int_equal(world.last_worker, 1);
    assert_int_equal(slot_get_note(&world.board, writer.slot), SLOT_LATE);
    world_end(exchange);
    /* The end of its worker does not bring it back. */
    atomic_store(&world.board.workers[1].life, BOARD_DEAD);
    rack_bury_worker(world.rack, 1);
    assert_int_equal(queue_take(&world.board, 0, &word), -1);
    assert_int_equal(rack_held(world.rack), 0);
    world_close();
}

static void a_stream_is_cut(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = start_with_id("/", "id-1");
    writer = world_take(0);
    begin_stream(&writer);
    assert_int_equal(end_by_hand("id-1").requests[0].stage, RACK_STREAMING);
    assert_true(exchange->response.ended && exchange->response.cut);
    assert_int_equal(exchange->response.status, 200);
    assert_int_equal(exchange->refusal, REFUSAL_KILLED);
    assert_int_equal(world.killed, 1);
    assert_int_equal(atomic_load(&world.streams), 0);
    world_end(exchange);
    world_close();
}

static void one_whose_client_left_ends_with_its_worker(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = start_with_id("/", "id-1");
    writer = world_take(1);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    assert_int_equal(end_by_hand("id-1").size, 1);
    assert_int_equal(world.killed, 1);
    assert_int_equal(slot_get_note(&world.board, writer.slot), SLOT_LATE);
    world_close();
}

static void all_of_an_id_end_and_no_other(void **state)
{
    struct exchange *exchanges[3];
    (void)state;

    world_open(0, 0);
    exchanges[0] = start_with_id("/", "twice");
    exchanges[1] = start_with_id("/", "twice-not");
    exchanges[2] = start_with_id("/", "twice");
    assert_int_equal(end_by_hand("nobody").size, 0);
    assert_int_equal(end_by_hand("twice").size, 2);
    assert_int_equal(rack_held(world.rack), 1);
    exchange_abort(exchanges[1], REFUSAL_CLIENT_LEFT);
    for (int i = 0; i < 3; i++)
        world_end(exchanges[i]);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_is_shown_as_what_it_is),
        cmocka_unit_test(what_runs_for_nobody_is_shown_from_the_board),
        cmocka_unit_test(what_a_worker_scribbled_shows_nothing_beyond_its_slot),
        cmocka_unit_test(one_that_waits_is_answered_503_and_never_taken),
        cmocka_unit_test(one_that_runs_is_answered_502_and_its_worker_named),
        cmocka_unit_test(a_stream_is_cut),
        cmocka_unit_test(one_whose_client_left_ends_with_its_worker),
        cmocka_unit_test(all_of_an_id_end_and_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

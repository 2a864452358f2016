/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_tunnel.c"

#include "rack_world.h"

static int tunnel_fd = -1, tunnel_result;

static int note_tunnel(struct exchange *exchange, int fd)
{
    (void)exchange;
    if (tunnel_result)
        fd_close(&fd);
    else
        tunnel_fd = fd;
    return tunnel_result;
}

static enum refusal cut_for;

static void note_cut(struct exchange *exchange, enum refusal refusal)
{
    cut_for = refusal;
    exchange_abort(exchange, refusal);
}

static const struct conn tunnel_conn = {
    .interim = world_interim, .update = world_update, .tunnel = note_tunnel, .cut = note_cut};

static struct exchange *start(struct page_writer *ret_writer)
{
    struct exchange *exchange = world_request("GET", "/");

    exchange->conn = &tunnel_conn;
    tunnel_result = 0;
    rack_start(world.rack, exchange);
    *ret_writer = world_take(0);
    slot_advance(&world.board, ret_writer->slot, ret_writer->thread, SLOT_CALLED);
    return exchange;
}

static struct rack_job *job_of(const struct page_writer *writer)
{
    return rack_find_job(world.rack, writer->slot, writer->turn);
}

static void publish_tunnel(struct page_writer *writer)
{
    world_put(writer, PAGE_TUNNEL, 0, span_of(""));
    page_publish(writer);
    world_turn(10);
}

static void a_hijack_makes_a_pair_and_frees_the_slot(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    int fd = -1;
    char byte;
    (void)state;

    world_open(0, 0);
    exchange = start(&writer);
    assert_int_equal(rack_tunnel_offer(job_of(&writer), &fd), 0);
    publish_tunnel(&writer);
    assert_null(job_of(&writer));
    assert_int_equal(world.streams, 1);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(read(tunnel_fd, &byte, 1), 1);
    slot_finish(&world.board, writer.slot, writer.thread);
    world_turn(10);
    assert_int_equal(rack_held(world.rack), 0);
    assert_int_equal(slot_look(&world.board, writer.slot).state, SLOT_FREE);
    assert_int_equal(world.broken, 0);
    exchange_abort(exchange, REFUSAL_NONE);
    world_end(exchange);
    assert_int_equal(world.streams, 0);
    fd_close(&tunnel_fd);
    fd_close(&fd);
    world_close();
}

static unsigned seen;
static struct rack_request last_seen;

static void see(void *data, const struct rack_request *request)
{
    (void)data;
    seen++;
    last_seen = *request;
}

static void a_tunnel_is_seen_once_and_ended_by_hand(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    int fd = -1;
    (void)state;

    world_open(0, 0);
    atomic_store(&world.board.workers[0].pid, 42);
    exchange = start(&writer);
    assert_int_equal(rack_tunnel_offer(job_of(&writer), &fd), 0);
    publish_tunnel(&writer);
    seen = 0;
    /* The application's call has not returned: it is no request that nobody waits for. */
    rack_list(world.rack, see, NULL);
    assert_int_equal(seen, 1);
    assert_int_equal(last_seen.stage, RACK_STREAMING);
    assert_int_equal(last_seen.pid, 42);
    slot_finish(&world.board, writer.slot, writer.thread);
    world_turn(10);
    rack_list(world.rack, see, NULL);
    assert_int_equal(seen, 2);
    rack_kill(world.rack, span_of("id-1"), see, NULL);
    assert_int_equal(seen, 3);
    assert_int_equal(cut_for, REFUSAL_KILLED);
    assert_int_equal(world.killed, 0);
    world_end(exchange);
    rack_list(world.rack, see, NULL);
    assert_int_equal(seen, 3);
    fd_close(&tunnel_fd);
    fd_close(&fd);
    world_close();
}

static void a_worker_that_still_runs_what_took_the_connection_is_named(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    int fd = -1;
    (void)state;

    world_open(0, 0);
    exchange = start(&writer);
    assert_int_equal(rack_tunnel_offer(job_of(&writer), &fd), 0);
    publish_tunnel(&writer);
    rack_kill(world.rack, span_of("id-1"), see, NULL);
    assert_int_equal(world.killed, 1);
    world_end(exchange);
    /* From now on it runs for nobody. */
    rack_list(world.rack, see, NULL);
    assert_int_equal(last_seen.stage, RACK_LEFT);
    fd_close(&tunnel_fd);
    fd_close(&fd);
    world_close();
}

static void a_head_before_the_tunnel_is_raw(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    int fd = -1;
    (void)state;

    world_open(0, 0);
    exchange = start(&writer);
    assert_int_equal(rack_tunnel_offer(job_of(&writer), &fd), 0);
    world_put_head(&writer, 101, PAGE_RAW);
    publish_tunnel(&writer);
    assert_int_equal(exchange->response.status, 101);
    assert_true(exchange->response.raw);
    assert_true(tunnel_fd != -1);
    exchange_abort(exchange, REFUSAL_NONE);
    world_end(exchange);
    fd_close(&tunnel_fd);
    fd_close(&fd);
    world_close();
}

static void a_tunnel_that_was_not_asked_for_breaks_the_answer(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    (void)state;

    world_open(0, 0);
    exchange = start(&writer);
    publish_tunnel(&writer);
    assert_int_equal(world.broken, 1);
    assert_int_equal(exchange->response.status, 502);
    world_end(exchange);
    world_close();
}

static void a_101_without_a_tunnel_breaks_the_answer(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    (void)state;

    world_open(0, 0);
    exchange = start(&writer);
    world_put_head(&writer, 101, 0);
    page_publish(&writer);
    world_turn(10);
    assert_int_equal(world.broken, 1);
    assert_int_equal(exchange->response.status, 502);
    world_end(exchange);
    world_close();
}

static void a_pair_whose_request_ends_otherwise_is_closed(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    int fd = -1, second = -1;
    char byte;
    (void)state;

    world_open(0, 0);
    exchange = start(&writer);
    assert_int_equal(rack_tunnel_offer(job_of(&writer), &fd), 0);
    assert_int_equal(rack_tunnel_offer(job_of(&writer), &second), 0);
    assert_int_equal(read(fd, &byte, 1), 0);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    assert_int_equal(read(second, &byte, 1), 0);
    world_end(exchange);
    fd_close(&fd);
    fd_close(&second);
    world_close();
}

static void a_carrier_that_fails_refuses_the_request(void **state)
{
    struct page_writer writer;
    struct exchange *exchange;
    int fd = -1;
    char byte;
    (void)state;

    world_open(0, 0);
    exchange = start(&writer);
    assert_int_equal(rack_tunnel_offer(job_of(&writer), &fd), 0);
    tunnel_result = -ENOMEM;
    publish_tunnel(&writer);
    assert_int_equal(exchange->response.status, 503);
    assert_int_equal(read(fd, &byte, 1), 0);
    world_end(exchange);
    fd_close(&fd);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hijack_makes_a_pair_and_frees_the_slot),
        cmocka_unit_test(a_tunnel_is_seen_once_and_ended_by_hand),
        cmocka_unit_test(a_worker_that_still_runs_what_took_the_connection_is_named),
        cmocka_unit_test(a_head_before_the_tunnel_is_raw),
        cmocka_unit_test(a_tunnel_that_was_not_asked_for_breaks_the_answer),
        cmocka_unit_test(a_101_without_a_tunnel_breaks_the_answer),
        cmocka_unit_test(a_pair_whose_request_ends_otherwise_is_closed),
        cmocka_unit_test(a_carrier_that_fails_refuses_the_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_body.c"

#include "rack_world.h"

static char megabyte[1024 * 1024];

/* Publishes size bytes, as far as pages are free; returns what was left. */
static size_t pour(struct page_writer *writer, size_t size)
{
    while (size && page_can_write(writer)) {
        uint32_t room = page_room(writer);
        size_t part = size < room ? size : room;

        world_put(writer, PAGE_DATA, 0, span_make(megabyte, part));
        page_publish(writer);
        size -= part;
    }
    return size;
}

static void a_slow_client_holds_up_no_worker(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    size_t left = sizeof(megabyte);
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put_head(&writer, 200, 0);
    while (left) {
        left = pour(&writer, left);
        world_turn(0);
    }
    assert_true(exchange->response.memory <= EXCHANGE_HIGH + BOARD_PAGE_BYTES);
    assert_true(world.spool_used > sizeof(megabyte) / 2);
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    slot_finish(&world.board, writer.slot, 0);
    world_turn(0);
    assert_true(exchange->response.ended);
    assert_int_equal(exchange->response.pending, sizeof(megabyte));
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    assert_int_equal(world.spool_used, 0);
    world_close();
}

static void without_room_to_spool_the_worker_waits_and_nothing_is_lost(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    size_t left = sizeof(megabyte);
    uint64_t sent = 0;
    (void)state;

    world_open(0, 0);
    world.rack->options.spool_limit = 0;
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put_head(&writer, 200, 0);
    for (int i = 0; i < 1000 && left; i++) {
        size_t before = left;

        left = pour(&writer, left);
        world_turn(0);
        if (left != before)
            continue;
        assert_true(exchange_is_full(exchange));
        sent += exchange->response.pending;
        exchange_consume(exchange, exchange->response.pending);
        exchange_pull(exchange);
    }
    assert_int_equal(left, 0);
    for (int i = 0; i < 100 && sent + exchange->response.pending < sizeof(megabyte); i++) {
        sent += exchange->response.pending;
        exchange_consume(exchange, exchange->response.pending);
        exchange_pull(exchange);
        world_turn(0);
    }
    assert_int_equal(sent + exchange->response.pending, sizeof(megabyte));
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
    world_close();
}

static void a_bare_500_becomes_our_own_page(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put_head(&writer, 500, 0);
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    slot_finish(&world.board, writer.slot, 0);
    world_turn(0);
    assert_int_equal(exchange->refusal, REFUSAL_APP_FAILED);
    assert_int_equal(world.broken, 0);
    world_end(exchange);
    world_close();
}

static void a_stream_feels_its_client(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put_head(&writer, 200, PAGE_STREAM);
    for (int i = 0; i < 100; i++) {
        (void)pour(&writer, BOARD_PAGE_BYTES);
        world_turn(0);
    }
    assert_true(exchange->response.stream);
    assert_int_equal(world.streams, 1);
    assert_int_equal(world.spool_used, 0);
    assert_true(exchange->response.memory <= EXCHANGE_HIGH + BOARD_PAGE_BYTES);
    assert_false(page_can_write(&writer));
    exchange_consume(exchange, exchange->response.pending);
    exchange_pull(exchange);
    assert_true(page_can_write(&writer));
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    assert_int_equal(world.streams, 0);
    world_end(exchange);
    world_close();
}

static void garbage_is_502_and_the_worker_is_reported(void **state)
{
    static const struct span pages[] = {
        SPAN("garbage that is no record at all"),
        SPAN("\3\0\0\0\4\0\0\0data\0\0\0\0"),       /* DATA before a head */
        SPAN("\2\0\0\0\377\377\377\377"),           /* a HEAD of four gigabytes */
        SPAN("\2\0\0\0\4\0\0\0\144\0\0\0\0\0\0\0"), /* status 100 */
        SPAN("\4\0\0\0\20\0\0\0aaaabbbbccccdddd"),  /* a FILE that was never passed */
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        struct exchange *exchange;
        struct page_writer writer;

        world_open(0, 0);
        exchange = world_start("GET", "/");
        writer = world_take(1);
        memcpy(world.board.pages + (size_t)writer.thread * BOARD_PAGES * BOARD_PAGE_BYTES,
               pages[i].data, pages[i].size);
        writer.used = (uint32_t)pages[i].size;
        page_publish(&writer);
        world_turn(0);
        assert_int_equal(exchange->response.status, 502);
        assert_int_equal(world.broken, 1);
        assert_int_equal(world.last_worker, 1);
        slot_finish(&world.board, writer.slot, writer.thread);
        world_turn(0);
        assert_int_equal(rack_held(world.rack), 0);
        world_end(exchange);
        world_close();
    }
}

static void a_page_word_that_cannot_be_reports_the_worker(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(1);
    atomic_store(&world.board.threads[1].pages[0], UINT64_MAX);
    bell_notify_front(&world.board, 0, 0, 1);
    world_turn(0);
    assert_int_equal(world.broken, 1);
    assert_int_equal(world.last_worker, 1);
    assert_false(exchange->response.ended);
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    slot_finish(&world.board, writer.slot, writer.thread);
    world_end(exchange);
    world_close();
}

static void done_without_an_end_is_502(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    slot_advance(&world.board, writer.slot, 0, SLOT_CALLED);
    slot_finish(&world.board, writer.slot, 0);
    world_turn(0);
    assert_int_equal(exchange->response.status, 502);
    world_turn(0);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

static void a_head_over_the_limit_is_502_but_no_broken_worker(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put(&writer, PAGE_HEAD, 0, span_make(megabyte, 2000));
    page_publish(&writer);
    world_turn(0);
    assert_int_equal(exchange->response.status, 502);
    assert_int_equal(world.broken, 0);
    world_end(exchange);
    world_close();
}

static void fields_reach_the_client_and_framing_does_not(void **state)
{
    static const char head[] = "\310\0\4\0"
                               "\3\0\0\0\1\0\0\0x-a1"
                               "\12\0\0\0\5\0\0\0connectionclose"
                               "\21\0\0\0\7\0\0\0transfer-encodingchunked"
                               "\16\0\0\0\1\0\0\0content-length3";
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put(&writer, PAGE_HEAD, PAGE_CLOSE, span_make(head, sizeof(head) - 1));
    world_put(&writer, PAGE_DATA, 0, span_of("abc"));
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    world_turn(0);
    assert_int_equal(exchange->response.status, 200);
    assert_int_equal(exchange->response.fields.size, 1);
    assert_true(span_is(exchange->response.fields.items[0].name, "x-a"));
    assert_int_equal(exchange->response.length, 3);
    assert_true(exchange->response.close);
    assert_false(exchange->response.cut);
    world_end(exchange);
    world_close();
}

static void a_head_may_come_in_parts_and_after_an_interim_one(void **state)
{
    static const char head[] = "\310\0\1\0\3\0\0\0\1\0\0\0x-a1";
    static const char hints[] = "\147\0\1\0\4\0\0\0\1\0\0\0link1";
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put(&writer, PAGE_INTERIM, 0, span_make(hints, sizeof(hints) - 1));
    world_put(&writer, PAGE_HEAD, PAGE_MORE, span_make(head, 7));
    page_publish(&writer);
    world_turn(0);
    assert_int_equal(world_interims, 1);
    assert_int_equal(exchange->response.status, 0);
    world_put(&writer, PAGE_HEAD, 0, span_make(head + 7, sizeof(head) - 1 - 7));
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    world_turn(0);
    assert_int_equal(exchange->response.status, 200);
    assert_int_equal(exchange->response.fields.size, 1);
    world_end(exchange);
    world_close();
}

static void a_file_that_the_head_names_is_the_owner_s_and_no_field_of_it_leaves(void **state)
{
    static const char head[] = "\310\0\2\0"
                               "\20\0\0\0\11\0\0\0x-accel-redirect/inside/a"
                               "\12\0\0\0\2\0\0\0x-sendfile/b";
    struct exchange *exchange;
    struct page_writer writer;
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    world_put(&writer, PAGE_HEAD, 0, span_make(head, sizeof(head) - 1));
    world_put(&writer, PAGE_DATA, 0, span_of("a body that nobody wants"));
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    slot_finish(&world.board, writer.slot, 0);
    world_turn(0);
    assert_int_equal(world.internals, 1);
    assert_int_equal(world.broken, 0);
    assert_int_equal(exchange->response.fields.size, 0);
    assert_int_equal(exchange->response.written, 0);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

static void a_whole_file_is_served_by_the_owner(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    struct rack_job *job;
    struct page_file file = {0, 5};
    (void)state;

    world_open(0, 0);
    exchange = world_start("GET", "/");
    writer = world_take(0);
    job = rack_find_job(world.rack, writer.slot, writer.turn);
    job->file_fd = fd_temporary("/tmp");
    assert_int_equal(write(job->file_fd, "bytes", 5), 5);
    world_put_head(&writer, 200, 0);
    world_put(&writer, PAGE_FILE, 0, span_make((char *)&file, sizeof(file)));
    world_put(&writer, PAGE_END, 0, span_of(""));
    page_publish(&writer);
    slot_finish(&world.board, writer.slot, 0);
    world_turn(0);
    assert_int_equal(world.files, 1);
    assert_int_equal(world.broken, 0);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_client_holds_up_no_worker),
        cmocka_unit_test(without_room_to_spool_the_worker_waits_and_nothing_is_lost),
        cmocka_unit_test(a_bare_500_becomes_our_own_page),
        cmocka_unit_test(a_stream_feels_its_client),
        cmocka_unit_test(garbage_is_502_and_the_worker_is_reported),
        cmocka_unit_test(a_page_word_that_cannot_be_reports_the_worker),
        cmocka_unit_test(done_without_an_end_is_502),
        cmocka_unit_test(a_head_over_the_limit_is_502_but_no_broken_worker),
        cmocka_unit_test(fields_reach_the_client_and_framing_does_not),
        cmocka_unit_test(a_head_may_come_in_parts_and_after_an_interim_one),
        cmocka_unit_test(a_file_that_the_head_names_is_the_owner_s_and_no_field_of_it_leaves),
        cmocka_unit_test(a_whole_file_is_served_by_the_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

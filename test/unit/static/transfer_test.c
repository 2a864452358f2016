/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/transfer.c"

#include "static_world.h"

enum { LARGE = 3 * 1024 * 1024 + 17 };

static struct open_file *file;

static int setup(void **state)
{
    struct resolve_identity identity;
    int fd;

    world_setup(state);
    write_bytes("large", LARGE);
    fd = open(in_world("large"), O_RDONLY | O_CLOEXEC);
    assert_true(resolve_identify(fd, &identity));
    file = open_file_new(fd, &identity, span_of("large"));
    begin("GET", "/large", NULL);
    return 0;
}

static int teardown(void **state)
{
    exchange_reset(&world.exchange);
    open_file_unref(file);
    return world_teardown(state);
}

static void start(const struct range *parts, unsigned count, const struct span *leads,
                  struct span trail, int64_t length)
{
    struct transfer_plan plan = {
        .file = file, .parts = parts, .count = count, .leads = leads, .trail = trail};

    exchange_head(&world.exchange, 200, length);
    transfer_start(&world.exchange, world.offload, world.post, &plan);
}

static void assert_bytes(struct span bytes, size_t first)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] != byte_at(first + i))
            fail_msg("byte %zu is wrong", i);
}

static void drop_pages(void)
{
    assert_int_equal(fsync(file->fd), 0);
    assert_int_equal(posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

static void a_large_file_arrives_whole_in_pieces(void **state)
{
    const struct range whole = {0, LARGE};
    (void)state;
    world.pull_at_most = 100000;
    start(&whole, 1, NULL, (struct span){0}, LARGE);
    assert_true(world.exchange.response.pending <= 2 * PIECE);
    assert_false(world.exchange.response.ended);
    run();
    assert_int_equal(world.body.size, LARGE);
    assert_bytes(buf_span(&world.body), 0);
    assert_false(world.exchange.response.cut);
}

static void pages_that_are_not_in_memory_are_read_by_a_file_thread(void **state)
{
    const struct range whole = {0, LARGE};
    (void)state;
    drop_pages();
    start(&whole, 1, NULL, (struct span){0}, LARGE);
    run();
    assert_int_equal(world.body.size, LARGE);
    assert_bytes(buf_span(&world.body), 0);
}

static void parts_come_in_order_between_their_leads(void **state)
{
    const struct range parts[] = {{1000000, 700000}, {5, 3}};
    const struct span leads[] = {SPAN("<one>"), SPAN("<two>")};
    struct span got;
    (void)state;
    start(parts, 2, leads, (struct span)SPAN("<end>"), 700000 + 3 + 15);
    run();
    got = buf_span(&world.body);
    assert_int_equal(got.size, 700000 + 3 + 15);
    assert_memory_equal(got.data, "<one>", 5);
    assert_bytes(span_make(got.data + 5, 700000), 1000000);
    assert_memory_equal(got.data + 700005, "<two>", 5);
    assert_bytes(span_make(got.data + 700010, 3), 5);
    assert_memory_equal(got.data + 700013, "<end>", 5);
}

static void a_client_that_leaves_during_a_read_is_forgotten(void **state)
{
    const struct range whole = {0, LARGE};
    (void)state;
    drop_pages();
    start(&whole, 1, NULL, (struct span){0}, LARGE);
    exchange_abort(&world.exchange, REFUSAL_CLIENT_LEFT);
    exchange_reset(&world.exchange);
    loop_step(world.loop, 100);
    assert_int_equal(file->references, 1);
}

/* Takes all but the last bytes, then lets the file change. */
static void send_until_guarded(void)
{
    static const struct range whole = {0, LARGE};

    start(&whole, 1, NULL, (struct span){0}, LARGE);
    for (int i = 0; i < 1000 && world.body.size < LARGE - FINAL; i++) {
        if (list_is_empty(&world.exchange.response.pieces))
            loop_step(world.loop, 2000);
        /* Not resumed behind the last piece, as long as the test has not changed the file. */
        while (!list_is_empty(&world.exchange.response.pieces)) {
            struct piece *piece =
                CONTAINER_OF(world.exchange.response.pieces.next, struct piece, link);

            take_piece(piece, piece->size);
        }
        if (world.body.size < LARGE - FINAL)
            exchange_pull(&world.exchange);
    }
    assert_int_equal(world.body.size, LARGE - FINAL);
    assert_false(world.exchange.response.ended);
}

static void a_file_that_was_written_over_ends_short(void **state)
{
    (void)state;
    send_until_guarded();
    write_bytes("large", LARGE);
    run();
    assert_true(world.exchange.response.cut);
    assert_int_equal(world.body.size, LARGE - FINAL);
}

static void a_file_that_was_removed_or_appended_to_arrives_whole(void **state)
{
    int fd;
    (void)state;

    open_file_load(file, OPEN_FILE_SMALL);
    send_until_guarded();
    fd = open(in_world("large"), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "more", 4), 4);
    close(fd);
    assert_int_equal(unlink(in_world("large")), 0);
    run();
    assert_false(world.exchange.response.cut);
    assert_int_equal(world.body.size, LARGE);
    assert_bytes(buf_span(&world.body), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_large_file_arrives_whole_in_pieces),
        TEST(pages_that_are_not_in_memory_are_read_by_a_file_thread),
        TEST(parts_come_in_order_between_their_leads),
        TEST(a_file_that_was_written_over_ends_short),
        TEST(a_file_that_was_removed_or_appended_to_arrives_whole),
        TEST(a_client_that_leaves_during_a_read_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

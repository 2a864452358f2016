/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/queue.c"

#include "world.h"

static uint32_t take(struct world *world, uint32_t thread)
{
    struct slot_word word;
    int64_t slot = queue_take(&world->board, thread, &word);

    assert_true(slot >= 0);
    assert_int_equal(word.state, SLOT_TAKEN);
    assert_int_equal(word.owner, thread);
    return (uint32_t)slot;
}

static void finish(struct world *world, uint32_t slot, uint32_t thread)
{
    assert_true(slot_finish(&world->board, slot, thread));
    assert_true(slot_free(&world->board, slot));
}

static void requests_are_taken_in_the_order_of_their_tickets(void **state)
{
    struct world world;
    struct slot_word word;
    (void)state;

    world_open(&world, 8, 1, 1);
    for (int i = 0; i < 4; i++)
        (void)world_send(&world, 0, 0);
    assert_int_equal(take(&world, 0), 0);
    finish(&world, 0, 0);
    assert_int_equal(world_send(&world, 1, 0), 0);
    assert_int_equal(queue_length(&world.board), 4);
    for (uint32_t slot = 1; slot < 4; slot++)
        assert_int_equal(take(&world, 0), slot);
    assert_int_equal(take(&world, 0), 0);
    assert_int_equal(queue_take(&world.board, 0, &word), -1);
    assert_true(queue_is_empty(&world.board));
    world_close(&world);
}

static void tickets_count_on_through_zero(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 8, 1, 1);
    atomic_store(&world.board.header->ticket, UINT32_MAX - 2);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(world_send(&world, 0, 0), i);
    assert_int_equal(slot_look(&world.board, 5).ticket, 2);
    world_is_sound(&world);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(take(&world, 0), i);
        finish(&world, i, 0);
    }
    world_is_empty(&world);
    world_close(&world);
}

static void a_slot_that_is_not_being_filled_is_not_queued(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 8, 1, 1);
    assert_false(queue_push(&world.board, 3, 0));
    assert_int_equal(queue_length(&world.board), 0);
    world_is_empty(&world);
    world_close(&world);
}

static void a_request_of_a_dead_worker_goes_back_to_its_place(void **state)
{
    struct world world;
    struct slot_word word;
    (void)state;

    world_open(&world, 8, 2, 1);
    for (int i = 0; i < 3; i++)
        (void)world_send(&world, 1, 0);
    assert_int_equal(queue_take(&world.board, 1, &word), 0);
    assert_true(queue_push_again(&world.board, 0, word, 1));
    assert_false(queue_push_again(&world.board, 0, word, 1));
    assert_int_equal(slot_look(&world.board, 0).turn, word.turn);
    assert_int_equal(take(&world, 0), 0);
    assert_int_equal(take(&world, 0), 1);
    world_close(&world);
}

static void only_a_queued_request_of_that_turn_is_cancelled(void **state)
{
    struct world world;
    uint32_t slot;
    (void)state;

    world_open(&world, 8, 1, 1);
    slot = world_send(&world, 0, 0);
    assert_false(queue_cancel(&world.board, slot, 2));
    assert_true(queue_cancel(&world.board, slot, 1));
    assert_false(queue_cancel(&world.board, slot, 1));
    assert_int_equal(queue_length(&world.board), 0);
    assert_true(slot_free(&world.board, slot));
    slot = world_send(&world, 0, 0);
    assert_int_equal(take(&world, 0), slot);
    assert_false(queue_cancel(&world.board, slot, 2));
    world_close(&world);
}

static void the_age_is_that_of_the_oldest_and_never_negative(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 8, 1, 1);
    assert_int_equal(queue_oldest_us(&world.board, 5000), -1);
    (void)world_send(&world, 0, 0);
    assert_int_equal(queue_oldest_us(&world.board, 5000), 4000);
    slot_request(&world.board, 0)->queued_us = UINT64_MAX;
    assert_int_equal(queue_oldest_us(&world.board, 5000), 0);
    slot_request(&world.board, 0)->queued_us = 0;
    assert_int_equal(queue_oldest_us(&world.board, UINT64_MAX), 0);
    world_close(&world);
}

static void the_mark_follows_the_depth_but_not_every_request(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 100, 1, 1);
    for (int i = 0; i < 50; i++)
        (void)world_send(&world, 0, 0);
    assert_int_equal(queue_high(&world.board), 56);
    for (uint32_t i = 0; i < 50; i++) {
        assert_int_equal(take(&world, 0), i);
        assert_true(slot_finish(&world.board, i, 0));
    }
    for (uint32_t i = 50; i-- > 33;)
        assert_true(slot_free(&world.board, i));
    assert_int_equal(queue_high(&world.board), 48);
    for (uint32_t i = 33; i-- > 0;)
        assert_true(slot_free(&world.board, i));
    assert_int_equal(queue_high(&world.board), 8);
    (void)world_send(&world, 0, 0);
    assert_int_equal(queue_high(&world.board), 8);
    world_close(&world);
}

static void the_mark_covers_the_last_slot_of_an_odd_number(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 11, 1, 1);
    for (int i = 0; i < 11; i++)
        (void)world_send(&world, 0, 0);
    assert_int_equal(queue_high(&world.board), 11);
    for (uint32_t i = 0; i < 11; i++)
        assert_int_equal(take(&world, 0), i);
    world_close(&world);
}

static void settling_covers_a_request_above_the_mark(void **state)
{
    struct world world;
    struct slot_word word;
    (void)state;

    world_open(&world, 64, 1, 1);
    for (int i = 0; i < 40; i++)
        (void)world_send(&world, 0, 0);
    for (uint32_t i = 0; i < 39; i++)
        assert_true(queue_cancel(&world.board, i, 1));
    atomic_store(&world.board.header->high, 8);
    assert_int_equal(queue_take(&world.board, 0, &word), -1);
    assert_non_null(board_audit(&world.board));
    queue_settle(&world.board);
    world_is_sound(&world);
    assert_int_equal(queue_take(&world.board, 0, &word), 39);
    world_close(&world);
}

static void a_mark_of_garbage_is_bounded_and_put_right(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 20, 1, 1);
    atomic_store(&world.board.header->high, UINT32_MAX);
    assert_int_equal(queue_high(&world.board), 20);
    (void)world_send(&world, 0, 0);
    assert_int_equal(queue_length(&world.board), 1);
    queue_settle(&world.board);
    assert_int_equal(atomic_load(&world.board.header->high), 16);
    world_is_sound(&world);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_taken_in_the_order_of_their_tickets),
        cmocka_unit_test(tickets_count_on_through_zero),
        cmocka_unit_test(a_slot_that_is_not_being_filled_is_not_queued),
        cmocka_unit_test(a_request_of_a_dead_worker_goes_back_to_its_place),
        cmocka_unit_test(only_a_queued_request_of_that_turn_is_cancelled),
        cmocka_unit_test(the_age_is_that_of_the_oldest_and_never_negative),
        cmocka_unit_test(the_mark_follows_the_depth_but_not_every_request),
        cmocka_unit_test(the_mark_covers_the_last_slot_of_an_odd_number),
        cmocka_unit_test(settling_covers_a_request_above_the_mark),
        cmocka_unit_test(a_mark_of_garbage_is_bounded_and_put_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/slot.c"

#include "world.h"

static void a_word_packs_and_unpacks_every_part(void **state)
{
    struct slot_word word = {SLOT_CANCELLED, 16383, 16383, UINT32_MAX};
    struct slot_word back = slot_unpack(slot_pack(word));
    (void)state;

    assert_memory_equal(&word, &back, sizeof(word));
    word = (struct slot_word){SLOT_FILLING, 1, 2, 3};
    assert_int_equal(slot_pack(word), UINT64_C(0x1000400200000003));
}

static void the_lowest_free_slot_is_claimed_and_none_is_an_answer(void **state)
{
    struct world world;
    uint32_t turn;
    (void)state;

    world_open(&world, 3, 1, 1);
    assert_int_equal(slot_claim(&world.board, 0, &turn), 0);
    assert_int_equal(slot_claim(&world.board, 1, &turn), 1);
    assert_int_equal(slot_claim(&world.board, 0, &turn), 2);
    assert_int_equal(slot_claim(&world.board, 0, &turn), -1);
    assert_int_equal(slot_look(&world.board, 1).owner, 1);
    assert_true(slot_free(&world.board, 1));
    assert_int_equal(slot_claim(&world.board, 0, &turn), 1);
    assert_int_equal(turn, 2);
    world_close(&world);
}

static void turns_count_on_through_zero(void **state)
{
    struct world world;
    uint32_t turn = 0;
    (void)state;

    world_open(&world, 1, 1, 1);
    for (uint32_t i = 1; i <= SLOT_TURNS + 2; i++) {
        assert_int_equal(slot_claim(&world.board, 0, &turn), 0);
        assert_int_equal(turn, i % SLOT_TURNS);
        assert_true(slot_free(&world.board, 0));
    }
    world_is_empty(&world);
    world_close(&world);
}

static void a_request_is_filled_until_the_slot_is_full(void **state)
{
    struct world world;
    char big[8192] = {0};
    struct slot_span part = {1, 2}, before = part;
    struct slot_field *fields;
    struct slot_request *request;
    uint32_t turn;
    (void)state;

    world_open(&world, 1, 1, 1);
    request = slot_request(&world.board, 0);
    assert_int_equal(slot_claim(&world.board, 0, &turn), 0);
    slot_begin(&world.board, 0, 1, 1);
    assert_true(slot_append(&world.board, 0, span_of("GET"), &request->method));
    fields = slot_fields(&world.board, 0, 2);
    assert_non_null(fields);
    assert_int_equal((uintptr_t)fields % sizeof(uint32_t), 0);
    assert_true(span_is(slot_text(&world.board, 0, request->method), "GET"));
    assert_false(slot_append(&world.board, 0, span_make(big, sizeof(big)), &part));
    assert_memory_equal(&part, &before, sizeof(part));
    assert_true(slot_append(&world.board, 0, span_make(big, 8192 - request->used), &part));
    assert_int_equal(request->used, 8192);
    assert_false(slot_append(&world.board, 0, span_of("x"), &part));
    assert_true(slot_append(&world.board, 0, span_of(""), &part));
    assert_null(slot_fields(&world.board, 0, 1));
    world_close(&world);
}

static void parts_and_lengths_that_lie_outside_are_refused(void **state)
{
    struct world world;
    struct slot_span part;
    uint32_t front, loop;
    (void)state;

    world_open(&world, 1, 1, 1);
    assert_null(slot_text(&world.board, 0, (struct slot_span){8193, 0}).data);
    assert_null(slot_text(&world.board, 0, (struct slot_span){8000, 193}).data);
    assert_null(slot_text(&world.board, 0, (struct slot_span){1, UINT32_MAX}).data);
    assert_int_equal(slot_text(&world.board, 0, (struct slot_span){8000, 192}).size, 192);
    slot_request(&world.board, 0)->used = UINT32_MAX;
    assert_false(slot_append(&world.board, 0, span_of("x"), &part));
    assert_null(slot_fields(&world.board, 0, 1));
    slot_request(&world.board, 0)->used = 0;
    assert_null(slot_fields(&world.board, 0, UINT32_MAX));
    slot_request(&world.board, 0)->front = BOARD_FRONTS;
    assert_false(slot_front(&world.board, 0, &front, &loop));
    slot_request(&world.board, 0)->front = 0;
    slot_request(&world.board, 0)->loop = WORLD_LOOPS;
    assert_false(slot_front(&world.board, 0, &front, &loop));
    world_close(&world);
}

static void only_the_holder_moves_a_slot_and_only_forward(void **state)
{
    struct world world;
    struct slot_word word;
    uint32_t slot;
    (void)state;

    world_open(&world, 1, 1, 2);
    slot = world_send(&world, 0, 0);
    assert_false(slot_advance(&world.board, slot, 0, SLOT_CALLED));
    assert_int_equal(queue_take(&world.board, 0, &word), slot);
    assert_false(slot_advance(&world.board, slot, 1, SLOT_CALLED));
    assert_true(slot_advance(&world.board, slot, 0, SLOT_CALLED));
    assert_true(slot_advance(&world.board, slot, 0, SLOT_REPLYING));
    assert_false(slot_advance(&world.board, slot, 0, SLOT_CALLED));
    assert_false(slot_advance(&world.board, slot, 0, SLOT_FREE));
    assert_false(slot_advance(&world.board, slot, 0, SLOT_DONE));
    assert_false(slot_finish(&world.board, slot, 1));
    assert_true(slot_finish(&world.board, slot, 0));
    assert_false(slot_finish(&world.board, slot, 0));
    assert_int_equal(slot_look(&world.board, slot).state, SLOT_DONE);
    world_close(&world);
}

static void finishing_tells_the_loop_that_waits(void **state)
{
    struct world world;
    struct slot_word word;
    uint32_t slot;
    (void)state;

    world_open(&world, 4, 1, 2);
    slot = world_send(&world, 1, 1);
    assert_int_equal(queue_take(&world.board, 1, &word), slot);
    assert_true(slot_finish(&world.board, slot, 1));
    assert_int_equal(bell_take_notices(&world.board, 1, 1, 0), 2);
    assert_int_equal(bell_take_notices(&world.board, 0, 1, 0), 0);
    assert_true(slot_free(&world.board, slot));
    world_is_empty(&world);
    world_close(&world);
}

static void a_slot_whose_front_died_is_freed_by_its_worker(void **state)
{
    struct world world;
    struct slot_word word;
    struct page_writer writer;
    uint32_t slot;
    (void)state;

    world_open(&world, 4, 1, 1);
    slot = world_send(&world, 1, 0);
    assert_int_equal(queue_take(&world.board, 0, &word), slot);
    writer = (struct page_writer){.board = &world.board, .slot = slot, .turn = word.turn};
    (void)page_put(&writer, PAGE_END, 0, 0);
    page_publish(&writer);
    atomic_store(&world.board.fronts[1].life, BOARD_DEAD);
    assert_true(slot_finish(&world.board, slot, 0));
    assert_int_equal(atomic_load(&world.board.threads[0].pages[0]), 0);
    world_is_empty(&world);
    world_close(&world);
}

static void slots_that_others_need_are_not_freed(void **state)
{
    struct world world;
    struct slot_word word;
    uint32_t slot;
    (void)state;

    world_open(&world, 4, 1, 1);
    assert_false(slot_free(&world.board, 0));
    slot = world_send(&world, 0, 0);
    assert_false(slot_free(&world.board, slot));
    assert_int_equal(queue_take(&world.board, 0, &word), slot);
    assert_false(slot_free(&world.board, slot));
    atomic_store(&world.board.workers[0].life, BOARD_DEAD);
    assert_true(slot_free(&world.board, slot));
    assert_int_equal(slot_look(&world.board, slot).turn, word.turn);
    world_close(&world);
}

static void freeing_drops_the_pages_of_the_turn(void **state)
{
    struct world world;
    struct slot_word word;
    struct page_writer writer;
    uint32_t slot;
    (void)state;

    world_open(&world, 4, 1, 1);
    slot = world_send(&world, 0, 0);
    assert_int_equal(queue_take(&world.board, 0, &word), slot);
    writer = (struct page_writer){.board = &world.board, .slot = slot, .turn = word.turn};
    (void)page_put(&writer, PAGE_DATA, 0, 5);
    page_publish(&writer);
    assert_true(slot_finish(&world.board, slot, 0));
    assert_true(slot_free(&world.board, slot));
    assert_int_equal(atomic_load(&world.board.threads[0].pages[0]), 0);
    world_is_empty(&world);
    world_close(&world);
}

static void notes_belong_to_one_turn(void **state)
{
    struct world world;
    uint32_t turn;
    (void)state;

    world_open(&world, 1, 1, 1);
    assert_int_equal(slot_claim(&world.board, 0, &turn), 0);
    assert_int_equal(slot_get_note(&world.board, 0), SLOT_WANTED);
    assert_false(slot_set_note_of_turn(&world.board, 0, turn + 1, SLOT_LEFT));
    slot_set_note(&world.board, 0, SLOT_LATE);
    assert_int_equal(slot_get_note(&world.board, 0), SLOT_LATE);
    assert_false(slot_set_note_of_turn(&world.board, 0, turn, SLOT_LEFT));
    assert_true(slot_free(&world.board, 0));
    assert_int_equal(slot_claim(&world.board, 0, &turn), 0);
    assert_int_equal(slot_get_note(&world.board, 0), SLOT_WANTED);
    assert_true(slot_set_note_of_turn(&world.board, 0, turn, SLOT_LEFT));
    assert_int_equal(slot_get_note(&world.board, 0), SLOT_LEFT);
    atomic_store(&world.board.notes[0], UINT32_MAX);
    assert_int_equal(slot_get_note(&world.board, 0), SLOT_LEFT);
    world_close(&world);
}

static void a_note_rings_a_worker_that_waits_for_a_page(void **state)
{
    struct world world;
    struct slot_word word;
    uint32_t slot, bell;
    (void)state;

    world_open(&world, 1, 1, 1);
    slot = world_send(&world, 0, 0);
    assert_int_equal(queue_take(&world.board, 0, &word), slot);
    bell = bell_prepare(&world.board, 0, BOARD_SLEEP_PAGE);
    slot_set_note(&world.board, slot, SLOT_LEFT);
    assert_int_equal(bell_sleep(&world.board, 0, bell, 10000), 0);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_packs_and_unpacks_every_part),
        cmocka_unit_test(the_lowest_free_slot_is_claimed_and_none_is_an_answer),
        cmocka_unit_test(turns_count_on_through_zero),
        cmocka_unit_test(a_request_is_filled_until_the_slot_is_full),
        cmocka_unit_test(parts_and_lengths_that_lie_outside_are_refused),
        cmocka_unit_test(only_the_holder_moves_a_slot_and_only_forward),
        cmocka_unit_test(finishing_tells_the_loop_that_waits),
        cmocka_unit_test(a_slot_whose_front_died_is_freed_by_its_worker),
        cmocka_unit_test(slots_that_others_need_are_not_freed),
        cmocka_unit_test(freeing_drops_the_pages_of_the_turn),
        cmocka_unit_test(notes_belong_to_one_turn),
        cmocka_unit_test(a_note_rings_a_worker_that_waits_for_a_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

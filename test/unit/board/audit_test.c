/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/audit.c"

#include "world.h"

/* What audit showed, in order. */
struct seen {
    unsigned count;
    uint32_t slots[8];
    enum slot_state states[8];
};

static void see(void *context, uint32_t slot, struct slot_word word)
{
    struct seen *seen = context;

    seen->slots[seen->count] = slot;
    seen->states[seen->count++] = word.state;
}

static uint32_t take(struct world *world, uint32_t thread, enum slot_state state)
{
    struct slot_word word;
    int64_t slot = queue_take(&world->board, thread, &word);

    assert_true(slot >= 0);
    if (state == SLOT_CALLED || state == SLOT_REPLYING)
        assert_true(slot_advance(&world->board, (uint32_t)slot, thread, state));
    if (state == SLOT_DONE)
        assert_true(slot_finish(&world->board, (uint32_t)slot, thread));
    return (uint32_t)slot;
}

static void a_front_sees_only_what_the_dead_worker_held_of_its_own(void **state)
{
    struct world world;
    struct seen seen = {0};
    (void)state;

    world_open(&world, 16, 2, 4);
    for (uint32_t i = 0; i < 4; i++)
        (void)world_send(&world, 0, 1);
    (void)world_send(&world, 1, 1);
    (void)world_send(&world, 0, 0);
    (void)world_send(&world, 0, 1);
    (void)take(&world, 4, SLOT_TAKEN);
    (void)take(&world, 5, SLOT_CALLED);
    (void)take(&world, 6, SLOT_REPLYING);
    (void)take(&world, 7, SLOT_DONE);
    (void)take(&world, 7, SLOT_TAKEN);
    (void)take(&world, 7, SLOT_TAKEN);
    (void)take(&world, 0, SLOT_TAKEN);
    audit_worker(&world.board, 1, 0, 1, see, &seen);
    assert_int_equal(seen.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(seen.slots[i], i);
    assert_int_equal(seen.states[0], SLOT_TAKEN);
    assert_int_equal(seen.states[1], SLOT_CALLED);
    assert_int_equal(seen.states[2], SLOT_REPLYING);
    assert_int_equal(seen.states[3], SLOT_DONE);
    world_close(&world);
}

static void an_entry_is_free_when_every_living_front_has_audited(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 1, 1);
    atomic_store(&world.board.workers[0].requests, 7);
    assert_false(audit_worker_free(&world.board, 0));
    atomic_store(&world.board.workers[0].life, BOARD_DEAD);
    audit_worker_done(&world.board, 0, 1);
    assert_false(audit_worker_free(&world.board, 0));
    audit_worker_done(&world.board, 0, 0);
    assert_true(audit_worker_free(&world.board, 0));
    assert_true(audit_worker_free(&world.board, 0));
    assert_int_equal(atomic_load(&world.board.workers[0].life), BOARD_FREE);
    assert_int_equal(atomic_load(&world.board.workers[0].requests), 0);
    world_is_empty(&world);
    world_close(&world);
}

static void a_dead_worker_leaves_no_sleeper_no_wake_and_no_page(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 2, 2);
    (void)bell_prepare(&world.board, 2, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 3, BOARD_SLEEP_PAGE);
    assert_true(bell_wake_worker(&world.board, 1000000, false));
    atomic_store(&world.board.threads[3].pages[1], 12345);
    atomic_store(&world.board.workers[1].life, BOARD_DEAD);
    audit_worker(&world.board, 1, 0, 0, see, &(struct seen){0});
    assert_int_equal(atomic_load(&world.board.header->wake), 0);
    audit_worker_done(&world.board, 1, 0);
    audit_worker_done(&world.board, 1, 1);
    assert_true(audit_worker_free(&world.board, 1));
    assert_int_equal(atomic_load(&world.board.header->sleepers), 0);
    world_is_empty(&world);
    world_close(&world);
}

static void slots_of_two_dead_parties_are_freed(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 1, 1);
    (void)world_send(&world, 1, 0);
    (void)take(&world, 0, SLOT_CALLED);
    atomic_store(&world.board.workers[0].life, BOARD_DEAD);
    atomic_store(&world.board.fronts[1].life, BOARD_DEAD);
    audit_worker_done(&world.board, 0, 0);
    assert_true(audit_worker_free(&world.board, 0));
    assert_int_equal(audit_front(&world.board, 1), 0);
    assert_int_equal(atomic_load(&world.board.fronts[1].life), BOARD_FREE);
    world_is_empty(&world);
    world_close(&world);
}

static void a_dead_front_takes_its_requests_with_it(void **state)
{
    struct world world;
    struct page_writer writer;
    struct slot_word word;
    uint32_t turn, held;
    (void)state;

    world_open(&world, 8, 1, 2);
    held = world_send(&world, 1, 0);
    assert_int_equal(queue_take(&world.board, 1, &word), held);
    (void)world_send(&world, 1, 1);
    (void)take(&world, 0, SLOT_DONE);
    (void)world_send(&world, 1, 0);
    (void)world_send(&world, 0, 0);
    (void)slot_claim(&world.board, 1, &turn);
    writer =
        (struct page_writer){.board = &world.board, .thread = 1, .slot = held, .turn = word.turn};
    (void)page_put(&writer, PAGE_DATA, 0, 8);
    page_publish(&writer);
    atomic_store(&world.board.fronts[1].life, BOARD_DEAD);

    assert_int_equal(audit_front(&world.board, 1), 1);
    assert_int_equal(slot_get_note(&world.board, held), SLOT_LEFT);
    assert_int_equal(atomic_load(&world.board.threads[1].pages[0]), 0);
    assert_int_equal(queue_length(&world.board), 1);
    world_is_sound(&world);
    assert_true(slot_finish(&world.board, held, 1));
    assert_int_equal(audit_front(&world.board, 1), 0);
    assert_int_equal(take(&world, 0, SLOT_DONE), 3);
    assert_true(slot_free(&world.board, 3));
    world_is_empty(&world);
    world_close(&world);
}

static void a_dead_fronts_worker_is_woken_from_its_wait_for_a_page(void **state)
{
    struct world world;
    uint32_t bell;
    (void)state;

    world_open(&world, 8, 1, 1);
    (void)world_send(&world, 0, 0);
    (void)take(&world, 0, SLOT_REPLYING);
    bell = bell_prepare(&world.board, 0, BOARD_SLEEP_PAGE);
    atomic_store(&world.board.fronts[0].life, BOARD_DEAD);
    assert_int_equal(audit_front(&world.board, 0), 1);
    assert_int_equal(bell_sleep(&world.board, 0, bell, 10000), 0);
    world_close(&world);
}

static void a_dead_front_no_longer_keeps_a_workers_entry(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 8, 1, 1);
    atomic_store(&world.board.workers[0].life, BOARD_DEAD);
    audit_worker_done(&world.board, 0, 0);
    atomic_store(&world.board.fronts[1].life, BOARD_DEAD);
    assert_int_equal(audit_front(&world.board, 1), 0);
    atomic_store(&world.board.fronts[1].life, BOARD_ALIVE);
    assert_true(audit_worker_free(&world.board, 0));
    world_close(&world);
}

static void another_fronts_request_above_the_mark_is_found_again(void **state)
{
    struct world world;
    uint32_t bell;
    (void)state;

    world_open(&world, 64, 1, 1);
    for (int i = 0; i < 30; i++)
        (void)world_send(&world, 0, 0);
    (void)world_send(&world, 1, 0);
    atomic_store(&world.board.header->high, 8);
    bell = bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    atomic_store(&world.board.fronts[0].life, BOARD_DEAD);
    assert_int_equal(audit_front(&world.board, 0), 0);
    assert_int_equal(bell_sleep(&world.board, 0, bell, 10000), 0);
    assert_int_equal(take(&world, 0, SLOT_TAKEN), 30);
    world_close(&world);
}

static void a_living_front_is_left_alone(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 8, 1, 1);
    (void)world_send(&world, 0, 0);
    assert_int_equal(audit_front(&world.board, 0), 0);
    assert_int_equal(queue_length(&world.board), 1);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_front_sees_only_what_the_dead_worker_held_of_its_own),
        cmocka_unit_test(an_entry_is_free_when_every_living_front_has_audited),
        cmocka_unit_test(a_dead_worker_leaves_no_sleeper_no_wake_and_no_page),
        cmocka_unit_test(slots_of_two_dead_parties_are_freed),
        cmocka_unit_test(a_dead_front_takes_its_requests_with_it),
        cmocka_unit_test(a_dead_fronts_worker_is_woken_from_its_wait_for_a_page),
        cmocka_unit_test(a_dead_front_no_longer_keeps_a_workers_entry),
        cmocka_unit_test(another_fronts_request_above_the_mark_is_found_again),
        cmocka_unit_test(a_living_front_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

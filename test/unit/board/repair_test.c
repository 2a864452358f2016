/* SPDX-License-Identifier: MIT */
#include "board/repair.c"

#include "world.h"

#include <stdlib.h>

#define RUNTIME "/run/test/shop"

/* Nobody works there any more. */
static void leave(struct world *world)
{
    for (uint32_t i = 0; i < world->board.shape.workers; i++) {
        atomic_store(&world->board.workers[i].life, BOARD_DEAD);
        for (uint32_t front = 0; front < WORLD_FRONTS; front++)
            audit_worker_done(&world->board, i, front);
        assert_true(audit_worker_free(&world->board, i));
    }
}

static void a_board_in_use_is_not_damaged(void **state)
{
    struct world world;
    struct slot_word word;
    uint32_t turn;
    (void)state;

    world_open(&world, 8, 2, 2);
    assert_null(repair_find_damage(&world.board, RUNTIME));
    assert_int_equal(slot_claim(&world.board, 1, &turn), 0);
    (void)world_send(&world, 0, 1);
    (void)world_send(&world, 1, 0);
    assert_int_equal(queue_take(&world.board, 3, &word), 1);
    assert_null(repair_find_damage(&world.board, RUNTIME));
    assert_true(slot_advance(&world.board, 1, 3, SLOT_CALLED));
    assert_true(slot_finish(&world.board, 1, 3));
    assert_null(repair_find_damage(&world.board, RUNTIME));
    atomic_store(&world.board.workers[1].life, BOARD_DEAD);
    atomic_store(&world.board.fronts[1].life, BOARD_DEAD);
    assert_null(repair_find_damage(&world.board, RUNTIME));
    world_close(&world);
}

static void every_part_of_the_header_counts(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 8, 2, 2);
    for (size_t at = 0; at < offsetof(struct board_header, runtime) + sizeof RUNTIME; at++) {
        char *byte = (char *)world.board.header + at;
        /* What lies between two fields is nothing. */
        bool is_gap = at >= offsetof(struct board_header, shape) + sizeof(struct board_shape) &&
                      at < offsetof(struct board_header, bytes);

        *byte ^= 0x10;
        if (!is_gap)
            assert_string_equal(repair_find_damage(&world.board, RUNTIME), "its header");
        *byte ^= 0x10;
    }
    assert_null(repair_find_damage(&world.board, RUNTIME));
    atomic_store(&world.board.header->high, 9);
    assert_non_null(repair_find_damage(&world.board, RUNTIME));
    world_close(&world);
}

static void a_slot_that_belongs_to_nobody_is_damage(void **state)
{
    static const struct slot_word words[] = {
        {SLOT_CANCELLED + 1, 0, 1, 1}, {15, 0x3fff, 1, 1},     {SLOT_FILLING, 5, 1, 0},
        {SLOT_QUEUED, 0x3fff, 1, 1},   {SLOT_TAKEN, 4, 1, 1},  {SLOT_DONE, 2, 1, 1},
        {SLOT_CANCELLED, 8, 1, 1},     {SLOT_CALLED, 3, 0, 0},
    };
    struct world world;
    (void)state;

    world_open(&world, 8, 2, 2);
    atomic_store(&world.board.workers[1].life, BOARD_FREE);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        atomic_store(&world.board.words[5], slot_pack(words[i]));
        assert_string_equal(repair_find_damage(&world.board, RUNTIME), "the words of its slots");
    }
    world_close(&world);
}

static void fill_with(struct world *world, int seed)
{
    char *memory = (char *)world->board.header;

    srand((unsigned)seed);
    for (size_t i = 0; i < (size_t)((char *)world->board.pages - memory); i++)
        memory[i] = (char)(seed < 2 ? -seed : rand());
}

static void a_repaired_board_serves_whatever_was_there(void **state)
{
    (void)state;
    for (int seed = 0; seed < 50; seed++) {
        struct world world;
        struct slot_word word;
        uint32_t sent;

        world_open(&world, 8, 2, 2);
        fill_with(&world, seed);
        for (uint32_t front = 0; front < BOARD_FRONTS; front++)
            atomic_store(&world.board.fronts[front].life,
                         front < WORLD_FRONTS ? BOARD_ALIVE : BOARD_FREE);
        leave(&world);
        repair_board(&world.board, RUNTIME);
        assert_null(repair_find_damage(&world.board, RUNTIME));
        atomic_store(&world.board.workers[0].life, BOARD_ALIVE);
        /* What seems to be a front's is left to it: here it has none of these. */
        for (uint32_t slot = 0; slot < world.board.shape.slots; slot++)
            atomic_store(&world.board.words[slot], 0);
        sent = world_send(&world, 0, 0);
        assert_int_equal(queue_take(&world.board, 1, &word), sent);
        world_close(&world);
    }
}

static void what_fronts_hold_stays_theirs(void **state)
{
    struct world world;
    uint32_t turn, queued;
    (void)state;

    world_open(&world, 8, 2, 2);
    assert_int_equal(slot_claim(&world.board, 1, &turn), 0);
    queued = world_send(&world, 0, 0);
    world.board.header->magic = 0;
    leave(&world);
    repair_board(&world.board, RUNTIME);
    assert_int_equal(slot_look(&world.board, 0).state, SLOT_FILLING);
    assert_int_equal(slot_look(&world.board, queued).state, SLOT_QUEUED);
    world_is_sound(&world);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_in_use_is_not_damaged),
        cmocka_unit_test(every_part_of_the_header_counts),
        cmocka_unit_test(a_slot_that_belongs_to_nobody_is_damage),
        cmocka_unit_test(a_repaired_board_serves_whatever_was_there),
        cmocka_unit_test(what_fronts_hold_stays_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

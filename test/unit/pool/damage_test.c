/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/damage.c"

#include "pool_world.h"

static struct board_worker *entry_of(const struct world *world, uint32_t index)
{
    return &world->pool->instance.board.workers[index];
}

static void a_sound_board_is_left_alone_whatever_its_workers_do(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    damage_look(world.pool);
    world_start(&world);
    pool_want(world.pool);
    world_queue(&world);
    pool_want(world.pool);
    crew_retire(world.pool, 0, EXIT_NORMAL, 1000);
    pool_want(world.pool);
    crew_kill(world.pool, 0);
    pool_want(world.pool);
    world_end(&world, 500, WORLD_KILLED);
    world_fork(&world);
    pool_want(world.pool);
    world_serve(&world);
    pool_want(world.pool);
    assert_int_equal(played.damages, 0);
    assert_false(world.pool->is_damaged);
    world_close(&world);
}

static void a_damaged_one_loses_its_workers_and_is_set_right_behind_the_last(void **state)
{
    struct world world;
    struct board *board;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    board = &world.pool->instance.board;
    board->header->magic = 7;
    atomic_store(&entry_of(&world, 1)->pid, 77);
    pool_want(world.pool);
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(played.damages, 1);
    assert_int_equal(played.kills, 2);
    world_end(&world, 500, WORLD_KILLED);
    assert_null(world_find(&world, WORKER_ASKED));
    assert_int_equal(board->header->magic, 7);
    world_end(&world, 501, WORLD_KILLED);
    assert_int_equal(board->header->magic, BOARD_MAGIC);
    assert_false(world.pool->is_damaged);
    assert_int_equal(world.pool->exits[EXIT_CRASH], 2);
    for (int i = 0; i < 3; i++)
        world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 2);
    world_close(&world);
}

static void an_entry_that_is_not_as_master_wrote_it_is_damage(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    assert_true(entry_is_right(world.pool, 0));
    atomic_store(&entry_of(&world, 0)->life, BOARD_DEAD);
    assert_false(entry_is_right(world.pool, 0));
    atomic_store(&entry_of(&world, 0)->life, 99);
    assert_false(entry_is_right(world.pool, 0));
    atomic_store(&entry_of(&world, 0)->life, BOARD_RETIRING);
    assert_true(entry_is_right(world.pool, 0));
    atomic_fetch_add(&entry_of(&world, 0)->generation, 1);
    assert_false(entry_is_right(world.pool, 0));
    assert_true(entry_is_right(world.pool, 1));
    world_close(&world);
}

static void garbage_that_a_front_met_makes_us_look_at_the_rest(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    atomic_store(&world.pool->instance.board.words[3], UINT64_MAX);
    pool_worker_broken(world.pool, 0);
    assert_true(world.pool->is_damaged);
    assert_int_equal(played.kills, 2);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_board_is_left_alone_whatever_its_workers_do),
        cmocka_unit_test(a_damaged_one_loses_its_workers_and_is_set_right_behind_the_last),
        cmocka_unit_test(an_entry_that_is_not_as_master_wrote_it_is_damage),
        cmocka_unit_test(garbage_that_a_front_met_makes_us_look_at_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

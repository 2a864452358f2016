/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/staff.c"

#include "pool_world.h"

static void a_queue_that_stands_gets_more_workers_one_after_the_other(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 3);
    world_start(&world);
    world_busy(&world, 0, 2);
    world_queue(&world);
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(played.asks, 2);
    /* Nothing more while that one is on its way. */
    world_wait(&world, 500);
    assert_int_equal(played.asks, 2);
    world_serve(&world);
    world_busy(&world, 1, 2);
    world_wait(&world, 500);
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 3);
    world_busy(&world, 2, 2);
    world_wait(&world, 500);
    assert_int_equal(pool_wanted(world.pool), 3);
    world_close(&world);
}

/* Three of 1..3 workers, MIN 1, that may be idle for a minute. */
static void open_three(struct world *world)
{
    world_open(world, 3, 3);
    world_start(world);
    world_serve(world);
    world->pool->min = 1;
    world->settings.idle_ms = 60000;
}

static void idle_workers_above_min_go_when_their_time_is_over_longest_idle_first(void **state)
{
    struct world world;

    (void)state;
    open_three(&world);
    world_wait(&world, 50000);
    assert_null(world_find(&world, WORKER_RETIRING));
    world_done(&world, 0, 100);
    world_done(&world, 1, 100);
    world_wait(&world, 10000);
    assert_int_equal(world_find(&world, WORKER_RETIRING)->pid, 502);
    world_end(&world, 502, WORLD_EXIT_0);
    assert_int_equal(world.pool->exits[EXIT_IDLE], 1);
    world_wait(&world, 50000);
    world_end(&world, world_find(&world, WORKER_RETIRING)->pid, WORLD_EXIT_0);
    world_wait(&world, 100000);
    assert_int_equal(pool_serving(world.pool), 1);
    assert_int_equal(world.pool->exits[EXIT_IDLE], 2);
    world_close(&world);
}

static void who_is_busy_or_holds_streams_is_not_idle(void **state)
{
    struct world world;

    (void)state;
    open_three(&world);
    world_busy(&world, 0, 1);
    atomic_store(&world.pool->instance.board.workers[1].streams, 1);
    world_done(&world, 2, 0);
    world_wait(&world, 59000);
    assert_null(world_find(&world, WORKER_RETIRING));
    world_wait(&world, 1000);
    assert_int_equal(world_find(&world, WORKER_RETIRING)->pid, 502);
    world_wait(&world, 100000);
    assert_int_equal(pool_serving(world.pool), 2);
    world_close(&world);
}

static void an_idle_pool_looks_at_nothing_before_a_deadline(void **state)
{
    struct world world;

    (void)state;
    open_three(&world);
    played.now_ms += 1000;
    assert_int_equal(staff_due_ms(world.pool, played.now_ms), played.now_ms + 59000);
    world.pool->min = 3;
    assert_true(staff_due_ms(world.pool, played.now_ms) == UINT64_MAX);
    world_close(&world);
}

static void the_last_worker_of_a_pool_on_demand_takes_the_mold_with_it(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 0, 2);
    world.settings.idle_ms = 60000;
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    assert_int_equal(world.pool->state, POOL_DOWN);
    assert_int_equal(played.execs, 0);
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(played.execs, 1);
    world_say_loaded(&world, 1);
    world_serve(&world);
    assert_int_equal(world.pool->state, POOL_UP);
    world_wait(&world, 60001);
    assert_int_equal(played.quits, 0);
    world_end(&world, 500, WORLD_EXIT_0);
    assert_int_equal(played.quits, 1);
    world_end(&world, 101, WORLD_EXIT_0);
    assert_int_equal(world.pool->state, POOL_DOWN);
    /* The next request starts it again. */
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(played.execs, 2);
    world_close(&world);
}

static void a_pool_on_demand_that_cannot_be_started_is_left_alone_when_nobody_waits(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 0, 2);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    pool_want(world.pool);
    world_run(&world);
    world_end(&world, 101, WORLD_EXIT_1);
    world_wait(&world, 60000);
    assert_int_equal(played.execs, 1);
    assert_int_equal(world.pool->state, POOL_DOWN);
    world_close(&world);
}

static void a_worker_that_has_served_its_time_stays_until_its_successor_serves(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    world_say(&world, "spent\nindex=0\npid=500\n");
    world_say(&world, "spent\nindex=1\npid=501\n");
    assert_null(world_find(&world, WORKER_RETIRING));
    assert_int_equal(played.asks, 3);
    world_serve(&world);
    /* One at a time. */
    assert_int_equal(pool_serving(world.pool), 2);
    assert_int_equal(world_find(&world, WORKER_RETIRING)->pid, 500);
    world_serve(&world);
    world_end(&world, 500, WORLD_EXIT_0);
    world_end(&world, 501, WORLD_EXIT_0);
    assert_int_equal(world.pool->exits[EXIT_MAX_REQUESTS], 2);
    assert_int_equal(pool_serving(world.pool), 2);
    assert_int_equal(played.asks, 4);
    world_close(&world);
}

static void a_worker_over_its_memory_is_replaced(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world.settings.memory = 100 * MB;
    world_start(&world);
    world_say_measured(&world, 0, 100 * MB);
    assert_int_equal(played.asks, 1);
    world_say_measured(&world, 0, 101 * MB);
    assert_int_equal(played.asks, 2);
    world_serve(&world);
    world_end(&world, 500, WORLD_EXIT_0);
    assert_int_equal(world.pool->exits[EXIT_MEMORY], 1);
    world_close(&world);
}

static void nobody_counts_for_more_memory_than_the_system_knows_of(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    played.resident = 50 * MB;
    world_say_measured(&world, 0, UINT64_MAX);
    assert_true(world.pool->workers[0].private_bytes == 50 * MB);
    /* Another process than the one that serves there says nothing. */
    world_say(&world, "measured\nindex=0\npid=77\nprivate_bytes=5\n");
    assert_true(world.pool->workers[0].private_bytes == 50 * MB);
    world_close(&world);
}

static void where_two_do_not_fit_the_old_one_goes_first(void **state)
{
    struct world world;
    struct budget budget;

    (void)state;
    world_open(&world, 1, 1);
    world_open_budget(&budget, 150 * MB);
    budget_join(&budget, world.pool);
    world_start(&world);
    world_say_measured(&world, 0, 100 * MB);
    world_say(&world, "spent\nindex=0\npid=500\n");
    assert_int_equal(played.asks, 1);
    assert_int_equal(world_find(&world, WORKER_RETIRING)->pid, 500);
    world_end(&world, 500, WORLD_EXIT_0);
    assert_int_equal(played.asks, 2);
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 1);
    world_close(&world);
}

static void the_time_of_a_start_is_learned(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 2);
    world_start(&world);
    assert_int_equal(world.pool->start_ms, 1);
    pool_adjust(world.pool, 1);
    world_run(&world);
    played.now_ms += 401;
    world_serve(&world);
    assert_int_equal(world.pool->start_ms, 101);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_that_stands_gets_more_workers_one_after_the_other),
        cmocka_unit_test(idle_workers_above_min_go_when_their_time_is_over_longest_idle_first),
        cmocka_unit_test(who_is_busy_or_holds_streams_is_not_idle),
        cmocka_unit_test(an_idle_pool_looks_at_nothing_before_a_deadline),
        cmocka_unit_test(the_last_worker_of_a_pool_on_demand_takes_the_mold_with_it),
        cmocka_unit_test(a_pool_on_demand_that_cannot_be_started_is_left_alone_when_nobody_waits),
        cmocka_unit_test(a_worker_that_has_served_its_time_stays_until_its_successor_serves),
        cmocka_unit_test(a_worker_over_its_memory_is_replaced),
        cmocka_unit_test(nobody_counts_for_more_memory_than_the_system_knows_of),
        cmocka_unit_test(where_two_do_not_fit_the_old_one_goes_first),
        cmocka_unit_test(the_time_of_a_start_is_learned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

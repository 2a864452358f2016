/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/reclaim.c"

#include "pool_world.h"

/* A pool of 1..3 workers with all three, and one on demand without any; `all` for everybody. */
struct pair {
    struct budget budget;
    struct world a, b;
};

static void open_pair(struct pair *pair, uint64_t all)
{
    world_open(&pair->b, 0, 1);
    world_open(&pair->a, 3, 3);
    world_start(&pair->a);
    world_serve(&pair->a);
    pair->a.pool->min = 1;
    world_open_budget(&pair->budget, all);
    budget_join(&pair->budget, pair->a.pool);
    budget_join(&pair->budget, pair->b.pool);
    played.now_ms += 5000;
    for (uint32_t i = 0; i < 3; i++)
        world_done(&pair->a, i, 1000 * (i + 1));
}

static void close_pair(struct pair *pair)
{
    world_close(&pair->a);
    world_close(&pair->b);
}

static void say_measured(struct pair *pair, uint64_t bytes)
{
    for (uint32_t i = 0; i < 3; i++)
        world_say_measured(&pair->a, i, bytes);
}

static unsigned retiring(const struct world *world)
{
    return crew_count(world->pool).going;
}

static void the_longest_idle_worker_makes_room_and_no_more_than_needed(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    say_measured(&pair, 10 * MB);
    reclaim_for(pair.b.pool, 10 * MB, true, played.now_ms);
    assert_int_equal(retiring(&pair.a), 1);
    assert_int_equal(world_find(&pair.a, WORKER_RETIRING)->pid, 502);
    /* What is on its way is enough. */
    reclaim_for(pair.b.pool, 10 * MB, true, played.now_ms);
    assert_int_equal(retiring(&pair.a), 1);
    /* Never below MIN. */
    reclaim_for(pair.b.pool, 500 * MB, true, played.now_ms);
    assert_int_equal(retiring(&pair.a), 2);
    assert_false(reclaim_is_possible(pair.a.pool));
    close_pair(&pair);
}

static void busy_workers_finish_for_a_pool_that_has_none_and_has_waited(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    say_measured(&pair, 10 * MB);
    for (uint32_t i = 0; i < 3; i++)
        world_busy(&pair.a, i, 1);
    pair.b.pool->waits_ms = played.now_ms;
    reclaim_for(pair.b.pool, 10 * MB, true, played.now_ms);
    assert_int_equal(retiring(&pair.a), 0);
    played.now_ms += STARVE_MS;
    reclaim_for(pair.b.pool, 10 * MB, false, played.now_ms);
    assert_int_equal(retiring(&pair.a), 0);
    reclaim_for(pair.b.pool, 10 * MB, true, played.now_ms);
    assert_int_equal(retiring(&pair.a), 1);
    assert_int_equal(world_find(&pair.a, WORKER_RETIRING)->why, EXIT_MEMORY);
    close_pair(&pair);
}

static void
a_worker_that_was_idle_for_a_moment_only_stays_when_another_pool_just_wants_more(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    say_measured(&pair, 10 * MB);
    for (uint32_t i = 0; i < 3; i++)
        world_done(&pair.a, i, 10);
    reclaim_for(pair.b.pool, 10 * MB, false, played.now_ms);
    assert_int_equal(retiring(&pair.a), 0);
    reclaim_for(pair.b.pool, 10 * MB, true, played.now_ms);
    assert_int_equal(retiring(&pair.a), 1);
    close_pair(&pair);
}

static void a_pool_over_its_memory_total_gives_up_workers_but_the_last(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    pair.a.settings.memory_total = 100 * MB;
    pair.a.pool->min = 3;
    say_measured(&pair, 33 * MB);
    assert_int_equal(retiring(&pair.a), 0);
    world_say_measured(&pair.a, 1, 90 * MB);
    /* None is above MIN: the largest goes, and is not put back before there is room. */
    assert_int_equal(retiring(&pair.a), 1);
    assert_int_equal(world_find(&pair.a, WORKER_RETIRING)->pid, 501);
    world_end(&pair.a, 501, WORLD_EXIT_0);
    assert_int_equal(pair.a.pool->exits[EXIT_MEMORY], 1);
    world_say_measured(&pair.a, 0, 200 * MB);
    assert_int_equal(retiring(&pair.a), 1);
    world_say_measured(&pair.a, 2, 200 * MB);
    assert_int_equal(pool_serving(pair.a.pool), 1);
    close_pair(&pair);
}

static void all_pools_over_memory_total_give_up_idle_workers_first(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 100 * MB);
    world_busy(&pair.a, 1, 1);
    world_busy(&pair.a, 2, 1);
    world_say_measured(&pair.a, 0, 30 * MB);
    world_say_measured(&pair.a, 1, 90 * MB);
    assert_int_equal(world_find(&pair.a, WORKER_RETIRING)->pid, 500);
    assert_int_equal(world_find(&pair.a, WORKER_RETIRING)->why, EXIT_IDLE);
    close_pair(&pair);
}

static void a_short_machine_gets_back_idle_workers_only(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    reclaim_idle(pair.a.pool, "a test");
    assert_int_equal(retiring(&pair.a), 1);
    world_busy(&pair.a, 0, 1);
    world_busy(&pair.a, 1, 1);
    reclaim_idle(pair.a.pool, "a test");
    assert_int_equal(retiring(&pair.a), 1);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_idle_worker_makes_room_and_no_more_than_needed),
        cmocka_unit_test(busy_workers_finish_for_a_pool_that_has_none_and_has_waited),
        cmocka_unit_test(
            a_worker_that_was_idle_for_a_moment_only_stays_when_another_pool_just_wants_more),
        cmocka_unit_test(a_pool_over_its_memory_total_gives_up_workers_but_the_last),
        cmocka_unit_test(all_pools_over_memory_total_give_up_idle_workers_first),
        cmocka_unit_test(a_short_machine_gets_back_idle_workers_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

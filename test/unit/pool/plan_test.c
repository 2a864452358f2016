/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/plan.c"

#include "pool_world.h"

static void a_pool_loads_its_mold_and_then_starts_the_workers_it_wants(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 3, 3);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    assert_int_equal(played.execs, 1);
    assert_int_equal(played.asks, 0);
    assert_int_equal(world.pool->state, POOL_STARTING);
    world_say_loaded(&world, 1);
    /* Not more at once than there are processors. */
    assert_int_equal(played.asks, 2);
    world_serve(&world);
    assert_int_equal(played.started, 1);
    assert_string_equal(played.start_failure, "");
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 3);
    assert_int_equal(played.asks, 3);
    assert_int_equal(world.pool->state, POOL_UP);
    world_close(&world);
}

static void a_first_start_that_fails_is_told_once_in_the_words_of_the_application(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_say(&world, "failed\ngeneration=1\nclass=RuntimeError\nmessage=no database\n"
                      "place=config.ru:3\n");
    assert_int_equal(played.started, 0);
    world_end(&world, 101, WORLD_EXIT_1);
    assert_int_equal(played.started, 1);
    assert_string_equal(played.start_failure, "RuntimeError: no database (config.ru:3)");
    assert_int_equal(world.pool->state, POOL_CRASHING);
    world_close(&world);
}

static void a_mold_that_ends_without_a_word_fails_the_start_too(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_end(&world, 101, WORLD_EXIT_0);
    assert_string_equal(played.start_failure,
                        "the application's process exited with status 0 while it loaded");
    world_close(&world);
}

static void tries_that_fail_have_growing_pauses_between_them(void **state)
{
    struct world world;
    pid_t mold = 101;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    world_end(&world, mold, WORLD_CRASHED);
    assert_int_equal(played.execs, 2);
    for (uint64_t pause_ms = 1000; pause_ms <= 8000; pause_ms *= 2) {
        unsigned before = played.execs;
        world_end(&world, ++mold, WORLD_EXIT_1);
        world_wait(&world, pause_ms - 1);
        assert_int_equal(played.execs, before);
        world_wait(&world, pause_ms / 8 + 1);
        assert_int_equal(played.execs, before + 1);
    }
    /* The worker served all the time. */
    assert_int_equal(world.pool->state, POOL_DEGRADED);
    world_say_loaded(&world, 1);
    assert_int_equal(world.pool->state, POOL_UP);
    world_close(&world);
}

static void a_mold_that_does_not_load_within_its_time_is_killed_and_says_so(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_wait(&world, 89000);
    assert_int_equal(played.kills, 0);
    world_wait(&world, 1000);
    assert_int_equal(played.killed, 101);
    world_end(&world, 101, WORLD_KILLED);
    assert_non_null(strstr(played.start_failure, "start_timeout"));
    world_close(&world);
}

static void a_worker_that_ends_is_replaced_at_once_from_the_same_mold(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    assert_int_equal(pool_serving(world.pool), 1);
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 2);
    assert_int_equal(played.execs, 1);
    assert_int_equal(world.pool->exits[EXIT_KILLED], 1);
    world_close(&world);
}

static void a_restart_tries_a_worker_of_the_new_release_before_an_old_one_goes(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    assert_int_equal(pool_restart(world.pool), 1);
    world_run(&world);
    assert_int_equal(world.pool->state, POOL_RESTARTING);
    world_say_loaded(&world, 2);
    world_fork(&world);
    assert_null(world_find(&world, WORKER_RETIRING));
    world_serve(&world);
    /* The new one is there: its mold is the current, and one old worker leaves. */
    assert_int_equal(world.pool->current->generation, 2);
    assert_int_equal(pool_serving(world.pool), 2);
    assert_non_null(world_find(&world, WORKER_RETIRING));
    assert_int_equal(played.restarted, 0);
    world_end(&world, 101, WORLD_EXIT_0);
    world_end(&world, 500, WORLD_EXIT_0);
    world_serve(&world);
    world_end(&world, 501, WORLD_EXIT_0);
    world_serve(&world);
    assert_int_equal(played.restarted, 1);
    assert_int_equal(played.ticket, 1);
    assert_string_equal(played.restart_failure, "");
    assert_int_equal(world.pool->state, POOL_UP);
    assert_null(pool_find_mold(world.pool, 1));
    world_close(&world);
}

static void a_release_that_does_not_load_leaves_the_former_one_serving(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    (void)pool_restart(world.pool);
    world_run(&world);
    world_say(&world, "failed\ngeneration=2\nclass=SyntaxError\nmessage=oops\n");
    world_end(&world, 102, WORLD_EXIT_1);
    assert_int_equal(played.restarted, 1);
    assert_string_equal(played.restart_failure, "the former release goes on: SyntaxError: oops");
    assert_int_equal(world.pool->current->generation, 1);
    assert_int_equal(world.pool->state, POOL_UP);
    assert_int_equal(pool_serving(world.pool), 1);
    world_close(&world);
}

static void a_first_worker_that_dies_young_fails_the_restart(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    (void)pool_restart(world.pool);
    world_run(&world);
    world_say_loaded(&world, 2);
    world_fork(&world);
    world_end(&world, 501, WORLD_CRASHED);
    assert_int_equal(played.restarted, 1);
    assert_non_null(strstr(played.restart_failure, "signal 11"));
    assert_int_equal(world.pool->current->generation, 1);
    world_close(&world);
}

static void a_restart_whose_later_workers_fail_ends_and_the_new_release_stays(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    (void)pool_restart(world.pool);
    world_run(&world);
    world_say_loaded(&world, 2);
    world_serve(&world);
    world_end(&world, 500, WORLD_EXIT_0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(played.restarted, 0);
        world_fork(&world);
        world_end(&world, world.next_worker - 1, WORLD_CRASHED);
        world_wait(&world, 30000);
    }
    assert_int_equal(played.restarted, 1);
    assert_non_null(strstr(played.restart_failure, "generation 2 serves, but not all"));
    assert_non_null(strstr(played.restart_failure, "signal 11"));
    assert_int_equal(world.pool->current->generation, 2);
    assert_int_equal(pool_serving(world.pool), 2);
    /* It is tried on, and heals. */
    world_serve(&world);
    assert_non_null(world_find(&world, WORKER_RETIRING));
    assert_string_equal(world.pool->error, "");
    world_close(&world);
}

static void restarts_asked_for_during_one_are_joined_into_the_next(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    assert_int_equal(pool_restart(world.pool), 1);
    assert_int_equal(pool_restart(world.pool), 1);
    world_run(&world);
    assert_int_equal(pool_restart(world.pool), 2);
    assert_int_equal(pool_restart(world.pool), 2);
    world_say_loaded(&world, 2);
    world_serve(&world);
    world_end(&world, 500, WORLD_EXIT_0);
    assert_int_equal(played.ticket, 1);
    /* The second one has begun by itself. */
    assert_non_null(world.pool->next);
    assert_int_equal(world.pool->next->generation, 3);
    world_close(&world);
}

static void a_signal_to_the_whole_group_during_a_stop_is_no_trouble(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    pool_drain(world.pool);
    world_end(&world, 101, WORLD_EXIT_0);
    world_end(&world, 500, WORLD_EXIT_0);
    world_end(&world, 501, WORLD_EXIT_0);
    world_wait(&world, 60000);
    assert_int_equal(played.execs, 1);
    assert_int_equal(played.asks, 2);
    assert_int_equal(world.pool->exits[EXIT_NORMAL], 2);
    assert_int_equal(world.pool->exits[EXIT_KILLED], 0);
    assert_int_equal(world.pool->state, POOL_DRAINING);
    world_close(&world);
}

static void requests_that_wait_during_a_stop_get_a_worker(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    pool_drain(world.pool);
    world_end(&world, 500, WORLD_EXIT_0);
    world_end(&world, 501, WORLD_EXIT_0);
    assert_int_equal(played.asks, 2);
    world_queue(&world);
    pool_want(world.pool);
    world_run(&world);
    assert_true(played.asks > 2);
    world_close(&world);
}

static void no_restart_begins_during_a_stop(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    pool_drain(world.pool);
    (void)pool_restart(world.pool);
    world_run(&world);
    assert_null(world.pool->next);
    world_close(&world);
}

static void a_pool_on_demand_starts_nothing_before_its_first_request(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 0, 2);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    assert_int_equal(played.started, 1);
    assert_string_equal(played.start_failure, "");
    assert_int_equal(played.execs, 0);
    assert_int_equal(world.pool->state, POOL_DOWN);
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(played.execs, 1);
    world_say_loaded(&world, 1);
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 1);
    assert_int_equal(world.pool->state, POOL_UP);
    world_close(&world);
}

static void a_restart_of_a_pool_that_is_down_only_looks_at_its_release_again(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 0, 2);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    (void)pool_restart(world.pool);
    world_run(&world);
    assert_int_equal(played.restarted, 1);
    assert_string_equal(played.restart_failure, "");
    assert_int_equal(played.execs, 0);
    assert_int_equal(world.pool->current->generation, 2);
    played.is_broken = true;
    (void)pool_restart(world.pool);
    world_run(&world);
    assert_non_null(strstr(played.restart_failure, "the folder is gone"));
    assert_int_equal(world.pool->current->generation, 2);
    assert_int_equal(world.pool->state, POOL_DOWN);
    world_close(&world);
}

static void more_and_fewer_workers_are_wanted_by_signals(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 4);
    world_start(&world);
    pool_adjust(world.pool, 1);
    world_run(&world);
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 2);
    pool_adjust(world.pool, -1);
    world_run(&world);
    /* The oldest goes. */
    assert_int_equal(world_find(&world, WORKER_RETIRING)->pid, 500);
    pool_adjust(world.pool, -1);
    assert_int_equal(pool_wanted(world.pool), 1);
    world_close(&world);
}

static void a_fork_that_fails_is_tried_again_after_a_pause(void **state)
{
    struct world world;
    unsigned asks;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    world_say(&world, "unforked\nindex=0\nmessage=Resource temporarily unavailable\n");
    assert_int_equal(world.pool->state, POOL_DEGRADED);
    assert_non_null(strstr(world.pool->error, "Resource temporarily unavailable"));
    asks = played.asks;
    world_wait(&world, 900);
    assert_int_equal(played.asks, asks);
    world_wait(&world, 300);
    assert_int_equal(played.asks, asks + 1);
    world_serve(&world);
    assert_int_equal(world.pool->state, POOL_UP);
    world_close(&world);
}

static void a_stop_ends_everything_and_says_so_once(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    pool_stop(world.pool, 1000);
    world_run(&world);
    assert_int_equal(played.quits, 1);
    assert_non_null(world_find(&world, WORKER_RETIRING));
    world_end(&world, 500, WORLD_EXIT_0);
    assert_int_equal(played.empty, 0);
    world_end(&world, 101, WORLD_EXIT_0);
    world_wait(&world, 1);
    assert_int_equal(played.empty, 1);
    world_close(&world);
}

static void in_development_each_worker_is_a_process_that_loads_by_itself(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    world.config.development = true;
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    assert_int_equal(played.execs, 1);
    assert_int_equal(played.asks, 0);
    world_serve(&world);
    assert_int_equal(played.started, 1);
    (void)pool_restart(world.pool);
    world_run(&world);
    assert_int_equal(played.execs, 2);
    world_serve(&world);
    world_end(&world, 101, WORLD_EXIT_0);
    assert_int_equal(played.restarted, 1);
    assert_int_equal(pool_serving(world.pool), 1);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_loads_its_mold_and_then_starts_the_workers_it_wants),
        cmocka_unit_test(a_first_start_that_fails_is_told_once_in_the_words_of_the_application),
        cmocka_unit_test(a_mold_that_ends_without_a_word_fails_the_start_too),
        cmocka_unit_test(tries_that_fail_have_growing_pauses_between_them),
        cmocka_unit_test(a_mold_that_does_not_load_within_its_time_is_killed_and_says_so),
        cmocka_unit_test(a_worker_that_ends_is_replaced_at_once_from_the_same_mold),
        cmocka_unit_test(a_restart_tries_a_worker_of_the_new_release_before_an_old_one_goes),
        cmocka_unit_test(a_release_that_does_not_load_leaves_the_former_one_serving),
        cmocka_unit_test(a_first_worker_that_dies_young_fails_the_restart),
        cmocka_unit_test(a_restart_whose_later_workers_fail_ends_and_the_new_release_stays),
        cmocka_unit_test(restarts_asked_for_during_one_are_joined_into_the_next),
        cmocka_unit_test(a_signal_to_the_whole_group_during_a_stop_is_no_trouble),
        cmocka_unit_test(requests_that_wait_during_a_stop_get_a_worker),
        cmocka_unit_test(no_restart_begins_during_a_stop),
        cmocka_unit_test(a_pool_on_demand_starts_nothing_before_its_first_request),
        cmocka_unit_test(a_restart_of_a_pool_that_is_down_only_looks_at_its_release_again),
        cmocka_unit_test(more_and_fewer_workers_are_wanted_by_signals),
        cmocka_unit_test(a_fork_that_fails_is_tried_again_after_a_pause),
        cmocka_unit_test(a_stop_ends_everything_and_says_so_once),
        cmocka_unit_test(in_development_each_worker_is_a_process_that_loads_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/budget.c"

#include "pool/staff.h"

#include "pool_world.h"

/* One more of 100 MB. */
static const struct situation {
    const char *what;
    uint64_t pool_used, pool_limit, all_used, all_limit, left, reserve;
    uint32_t pressure;
    bool is_first, is_owed;
    uint32_t count;
    enum budget_bound bound;
} situations[] = {
    {"no limit at all", 0, 0, 0, 0, UINT64_MAX, 0, 0, false, false, UINT32_MAX, BUDGET_NONE},
    {"the pool's", 200, 450, 200, 0, UINT64_MAX, 0, 0, false, false, 2, BUDGET_POOL},
    {"the pool's is full", 400, 450, 400, 0, UINT64_MAX, 0, 0, false, false, 0, BUDGET_POOL},
    {"it does not forbid the only worker", 0, 50, 0, 0, 900, 0, 0, true, false, 9, BUDGET_MACHINE},
    {"all pools'", 0, 0, 300, 500, UINT64_MAX, 0, 0, true, false, 2, BUDGET_ALL},
    {"all pools' is full", 0, 0, 450, 500, UINT64_MAX, 0, 0, true, false, 0, BUDGET_ALL},
    {"all pools' is exceeded", 0, 0, 900, 500, UINT64_MAX, 0, 0, false, false, 0, BUDGET_ALL},
    {"the tightest counts", 0, 900, 0, 800, 250, 50, 0, false, false, 2, BUDGET_MACHINE},
    {"the machine has nothing to spare", 0, 0, 0, 0, 120, 50, 0, true, false, 0, BUDGET_MACHINE},
    {"under pressure nobody gets more", 0, 0, 0, 0, 900, 0, 1000, false, false, 0, BUDGET_PRESSURE},
    {"but a first one", 0, 0, 0, 0, 900, 0, 5000, true, false, 9, BUDGET_MACHINE},
    {"a little pressure is none", 0, 0, 0, 0, 900, 0, 999, false, false, 9, BUDGET_MACHINE},
    {"what is owed is given", 0, 0, 900, 500, 0, 50, 5000, true, true, 1, BUDGET_ALL},
};

static void the_tightest_bound_says_how_many_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(situations); i++) {
        const struct situation *now = &situations[i];
        struct budget_question question = {.need = 100,
                                           .pool_used = now->pool_used,
                                           .pool_limit = now->pool_limit,
                                           .all_used = now->all_used,
                                           .all_limit = now->all_limit,
                                           .left = now->left,
                                           .reserve = now->reserve,
                                           .pressure = now->pressure,
                                           .is_first = now->is_first,
                                           .is_owed = now->is_owed};
        enum budget_bound found;
        uint32_t count = budget_answer(&question, &found);
        if (count != now->count || found != now->bound)
            fail_msg("%s: %u by %s, expected %u by %s", now->what, count, bounds[found], now->count,
                     bounds[now->bound]);
    }
}

/* Two pools on demand in one budget. */
struct pair {
    struct budget budget;
    struct world a, b;
};

static void open_pair(struct pair *pair, uint64_t limit)
{
    struct faults faults = {.size = 0};

    world_open(&pair->a, 0, 2);
    world_open(&pair->b, 0, 2);
    world_open_budget(&pair->budget, limit);
    budget_join(&pair->budget, pair->a.pool);
    budget_join(&pair->budget, pair->b.pool);
    assert_int_equal(pool_start(pair->a.pool, &faults), 0);
    assert_int_equal(pool_start(pair->b.pool, &faults), 0);
}

static void close_pair(struct pair *pair)
{
    world_close(&pair->a);
    world_close(&pair->b);
}

/* Its mold takes 60 MB, a worker 10 MB. */
static void load(struct world *world)
{
    pool_want(world->pool);
    world_run(world);
    world_say(world, "loaded\ngeneration=1\npreload=true\nprivate_bytes=62914560\n");
    world_serve(world);
    world_say_measured(world, 0, 10 * MB);
}

static void
a_pool_takes_what_its_mold_had_when_it_was_loaded_and_what_its_workers_report(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    assert_true(budget_used(pair.a.pool) == 0);
    pool_want(pair.a.pool);
    world_run(&pair.a);
    assert_true(budget_used(pair.a.pool) == UNKNOWN_MOLD_BYTES);
    load(&pair.a);
    assert_true(budget_used(pair.a.pool) == 70 * MB);
    /* What is not known of the other is guessed by this one. */
    assert_true(budget_mold_bytes(pair.b.pool) == 60 * MB);
    close_pair(&pair);
}

static void who_leaves_is_counted_until_it_has_left(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    load(&pair.a);
    assert_true(budget_leaving(pair.a.pool) == 0);
    staff_give_up(pair.a.pool, 0, EXIT_IDLE, true);
    world_run(&pair.a);
    assert_true(budget_used(pair.a.pool) == 70 * MB);
    assert_true(budget_leaving(pair.a.pool) == 70 * MB);
    world_end(&pair.a, 500, WORLD_EXIT_0);
    assert_true(budget_used(pair.a.pool) == 60 * MB);
    assert_true(budget_leaving(pair.a.pool) == 60 * MB);
    close_pair(&pair);
}

static void a_fresh_worker_counts_for_what_its_like_takes(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    load(&pair.a);
    pool_adjust(pair.a.pool, 1);
    world_run(&pair.a);
    world_serve(&pair.a);
    world_say(&pair.a, "measured\nindex=1\npid=501\nprivate_bytes=1000\n");
    assert_true(budget_used(pair.a.pool) == 80 * MB);
    /* Until it has answered something. */
    world_say_measured(&pair.a, 1, 2 * MB);
    assert_true(budget_used(pair.a.pool) == 72 * MB);
    close_pair(&pair);
}

static void who_gives_way_does_not_come_back_from_a_mold_that_must_go(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    load(&pair.a);
    world_queue(&pair.a);
    staff_give_up(pair.a.pool, 0, EXIT_MEMORY, true);
    world_run(&pair.a);
    world_end(&pair.a, 500, WORLD_EXIT_0);
    assert_int_equal(played.asks, 1);
    assert_int_equal(played.quits, 1);
    /* Requests still wait: it is loaded anew. */
    world_end(&pair.a, 101, WORLD_EXIT_0);
    assert_int_equal(played.execs, 2);
    close_pair(&pair);
}

static void a_pool_that_does_not_fit_waits_until_another_has_given_way(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 100 * MB);
    load(&pair.a);
    played.now_ms += 10;
    pool_want(pair.b.pool);
    world_run(&pair.b);
    assert_int_equal(played.execs, 1);
    assert_true(pair.b.pool->waits_ms > 0);
    /* The idle worker of the other one was asked to go, and its mold goes with it. */
    world_run(&pair.a);
    world_end(&pair.a, 500, WORLD_EXIT_0);
    world_run(&pair.b);
    assert_int_equal(played.execs, 1);
    world_end(&pair.a, 101, WORLD_EXIT_0);
    world_run(&pair.b);
    assert_int_equal(played.execs, 2);
    assert_int_equal(pair.b.pool->waits_ms, 0);
    assert_int_equal(pair.a.pool->state, POOL_DOWN);
    close_pair(&pair);
}

static void a_processor_starts_one_at_a_time_for_all_pools(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    pair.a.pool->max_starts = pair.b.pool->max_starts = 1;
    pool_want(pair.a.pool);
    world_run(&pair.a);
    pool_want(pair.b.pool);
    world_run(&pair.b);
    assert_int_equal(played.execs, 1);
    assert_int_equal(budget_starting(pair.b.pool), 1);
    load(&pair.a);
    world_run(&pair.b);
    assert_int_equal(played.execs, 2);
    close_pair(&pair);
}

static void a_start_that_hangs_does_not_keep_others_waiting(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 0);
    pair.a.pool->max_starts = pair.b.pool->max_starts = 1;
    pool_want(pair.a.pool);
    world_run(&pair.a);
    pool_want(pair.b.pool);
    world_run(&pair.b);
    world_queue(&pair.b);
    world_wait(&pair.b, STUCK_START_MS - 1);
    assert_int_equal(played.execs, 1);
    world_wait(&pair.b, 1);
    assert_int_equal(played.execs, 2);
    close_pair(&pair);
}

static void memory_total_is_four_fifths_of_what_there_is_unless_it_is_set(void **state)
{
    struct loop *loop = loop_new();
    struct budget budget;

    (void)state;
    budget_open(&budget, loop, 0);
    assert_true(budget.limit == capacity_memory(&budget.capacity) / 100 * 80);
    budget_close(&budget);
    budget_open(&budget, loop, 5 * MB);
    assert_true(budget.limit == 5 * MB);
    budget_close(&budget);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tightest_bound_says_how_many_fit),
        cmocka_unit_test(
            a_pool_takes_what_its_mold_had_when_it_was_loaded_and_what_its_workers_report),
        cmocka_unit_test(who_leaves_is_counted_until_it_has_left),
        cmocka_unit_test(a_fresh_worker_counts_for_what_its_like_takes),
        cmocka_unit_test(who_gives_way_does_not_come_back_from_a_mold_that_must_go),
        cmocka_unit_test(a_pool_that_does_not_fit_waits_until_another_has_given_way),
        cmocka_unit_test(a_processor_starts_one_at_a_time_for_all_pools),
        cmocka_unit_test(a_start_that_hangs_does_not_keep_others_waiting),
        cmocka_unit_test(memory_total_is_four_fifths_of_what_there_is_unless_it_is_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

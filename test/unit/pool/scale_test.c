/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/scale.c"

#include "base/base.h"

static uint32_t wanted(uint32_t min, uint32_t fits, int32_t adjust)
{
    struct scale scale = {.min = min, .max = 6, .fits = fits, .adjust = adjust, .entries = 20};

    return scale_wanted(&scale);
}

static void a_pool_has_its_minimum(void **state)
{
    (void)state;
    assert_int_equal(wanted(2, UINT32_MAX, 0), 2);
}

static void a_pool_on_demand_has_no_worker_until_it_is_asked_for(void **state)
{
    struct scale scale = {.max = 6, .fits = UINT32_MAX, .entries = 20};

    (void)state;
    assert_int_equal(scale_wanted(&scale), 0);
    scale.demanded = true;
    assert_int_equal(scale_wanted(&scale), 1);
    scale.adjust = -1;
    assert_int_equal(scale_wanted(&scale), 1);
}

static void ttin_starts_a_pool_on_demand(void **state)
{
    (void)state;
    assert_int_equal(wanted(0, UINT32_MAX, 1), 1);
    assert_int_equal(wanted(0, UINT32_MAX, -1), 0);
}

static void memory_bounds_an_automatic_number(void **state)
{
    (void)state;
    assert_int_equal(wanted(4, 3, 0), 3);
}

static void ttin_and_ttou_move_it_between_one_and_half_of_the_table(void **state)
{
    (void)state;
    assert_int_equal(wanted(2, UINT32_MAX, 1), 3);
    assert_int_equal(wanted(2, UINT32_MAX, -1), 1);
    assert_int_equal(wanted(2, UINT32_MAX, -5), 1);
    assert_int_equal(wanted(2, UINT32_MAX, 50), 10);
}

static void ttin_and_ttou_move_both_ends_of_a_range(void **state)
{
    struct scale scale = {.min = 2, .max = 6, .fits = UINT32_MAX, .entries = 20, .adjust = 1};

    (void)state;
    assert_int_equal(scale_least(&scale), 3);
    assert_int_equal(scale_most(&scale), 7);
    scale.adjust = -1;
    assert_int_equal(scale_least(&scale), 1);
    assert_int_equal(scale_most(&scale), 5);
}

/* A pool of 1..6 workers with two threads each, of which one takes 100 ms to start. */
static const struct situation {
    const char *what;
    uint32_t wanted, serving, expired, busy, queued;
    uint64_t oldest_ms, service_us;
    uint32_t outcome;
} situations[] = {
    {"nobody waits and nobody was idle for long", 2, 2, 0, 1, 0, 0, 10000, 2},
    {"a thread is free for the one that waits", 1, 1, 0, 1, 1, 5, 900000, 1},
    {"the queue is gone before a worker would be there", 1, 1, 0, 2, 10, 5, 10000, 1},
    {"two more make the wait short enough", 1, 1, 0, 2, 60, 5, 10000, 3},
    {"a long queue wants all there may be", 1, 1, 0, 2, 1000, 5, 10000, 6},
    {"the workers that are coming are counted", 3, 1, 0, 2, 60, 50, 10000, 3},
    {"unknown times: an old queue wants one more", 1, 1, 0, 2, 1, 101, 0, 2},
    {"and no second one before that has come", 2, 1, 0, 2, 1, 300, 0, 2},
    {"and then one more again", 2, 2, 0, 4, 1, 101, 0, 3},
    {"an old queue although a thread is free wants one more", 2, 2, 0, 1, 1, 101, 5000, 3},
    {"never more than MAX", 6, 6, 0, 12, 1000, 9000, 1000000, 6},
    {"idle workers go", 5, 5, 3, 1, 0, 0, 1000, 2},
    {"those that are about to go are not counted again", 3, 5, 3, 1, 0, 0, 1000, 2},
    {"but not below MIN", 5, 5, 5, 0, 0, 0, 1000, 1},
    {"and not while anybody waits", 5, 5, 4, 1, 1, 1, 1000, 5},
    {"more than MAX, after the range was moved down", 9, 9, 0, 0, 0, 0, 0, 6},
};

static void the_wanted_number_follows_the_situation(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(situations); i++) {
        const struct situation *now = &situations[i];
        struct scale scale = {.min = 1,
                              .max = 6,
                              .fits = UINT32_MAX,
                              .entries = 20,
                              .wanted = now->wanted,
                              .serving = now->serving,
                              .expired = now->expired,
                              .threads = 2,
                              .busy = now->busy,
                              .queued = now->queued,
                              .oldest_ms = now->oldest_ms,
                              .service_us = now->service_us,
                              .start_ms = 100};
        uint32_t outcome = scale_wanted(&scale);
        if (outcome != now->outcome)
            fail_msg("%s: %u, expected %u", now->what, outcome, now->outcome);
    }
}

static void the_last_worker_of_a_pool_on_demand_goes_with_the_demand(void **state)
{
    struct scale scale = {.max = 3,
                          .fits = UINT32_MAX,
                          .entries = 20,
                          .demanded = true,
                          .wanted = 1,
                          .serving = 1,
                          .expired = 1,
                          .threads = 1};

    (void)state;
    assert_int_equal(scale_wanted(&scale), 1);
    scale.demanded = false;
    assert_int_equal(scale_wanted(&scale), 0);
    /* Also when it could not be started, and nobody waits any more. */
    scale.serving = scale.expired = 0;
    assert_int_equal(scale_wanted(&scale), 0);
}

static void as_many_start_at_once_as_there_are_processors_and_room(void **state)
{
    struct scale_starts starts = {.missing = 5, .cpus = 2, .room = UINT32_MAX};

    (void)state;
    assert_int_equal(scale_start(&starts), 2);
    starts.starting = 1;
    assert_int_equal(scale_start(&starts), 1);
    starts.starting = 3;
    assert_int_equal(scale_start(&starts), 0);
    starts.starting = 0;
    starts.room = 1;
    assert_int_equal(scale_start(&starts), 1);
    starts.missing = 0;
    assert_int_equal(scale_start(&starts), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_has_its_minimum),
        cmocka_unit_test(a_pool_on_demand_has_no_worker_until_it_is_asked_for),
        cmocka_unit_test(ttin_starts_a_pool_on_demand),
        cmocka_unit_test(memory_bounds_an_automatic_number),
        cmocka_unit_test(ttin_and_ttou_move_it_between_one_and_half_of_the_table),
        cmocka_unit_test(ttin_and_ttou_move_both_ends_of_a_range),
        cmocka_unit_test(the_wanted_number_follows_the_situation),
        cmocka_unit_test(the_last_worker_of_a_pool_on_demand_goes_with_the_demand),
        cmocka_unit_test(as_many_start_at_once_as_there_are_processors_and_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

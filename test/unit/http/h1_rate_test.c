/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_rate.c"

static void ten_seconds_pass_before_anybody_is_slow(void **state)
{
    struct h1_rate rate;
    (void)state;

    h1_rate_start(&rate, 1000);
    for (int i = 1; i < H1_RATE_TICKS; i++)
        assert_false(h1_rate_is_slow(&rate, 1000, 500));
    assert_true(h1_rate_is_slow(&rate, 1000, 500));
}

static void a_steady_peer_at_the_rate_is_never_slow(void **state)
{
    struct h1_rate rate;
    (void)state;

    h1_rate_start(&rate, 0);
    for (uint64_t i = 1; i < 100; i++)
        assert_false(h1_rate_is_slow(&rate, i * 500, 500));
}

static void a_peer_that_stops_is_slow_ten_seconds_later(void **state)
{
    struct h1_rate rate;
    int ticks = 0;
    (void)state;

    h1_rate_start(&rate, 0);
    for (uint64_t i = 1; i < 60; i++)
        assert_false(h1_rate_is_slow(&rate, i * 500, 500));
    while (!h1_rate_is_slow(&rate, 59 * 500, 500))
        ticks++;
    assert_true(ticks < H1_RATE_TICKS);
}

static void a_burst_counts_for_the_ten_seconds_around_it(void **state)
{
    struct h1_rate rate;
    (void)state;

    h1_rate_start(&rate, 0);
    for (int i = 1; i < H1_RATE_TICKS; i++)
        assert_false(h1_rate_is_slow(&rate, 0, 500));
    for (int i = 0; i < H1_RATE_TICKS; i++)
        assert_false(h1_rate_is_slow(&rate, 5000, 500));
    assert_true(h1_rate_is_slow(&rate, 5000, 500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_seconds_pass_before_anybody_is_slow),
        cmocka_unit_test(a_steady_peer_at_the_rate_is_never_slow),
        cmocka_unit_test(a_peer_that_stops_is_slow_ten_seconds_later),
        cmocka_unit_test(a_burst_counts_for_the_ten_seconds_around_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

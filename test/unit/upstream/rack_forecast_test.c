/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_forecast.c"

#define MS 1000ull    /* in microseconds */
#define S  1000000ull /* in microseconds */

static struct forecast_recent recent_of(uint64_t usual_us, unsigned count)
{
    struct forecast_recent recent = {.seen = 0};

    for (unsigned i = 0; i < count; i++)
        forecast_note(&recent, usual_us);
    return recent;
}

/* The wait in microseconds behind so many, in a crew of equals with that running mean. */
static uint64_t wait_us(unsigned workers, unsigned threads, uint64_t mean_us,
                        const struct forecast_recent *recent, uint32_t waiting)
{
    struct forecast_crew crew = {.threads = threads};

    for (unsigned i = 0; i < workers; i++)
        forecast_add_worker(&crew, mean_us * 1000, true);
    return forecast_wait_us(forecast_step_ns(&crew, forecast_usual_us(recent)), waiting);
}

static void assert_about(uint64_t value, uint64_t expected)
{
    assert_in_range(value, expected - expected / 50, expected + expected / 50);
}

static void the_wait_is_what_waits_before_times_service_over_threads(void **state)
{
    struct forecast_recent recent = recent_of(100 * MS, 32);
    (void)state;

    assert_about(wait_us(1, 1, 100 * MS, &recent, 10), 1 * S);
    assert_about(wait_us(2, 3, 100 * MS, &recent, 60), 1 * S);
    assert_about(wait_us(2, 3, 100 * MS, &recent, 6000), 100 * S);
    assert_int_equal(wait_us(2, 3, 100 * MS, &recent, 0), 0);
}

static void without_a_mean_there_is_no_forecast(void **state)
{
    struct forecast_recent none = {.seen = 0};
    struct forecast_recent few = recent_of(10 * S, FORECAST_ENOUGH - 1);
    (void)state;

    assert_int_equal(wait_us(1, 1, 10 * S, &none, 1000), 0);
    assert_int_equal(wait_us(1, 1, 10 * S, &few, 1000), 0);
}

static void without_workers_there_is_no_forecast(void **state)
{
    struct forecast_recent recent = recent_of(10 * S, 32);
    struct forecast_crew starting = {.threads = 3};
    (void)state;

    assert_int_equal(wait_us(0, 3, 0, &recent, 1000), 0);
    forecast_add_worker(&starting, 0, false);
    assert_int_equal(forecast_step_ns(&starting, 10 * S), 0);
}

static void new_workers_count_before_they_have_answered(void **state)
{
    struct forecast_recent recent = recent_of(100 * MS, 32);
    struct forecast_crew crew = {.threads = 1};
    (void)state;

    forecast_add_worker(&crew, 100 * MS * 1000, true);
    forecast_add_worker(&crew, 0, true);
    forecast_add_worker(&crew, 0, false);
    assert_about(forecast_wait_us(forecast_step_ns(&crew, forecast_usual_us(&recent)), 30), 1 * S);
    assert_about(wait_us(3, 1, 0, &recent, 30), 1 * S);
}

static void a_pool_that_may_still_grow_is_given_the_time_to_do_so(void **state)
{
    struct forecast_recent recent = recent_of(100 * MS, 32);
    struct forecast_crew young = {.threads = 1}, old = {.threads = 1}, full = {.threads = 1};
    uint64_t usual_us = forecast_usual_us(&recent);
    (void)state;

    forecast_add_worker(&young, 100 * MS * 1000, true);
    forecast_add_worker(&old, 100 * MS * 1000, true);
    forecast_add_worker(&full, 100 * MS * 1000, true);
    forecast_add_growth(&young, 4, 30 * MS);
    forecast_add_growth(&old, 4, 3 * S);
    forecast_add_growth(&full, 1, 0);
    assert_about(forecast_wait_us(forecast_step_ns(&young, usual_us), 40), 1 * S);
    assert_about(forecast_wait_us(forecast_step_ns(&old, usual_us), 40), 4 * S);
    assert_about(forecast_wait_us(forecast_step_ns(&full, usual_us), 40), 4 * S);
}

static void one_very_slow_request_among_fast_ones_changes_nothing(void **state)
{
    struct forecast_recent recent = recent_of(5 * MS, 31);
    (void)state;

    forecast_note(&recent, 60 * S);
    /* The worker's own mean follows the last few: it is led astray for a while. */
    assert_about(wait_us(1, 1, 7500 * MS, &recent, 100), 500 * MS);
    /* So do the front's first answers. */
    recent = recent_of(5 * MS, 3);
    forecast_note(&recent, 60 * S);
    assert_about(wait_us(1, 1, 7500 * MS, &recent, 100), 500 * MS);
}

static void several_slow_ones_at_once_move_it_no_further_than_twice_the_usual(void **state)
{
    struct forecast_recent recent = recent_of(5 * MS, 28);
    (void)state;

    for (int i = 0; i < 4; i++)
        forecast_note(&recent, 20 * S);
    assert_in_range(wait_us(1, 1, 9 * S, &recent, 100), 500 * MS, 1010 * MS);
}

static void a_fast_one_in_between_does_not_hide_that_all_are_slow(void **state)
{
    struct forecast_recent recent = recent_of(2 * S, 30);
    (void)state;

    forecast_note(&recent, 1 * MS);
    forecast_note(&recent, 1 * MS);
    assert_in_range(wait_us(1, 1, 2 * S, &recent, 10), 17 * S, 20 * S);
}

static void the_more_hopeful_opinion_counts(void **state)
{
    struct forecast_recent fast = recent_of(10 * MS, 32), slow = recent_of(1 * S, 32);
    (void)state;

    assert_about(wait_us(1, 1, 1 * S, &fast, 100), 1 * S);
    assert_about(wait_us(1, 1, 10 * MS, &slow, 100), 1 * S);
}

static void a_slow_worker_among_fast_ones_does_not_speak_for_them(void **state)
{
    struct forecast_recent recent = recent_of(10 * S, 32);
    struct forecast_crew crew = {.threads = 1};
    (void)state;

    forecast_add_worker(&crew, 10 * S * 1000, true);
    forecast_add_worker(&crew, 100 * MS * 1000, true);
    assert_about(forecast_wait_us(forecast_step_ns(&crew, forecast_usual_us(&recent)), 100),
                 9900 * MS);
}

static void what_a_broken_worker_publishes_does_no_harm(void **state)
{
    struct forecast_recent recent = recent_of(0, 32);
    struct forecast_crew crew = {.threads = 16384};
    (void)state;

    assert_int_equal(forecast_usual_us(&recent), 1);
    forecast_add_worker(&crew, UINT64_MAX, true);
    assert_int_equal(forecast_wait_us(forecast_step_ns(&crew, 1), 1 << 20), 0);
    crew = (struct forecast_crew){.threads = 1};
    forecast_add_worker(&crew, UINT64_MAX, true);
    assert_int_equal(forecast_step_ns(&crew, UINT64_MAX / 1000), 0);
    crew = (struct forecast_crew){.threads = 8};
    for (int i = 0; i < 2048; i++)
        forecast_add_worker(&crew, 1, true);
    assert_in_range(forecast_step_ns(&crew, 1), 0, 1);
}

static void retry_after_is_when_the_queue_is_empty(void **state)
{
    (void)state;

    assert_int_equal(forecast_retry_s(0, 5), 5);
    assert_int_equal(forecast_retry_s(1, 5), 1);
    assert_int_equal(forecast_retry_s(1 * S, 5), 1);
    assert_int_equal(forecast_retry_s(1 * S + 1, 5), 2);
    assert_int_equal(forecast_retry_s(31 * S, 5), 31);
    assert_int_equal(forecast_retry_s(UINT64_MAX - S, 5), FORECAST_RETRY_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wait_is_what_waits_before_times_service_over_threads),
        cmocka_unit_test(without_a_mean_there_is_no_forecast),
        cmocka_unit_test(without_workers_there_is_no_forecast),
        cmocka_unit_test(new_workers_count_before_they_have_answered),
        cmocka_unit_test(a_pool_that_may_still_grow_is_given_the_time_to_do_so),
        cmocka_unit_test(one_very_slow_request_among_fast_ones_changes_nothing),
        cmocka_unit_test(several_slow_ones_at_once_move_it_no_further_than_twice_the_usual),
        cmocka_unit_test(a_fast_one_in_between_does_not_hide_that_all_are_slow),
        cmocka_unit_test(the_more_hopeful_opinion_counts),
        cmocka_unit_test(a_slow_worker_among_fast_ones_does_not_speak_for_them),
        cmocka_unit_test(what_a_broken_worker_publishes_does_no_harm),
        cmocka_unit_test(retry_after_is_when_the_queue_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

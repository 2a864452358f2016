/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/reap.c"

/* Wait statuses as the system makes them. */
static int exited(int code)
{
    return code << 8;
}

static void an_end_we_asked_for_has_the_reason_we_asked_for(void **state)
{
    (void)state;
    assert_int_equal(exit_reason_of(EXIT_TIMEOUT, SIGKILL), EXIT_TIMEOUT);
    assert_int_equal(exit_reason_of(EXIT_NORMAL, exited(0)), EXIT_NORMAL);
    assert_string_equal(exit_word(EXIT_MAX_REQUESTS), "max_requests");
}

static void a_signal_from_outside_is_killed_and_one_of_its_own_making_a_crash(void **state)
{
    (void)state;
    assert_int_equal(exit_reason_of(EXIT_NONE, SIGKILL), EXIT_KILLED);
    assert_int_equal(exit_reason_of(EXIT_NONE, SIGTERM), EXIT_KILLED);
    assert_int_equal(exit_reason_of(EXIT_NONE, SIGSEGV), EXIT_CRASH);
    assert_int_equal(exit_reason_of(EXIT_NONE, SIGABRT), EXIT_CRASH);
}

static void any_other_end_is_a_crash(void **state)
{
    (void)state;
    assert_int_equal(exit_reason_of(EXIT_NONE, exited(1)), EXIT_CRASH);
    assert_int_equal(exit_reason_of(EXIT_NONE, exited(70)), EXIT_CRASH);
}

static void a_worker_that_retired_by_a_foreign_term_was_killed(void **state)
{
    (void)state;
    assert_int_equal(exit_reason_of(EXIT_NONE, exited(0)), EXIT_KILLED);
}

static void an_end_is_told_in_words(void **state)
{
    char out[100];

    (void)state;
    assert_string_equal(exit_describe(exited(3), out, sizeof out), "exited with status 3");
    assert_string_equal(exit_describe(SIGKILL, out, sizeof out), "ended by signal 9 (Killed)");
}

static void failed_tries_pause_1_2_4_8_16_30_seconds(void **state)
{
    const uint64_t expected[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct backoff backoff = {.failures = 0};
    uint64_t now_ms = 5000;

    (void)state;
    for (size_t i = 0; i < 7; i++) {
        backoff_fail(&backoff, now_ms, 0);
        assert_int_equal(backoff_wait_ms(&backoff, now_ms), expected[i]);
        now_ms += expected[i];
        assert_int_equal(backoff_wait_ms(&backoff, now_ms), 0);
    }
}

static void noise_lengthens_a_pause_by_less_than_an_eighth(void **state)
{
    struct backoff backoff = {.failures = 0};

    (void)state;
    backoff_fail(&backoff, 0, UINT32_MAX);
    assert_in_range(backoff_wait_ms(&backoff, 0), 1000, 1124);
}

static void at_most_fifteen_tries_fit_into_a_minute(void **state)
{
    struct backoff backoff = {.failures = 0};
    uint64_t now_ms = 0;
    int tries = 0;

    (void)state;
    for (; now_ms < 60000; tries++) {
        backoff_fail(&backoff, now_ms, 0);
        now_ms += backoff_wait_ms(&backoff, now_ms);
    }
    assert_in_range(tries, 2, 15);
}

static void a_success_starts_anew(void **state)
{
    struct backoff backoff = {.failures = 0};

    (void)state;
    backoff_fail(&backoff, 0, 0);
    backoff_fail(&backoff, 1000, 0);
    backoff_succeed(&backoff);
    backoff_fail(&backoff, 10000, 0);
    assert_int_equal(backoff_wait_ms(&backoff, 10000), 1000);
}

static void the_death_of_an_old_worker_costs_nothing(void **state)
{
    struct backoff backoff = {.failures = 0};

    (void)state;
    for (int i = 0; i < 500; i++)
        backoff_die(&backoff, (uint64_t)i, BACKOFF_YOUNG_MS, 2);
    assert_int_equal(backoff_wait_ms(&backoff, 500), 0);
}

static void a_storm_of_young_deaths_is_slowed_down_and_forgiven(void **state)
{
    struct backoff backoff = {.failures = 0};

    (void)state;
    for (int i = 0; i < 4; i++)
        backoff_die(&backoff, 100, 50, 4);
    assert_int_equal(backoff_wait_ms(&backoff, 100), 0);
    backoff_die(&backoff, 100, 50, 4);
    assert_int_equal(backoff_wait_ms(&backoff, 100), 1000);
    backoff_die(&backoff, 100 + 3 * BACKOFF_FORGIVE_MS, 50, 4);
    assert_int_equal(backoff_wait_ms(&backoff, 100 + 3 * BACKOFF_FORGIVE_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_we_asked_for_has_the_reason_we_asked_for),
        cmocka_unit_test(a_signal_from_outside_is_killed_and_one_of_its_own_making_a_crash),
        cmocka_unit_test(any_other_end_is_a_crash),
        cmocka_unit_test(a_worker_that_retired_by_a_foreign_term_was_killed),
        cmocka_unit_test(an_end_is_told_in_words),
        cmocka_unit_test(failed_tries_pause_1_2_4_8_16_30_seconds),
        cmocka_unit_test(noise_lengthens_a_pause_by_less_than_an_eighth),
        cmocka_unit_test(at_most_fifteen_tries_fit_into_a_minute),
        cmocka_unit_test(a_success_starts_anew),
        cmocka_unit_test(the_death_of_an_old_worker_costs_nothing),
        cmocka_unit_test(a_storm_of_young_deaths_is_slowed_down_and_forgiven),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

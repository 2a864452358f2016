/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.c"

#define assert_reads(text, expected)                                 \
    do {                                                             \
        time_t seconds = -77;                                        \
        assert_true(parse_http_date(span_of(text), 2026, &seconds)); \
        assert_int_equal(seconds, expected);                         \
    } while (0)

static void reads_the_three_forms_of_the_rfc(void **state)
{
    (void)state;

    assert_reads("Sun, 06 Nov 1994 08:49:37 GMT", 784111777);
    assert_reads("Sunday, 06-Nov-94 08:49:37 GMT", 784111777);
    assert_reads("Sun Nov  6 08:49:37 1994", 784111777);
    assert_reads("Wed Nov 16 08:49:37 1994", 784975777);
}

static void a_short_year_lies_at_most_fifty_years_ahead(void **state)
{
    (void)state;

    assert_reads("Sunday, 01-Jan-76 00:00:00 GMT", 3345062400); /* 2076 */
    assert_reads("Sunday, 01-Jan-77 00:00:00 GMT", 220924800);  /* 1977 */
}

static void leap_days_and_leap_seconds_are_read(void **state)
{
    (void)state;

    assert_reads("Tue, 29 Feb 2000 00:00:00 GMT", 951782400);
    assert_reads("Sat, 31 Dec 2016 23:59:60 GMT", 1483228800);
}

static void refuses_what_is_no_date(void **state)
{
    const char *texts[] = {
        "",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nvo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Thu, 29 Feb 1900 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "784111777",
    };
    time_t seconds = -77;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_false(clock_parse_http_date(span_of(texts[i]), &seconds));
    assert_int_equal(seconds, -77);
}

static void writes_what_it_reads(void **state)
{
    char text[CLOCK_HTTP_DATE];
    (void)state;

    clock_http_date(784111777, text);
    assert_true(span_is(span_make(text, sizeof(text)), "Sun, 06 Nov 1994 08:49:37 GMT"));
    for (time_t when = 0; when < 7258118400; when += 86399 * 7) {
        time_t seconds = -77;

        clock_http_date(when, text);
        assert_true(clock_parse_http_date(span_make(text, sizeof(text)), &seconds));
        assert_int_equal(seconds, when);
    }
}

static void splits_times_as_the_c_library_does(void **state)
{
    (void)state;

    for (time_t when = -7258118400; when < 7258118400; when += 86399 * 11) {
        struct tm ours, theirs;

        clock_utc(when, &ours);
        assert_non_null(gmtime_r(&when, &theirs));
        assert_int_equal(ours.tm_year, theirs.tm_year);
        assert_int_equal(ours.tm_mon, theirs.tm_mon);
        assert_int_equal(ours.tm_mday, theirs.tm_mday);
        assert_int_equal(ours.tm_hour, theirs.tm_hour);
        assert_int_equal(ours.tm_min, theirs.tm_min);
        assert_int_equal(ours.tm_sec, theirs.tm_sec);
        assert_int_equal(ours.tm_wday, theirs.tm_wday);
    }
}

static void the_date_of_now_is_now(void **state)
{
    struct span text = clock_http_now();
    time_t seconds = 0;
    (void)state;

    assert_int_equal(text.size, CLOCK_HTTP_DATE);
    assert_true(clock_parse_http_date(text, &seconds));
    assert_in_range(time(NULL) - seconds, 0, 2);
    assert_in_range(clock_wall_ms() / 1000 - (uint64_t)seconds, 0, 2);
}

static void monotonic_time_does_not_go_back_and_its_units_agree(void **state)
{
    uint64_t before_ms = clock_ms();
    uint64_t now_us = clock_us();
    uint64_t after_ms = clock_ms();
    (void)state;

    assert_true(before_ms <= now_us / 1000);
    assert_true(now_us / 1000 <= after_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_three_forms_of_the_rfc),
        cmocka_unit_test(a_short_year_lies_at_most_fifty_years_ahead),
        cmocka_unit_test(leap_days_and_leap_seconds_are_read),
        cmocka_unit_test(refuses_what_is_no_date),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(splits_times_as_the_c_library_does),
        cmocka_unit_test(the_date_of_now_is_now),
        cmocka_unit_test(monotonic_time_does_not_go_back_and_its_units_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

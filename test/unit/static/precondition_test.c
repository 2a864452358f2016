/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/precondition.c"

#include <stdlib.h>

/* The file was changed on 1 Jun 2026 10:00:00 UTC. */
enum { MODIFIED = 1780308000 };

#define BEFORE "Mon, 01 Jun 2026 09:59:59 GMT"
#define SAME   "Mon, 01 Jun 2026 10:00:00 GMT"
#define AFTER  "Mon, 01 Jun 2026 10:00:01 GMT"

static struct arena arena;
static struct fields fields;
static struct validators file;

static int setup(void **state)
{
    (void)state;
    fields_init(&fields, &arena);
    file = (struct validators){.etag = SPAN("\"v1\""), .modified = MODIFIED};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static void give(enum field_id id, const char *value)
{
    assert_int_equal(fields_add_id(&fields, id, span_of(value)), 0);
}

static enum precondition_answer check(enum field_id id, const char *value)
{
    fields.size = 0;
    give(id, value);
    return precondition_check(&fields, &file);
}

static void a_plain_request_passes(void **state)
{
    (void)state;
    assert_int_equal(precondition_check(&fields, &file), PRECONDITION_PASS);
}

static void if_none_match_knows_the_version_by_weak_comparison(void **state)
{
    static const char *const known[] = {"\"v1\"",        "W/\"v1\"",        "*",
                                        "\"a\", \"v1\"", "\"a\",W/\"v1\" ", "junk, \"v1\"",
                                        ",, \"v1\"",     "\"x,y\", \"v1\""};
    static const char *const unknown[] = {"\"v2\"", "v1", "w/\"v1\"", "\"v1",
                                          "\"V1\"", "",   ",",        "\"x\"\"v1\"x"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        assert_int_equal(check(FIELD_ID_IF_NONE_MATCH, known[i]), PRECONDITION_NOT_MODIFIED);
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        assert_int_equal(check(FIELD_ID_IF_NONE_MATCH, unknown[i]), PRECONDITION_PASS);
}

static void a_list_may_be_spread_over_fields(void **state)
{
    (void)state;
    give(FIELD_ID_IF_NONE_MATCH, "\"a\"");
    give(FIELD_ID_IF_NONE_MATCH, "\"v1\"");
    assert_int_equal(precondition_check(&fields, &file), PRECONDITION_NOT_MODIFIED);
}

static void if_match_wants_the_very_bytes(void **state)
{
    (void)state;
    assert_int_equal(check(FIELD_ID_IF_MATCH, "\"v1\""), PRECONDITION_PASS);
    assert_int_equal(check(FIELD_ID_IF_MATCH, "\"v0\", \"v1\""), PRECONDITION_PASS);
    assert_int_equal(check(FIELD_ID_IF_MATCH, "*"), PRECONDITION_PASS);
    assert_int_equal(check(FIELD_ID_IF_MATCH, "W/\"v1\""), PRECONDITION_FAILED);
    assert_int_equal(check(FIELD_ID_IF_MATCH, "\"v2\""), PRECONDITION_FAILED);
    assert_int_equal(check(FIELD_ID_IF_MATCH, "nonsense"), PRECONDITION_FAILED);
}

static void dates_are_compared_by_the_second(void **state)
{
    (void)state;
    assert_int_equal(check(FIELD_ID_IF_MODIFIED_SINCE, BEFORE), PRECONDITION_PASS);
    assert_int_equal(check(FIELD_ID_IF_MODIFIED_SINCE, SAME), PRECONDITION_NOT_MODIFIED);
    assert_int_equal(check(FIELD_ID_IF_MODIFIED_SINCE, AFTER), PRECONDITION_NOT_MODIFIED);
    assert_int_equal(check(FIELD_ID_IF_UNMODIFIED_SINCE, BEFORE), PRECONDITION_FAILED);
    assert_int_equal(check(FIELD_ID_IF_UNMODIFIED_SINCE, SAME), PRECONDITION_PASS);
    assert_int_equal(check(FIELD_ID_IF_UNMODIFIED_SINCE, AFTER), PRECONDITION_PASS);
}

static void a_date_that_is_none_or_stands_twice_is_ignored(void **state)
{
    (void)state;
    assert_int_equal(check(FIELD_ID_IF_MODIFIED_SINCE, "yesterday"), PRECONDITION_PASS);
    assert_int_equal(check(FIELD_ID_IF_UNMODIFIED_SINCE, "0"), PRECONDITION_PASS);
    fields.size = 0;
    give(FIELD_ID_IF_MODIFIED_SINCE, SAME);
    give(FIELD_ID_IF_MODIFIED_SINCE, SAME);
    assert_int_equal(precondition_check(&fields, &file), PRECONDITION_PASS);
}

static void tags_win_over_dates(void **state)
{
    (void)state;
    give(FIELD_ID_IF_NONE_MATCH, "\"other\"");
    give(FIELD_ID_IF_MODIFIED_SINCE, AFTER);
    assert_int_equal(precondition_check(&fields, &file), PRECONDITION_PASS);
    fields.size = 0;
    give(FIELD_ID_IF_MATCH, "\"v1\"");
    give(FIELD_ID_IF_UNMODIFIED_SINCE, BEFORE);
    assert_int_equal(precondition_check(&fields, &file), PRECONDITION_PASS);
}

static void what_must_match_comes_before_what_must_not(void **state)
{
    (void)state;
    give(FIELD_ID_IF_NONE_MATCH, "\"v1\"");
    give(FIELD_ID_IF_MATCH, "\"v2\"");
    assert_int_equal(precondition_check(&fields, &file), PRECONDITION_FAILED);
}

static void a_date_that_two_versions_share_tells_nothing(void **state)
{
    (void)state;
    file.date_is_shared = true;
    assert_int_equal(check(FIELD_ID_IF_MODIFIED_SINCE, SAME), PRECONDITION_PASS);
    assert_int_equal(check(FIELD_ID_IF_MODIFIED_SINCE, AFTER), PRECONDITION_NOT_MODIFIED);
    fields.size = 0;
    give(FIELD_ID_IF_RANGE, SAME);
    assert_false(precondition_range_counts(&fields, &file));
}

static bool range_counts(const char *value)
{
    fields.size = 0;
    give(FIELD_ID_IF_RANGE, value);
    return precondition_range_counts(&fields, &file);
}

static void a_range_counts_only_for_exactly_this_version(void **state)
{
    (void)state;
    assert_true(precondition_range_counts(&fields, &file));
    assert_true(range_counts("\"v1\""));
    assert_true(range_counts(SAME));
    assert_false(range_counts("\"v2\""));
    assert_false(range_counts("W/\"v1\""));
    assert_false(range_counts("\"v1\", \"v2\""));
    assert_false(range_counts(BEFORE));
    assert_false(range_counts(AFTER));
    assert_false(range_counts("*"));
    give(FIELD_ID_IF_RANGE, "\"v1\"");
    assert_false(precondition_range_counts(&fields, &file));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plain_request_passes),
        TEST(if_none_match_knows_the_version_by_weak_comparison),
        TEST(a_list_may_be_spread_over_fields),
        TEST(if_match_wants_the_very_bytes),
        TEST(dates_are_compared_by_the_second),
        TEST(a_date_that_is_none_or_stands_twice_is_ignored),
        TEST(tags_win_over_dates),
        TEST(what_must_match_comes_before_what_must_not),
        TEST(a_date_that_two_versions_share_tells_nothing),
        TEST(a_range_counts_only_for_exactly_this_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

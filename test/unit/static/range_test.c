/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/range.c"

#include "base/base.h"

static struct range parts[RANGE_MAX];
static unsigned count;

static enum range_answer parse(const char *value, uint64_t length)
{
    count = 0;
    return range_parse(span_of(value), length, parts, &count);
}

static void assert_one(const char *value, uint64_t length, uint64_t first, uint64_t size)
{
    assert_int_equal(parse(value, length), RANGE_PARTS);
    assert_int_equal(count, 1);
    assert_int_equal(parts[0].first, first);
    assert_int_equal(parts[0].size, size);
}

static void reads_the_three_forms(void **state)
{
    (void)state;
    assert_one("bytes=0-0", 100, 0, 1);
    assert_one("bytes=10-19", 100, 10, 10);
    assert_one("bytes=90-", 100, 90, 10);
    assert_one("bytes=-7", 100, 93, 7);
}

static void an_end_behind_the_file_is_its_last_byte(void **state)
{
    (void)state;
    assert_one("bytes=50-1000", 100, 50, 50);
    assert_one("bytes=-1000", 100, 0, 100);
    assert_one("bytes=50-99999999999999999999999", 100, 50, 50);
    assert_one("bytes=-99999999999999999999999", 100, 0, 100);
}

static void keeps_several_in_the_order_asked_for(void **state)
{
    (void)state;
    assert_int_equal(parse("bytes=90-99, 0-9 ,,-5", 100), RANGE_PARTS);
    assert_int_equal(count, 3);
    assert_int_equal(parts[0].first, 90);
    assert_int_equal(parts[1].first, 0);
    assert_int_equal(parts[2].first, 95);
}

static void leaves_out_those_behind_the_end(void **state)
{
    (void)state;
    assert_one("bytes=100-200,0-4", 100, 0, 5);
}

static void none_inside_is_unsatisfiable(void **state)
{
    (void)state;
    assert_int_equal(parse("bytes=100-", 100), RANGE_NONE);
    assert_int_equal(parse("bytes=100-200,300-", 100), RANGE_NONE);
    assert_int_equal(parse("bytes=-0", 100), RANGE_NONE);
    assert_int_equal(parse("bytes=0-", 0), RANGE_NONE);
    assert_int_equal(parse("bytes=99999999999999999999999-", 100), RANGE_NONE);
}

static void all_of_an_empty_file_is_the_whole_file(void **state)
{
    (void)state;
    assert_int_equal(parse("bytes=-5", 0), RANGE_WHOLE);
}

static void what_is_no_range_is_ignored(void **state)
{
    static const char *const values[] = {
        "",           "bytes",       "bytes=",     "bytes=,",     "bytes=-",     "bytes=5",
        "bytes=9-5",  "bytes=a-b",   "bytes=1-2-", "bytes=1--2",  "bytes=0-1 2", "bytes = 0-1",
        "chars=0-10", "bytes=0x1-2", "bytes=+1-2", "bytes=0-4,x", "bytes=--5",   "items=0-1"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        assert_int_equal(parse(values[i], 100), RANGE_WHOLE);
}

static void the_unit_may_be_written_in_any_case(void **state)
{
    (void)state;
    assert_one("Bytes=0-1", 100, 0, 2);
}

static void more_bytes_than_the_file_has_are_not_sent_in_parts(void **state)
{
    (void)state;
    assert_int_equal(parse("bytes=0-,0-", 100), RANGE_WHOLE);
    assert_int_equal(parse("bytes=0-59,40-99", 100), RANGE_WHOLE);
    assert_int_equal(parse("bytes=0-49,50-99", 100), RANGE_PARTS);
}

static void too_many_parts_are_not_sent_in_parts(void **state)
{
    char value[256] = "bytes=0-0";
    (void)state;

    for (unsigned i = 1; i < RANGE_MAX; i++)
        strncat(value, ",1-1", sizeof(value) - strlen(value) - 1);
    assert_int_equal(parse(value, 100), RANGE_PARTS);
    assert_int_equal(count, RANGE_MAX);
    strncat(value, ",2-2", sizeof(value) - strlen(value) - 1);
    assert_int_equal(parse(value, 100), RANGE_WHOLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_three_forms),
        cmocka_unit_test(an_end_behind_the_file_is_its_last_byte),
        cmocka_unit_test(keeps_several_in_the_order_asked_for),
        cmocka_unit_test(leaves_out_those_behind_the_end),
        cmocka_unit_test(none_inside_is_unsatisfiable),
        cmocka_unit_test(all_of_an_empty_file_is_the_whole_file),
        cmocka_unit_test(what_is_no_range_is_ignored),
        cmocka_unit_test(the_unit_may_be_written_in_any_case),
        cmocka_unit_test(more_bytes_than_the_file_has_are_not_sent_in_parts),
        cmocka_unit_test(too_many_parts_are_not_sent_in_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

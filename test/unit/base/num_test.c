/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/num.c"

/* The value as read by the function, or 999 when it refuses. */
static uint64_t read_by(bool (*read)(struct span, uint64_t *), const char *text)
{
    uint64_t value = 999;

    return read(span_of(text), &value) ? value : (assert_int_equal(value, 999), 999);
}

static void refuses_what_is_not_all_digits(void **state)
{
    const char *texts[] = {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "a", "1a", "1_0", "\xb2"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_int_equal(read_by(num_decimal, texts[i]), 999);
    assert_int_equal(read_by(num_decimal, "0"), 0);
    assert_int_equal(read_by(num_decimal, "0042"), 42);
}

static void reads_up_to_the_largest_number_and_not_beyond(void **state)
{
    (void)state;

    assert_true(read_by(num_decimal, "18446744073709551615") == UINT64_MAX);
    assert_int_equal(read_by(num_decimal, "18446744073709551616"), 999);
    assert_int_equal(read_by(num_decimal, "99999999999999999999"), 999);
    assert_true(read_by(num_hex, "ffffFFFFffffFFFF") == UINT64_MAX);
    assert_int_equal(read_by(num_hex, "10000000000000000"), 999);
}

static void reads_hexadecimal_of_either_case(void **state)
{
    (void)state;

    assert_int_equal(read_by(num_hex, "aF9"), 0xaf9);
    assert_int_equal(read_by(num_hex, "0x10"), 999);
    assert_int_equal(read_by(num_hex, "g"), 999);
    assert_int_equal(read_by(num_hex, ""), 999);
}

static void sizes_have_powers_of_1024(void **state)
{
    (void)state;

    assert_int_equal(read_by(num_size, "65536"), 65536);
    assert_int_equal(read_by(num_size, "64k"), 65536);
    assert_int_equal(read_by(num_size, "10M"), 10 * 1024 * 1024);
    assert_true(read_by(num_size, "2g") == 2ull << 30);
    assert_int_equal(read_by(num_size, "k"), 999);
    assert_int_equal(read_by(num_size, "1kb"), 999);
    assert_int_equal(read_by(num_size, "1 k"), 999);
    assert_int_equal(read_by(num_size, "17179869184g"), 999);
}

static void times_are_seconds_unless_they_say_otherwise(void **state)
{
    (void)state;

    assert_int_equal(read_by(num_time, "250ms"), 250);
    assert_int_equal(read_by(num_time, "30s"), 30000);
    assert_int_equal(read_by(num_time, "30"), 30000);
    assert_int_equal(read_by(num_time, "5m"), 300000);
    assert_int_equal(read_by(num_time, "1h"), 3600000);
    assert_int_equal(read_by(num_time, "1d"), 999);
    assert_int_equal(read_by(num_time, "ms"), 999);
    assert_int_equal(read_by(num_time, "18446744073709551615s"), 999);
}

static void ranges_have_one_end_or_two_in_order(void **state)
{
    uint32_t low = 7, high = 7;
    (void)state;

    assert_true(num_range(span_of("3"), &low, &high));
    assert_int_equal(low, 3);
    assert_int_equal(high, 3);
    assert_true(num_range(span_of("0..6"), &low, &high));
    assert_int_equal(low, 0);
    assert_int_equal(high, 6);
    assert_false(num_range(span_of("6..2"), &low, &high));
    assert_false(num_range(span_of("1.2"), &low, &high));
    assert_false(num_range(span_of("1..."), &low, &high));
    assert_false(num_range(span_of("1..2..3"), &low, &high));
    assert_false(num_range(span_of(".."), &low, &high));
    assert_false(num_range(span_of("4294967296"), &low, &high));
    assert_int_equal(low, 0);
    assert_int_equal(high, 6);
}

static void modes_are_octal(void **state)
{
    uint32_t mode = 1;
    (void)state;

    assert_true(num_mode(span_of("0660"), &mode));
    assert_int_equal(mode, 0660);
    assert_true(num_mode(span_of("7777"), &mode));
    assert_int_equal(mode, 07777);
    assert_false(num_mode(span_of("10000"), &mode));
    assert_false(num_mode(span_of("0680"), &mode));
    assert_false(num_mode(span_of(""), &mode));
}

static void formats_what_it_reads(void **state)
{
    char out[20];
    (void)state;

    assert_true(span_is(span_make(out, num_format(0, out)), "0"));
    assert_true(span_is(span_make(out, num_format(4711, out)), "4711"));
    assert_true(span_is(span_make(out, num_format(UINT64_MAX, out)), "18446744073709551615"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_not_all_digits),
        cmocka_unit_test(reads_up_to_the_largest_number_and_not_beyond),
        cmocka_unit_test(reads_hexadecimal_of_either_case),
        cmocka_unit_test(sizes_have_powers_of_1024),
        cmocka_unit_test(times_are_seconds_unless_they_say_otherwise),
        cmocka_unit_test(ranges_have_one_end_or_two_in_order),
        cmocka_unit_test(modes_are_octal),
        cmocka_unit_test(formats_what_it_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

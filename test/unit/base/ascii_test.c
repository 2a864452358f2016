/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ascii.c"

#include <ctype.h>

static void letters_and_digits_are_those_of_the_c_locale(void **state)
{
    (void)state;

    for (int i = 0; i < 128; i++) {
        assert_int_equal(ascii_is((char)i, ASCII_DIGIT), isdigit(i) != 0);
        assert_int_equal(ascii_is((char)i, ASCII_HEX), isxdigit(i) != 0);
        assert_int_equal(ascii_is((char)i, ASCII_ALPHA), isalpha(i) != 0);
        assert_int_equal(ascii_lower((char)i), tolower(i));
        assert_int_equal(ascii_upper((char)i), toupper(i));
    }
}

static void tokens_are_made_of_the_bytes_rfc_9110_lists(void **state)
{
    (void)state;

    for (int i = 1; i < 256; i++) {
        bool is_listed = i < 128 && (isalnum(i) || strchr("!#$%&'*+-.^_`|~", i));

        assert_int_equal(ascii_is((char)i, ASCII_TOKEN), is_listed);
    }
    assert_false(ascii_is('\0', ASCII_TOKEN));
}

static void values_may_hold_tabs_and_high_bytes_and_targets_no_blanks(void **state)
{
    (void)state;

    for (int i = 0; i < 256; i++) {
        bool is_visible = (i > 32 && i < 127) || i >= 128;

        assert_int_equal(ascii_is((char)i, ASCII_VALUE), is_visible || i == ' ' || i == '\t');
        assert_int_equal(ascii_is((char)i, ASCII_TARGET), is_visible);
    }
}

static void bytes_beyond_ascii_have_no_class_of_letters(void **state)
{
    (void)state;

    for (int i = 128; i < 256; i++) {
        assert_false(ascii_is((char)i, ASCII_ALPHA | ASCII_DIGIT | ASCII_HEX | ASCII_TOKEN));
        assert_int_equal(ascii_lower((char)i), (char)i);
        assert_int_equal(ascii_hex((char)i), -1);
    }
}

static void hexadecimal_digits_have_their_value(void **state)
{
    const char digits[] = "0123456789abcdef";
    (void)state;

    for (int i = 0; i < 16; i++) {
        assert_int_equal(ascii_hex(digits[i]), i);
        assert_int_equal(ascii_hex(ascii_upper(digits[i])), i);
    }
    assert_int_equal(ascii_hex('g'), -1);
    assert_int_equal(ascii_hex(' '), -1);
}

static void all_of_a_class_needs_at_least_one_byte(void **state)
{
    (void)state;

    assert_true(ascii_all(span_of("123"), ASCII_DIGIT));
    assert_true(ascii_all(span_of("a1"), ASCII_DIGIT | ASCII_ALPHA));
    assert_false(ascii_all(span_of("12a"), ASCII_DIGIT));
    assert_false(ascii_all(span_of(""), ASCII_DIGIT));
}

static void folds_letters_only(void **state)
{
    (void)state;

    assert_true(ascii_equal_fold(span_of("Keep-Alive"), span_of("kEEP-aLIVE")));
    assert_false(ascii_equal_fold(span_of("@"), span_of("`")));
    assert_false(ascii_equal_fold(span_of("[]"), span_of("{}")));
    assert_false(ascii_equal_fold(span_of("a"), span_of("ab")));
}

static void lists_are_searched_by_whole_members(void **state)
{
    struct span list = span_of("keep-alive ,\tUpgrade,, x-close");
    (void)state;

    assert_true(ascii_list_has(list, span_of("upgrade")));
    assert_true(ascii_list_has(list, span_of("keep-alive")));
    assert_false(ascii_list_has(list, span_of("close")));
    assert_false(ascii_list_has(span_of(""), span_of("close")));
    assert_false(ascii_list_has((struct span){NULL, 0}, span_of("close")));
}

static void distance_counts_changed_missing_and_added_letters(void **state)
{
    char text[100] = {0};
    (void)state;

    assert_int_equal(ascii_distance(span_of("workers"), span_of("workers")), 0);
    assert_int_equal(ascii_distance(span_of("worker"), span_of("workers")), 1);
    assert_int_equal(ascii_distance(span_of("wrokers"), span_of("workers")), 2);
    assert_int_equal(ascii_distance(span_of("kitten"), span_of("sitting")), 3);
    assert_int_equal(ascii_distance(span_of(""), span_of("abc")), 3);
    assert_int_equal(ascii_distance(span_make(text, 63), span_make(text, 62)), 1);
    assert_true(ascii_distance(span_make(text, 64), span_of("a")) > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_and_digits_are_those_of_the_c_locale),
        cmocka_unit_test(tokens_are_made_of_the_bytes_rfc_9110_lists),
        cmocka_unit_test(values_may_hold_tabs_and_high_bytes_and_targets_no_blanks),
        cmocka_unit_test(bytes_beyond_ascii_have_no_class_of_letters),
        cmocka_unit_test(hexadecimal_digits_have_their_value),
        cmocka_unit_test(all_of_a_class_needs_at_least_one_byte),
        cmocka_unit_test(folds_letters_only),
        cmocka_unit_test(lists_are_searched_by_whole_members),
        cmocka_unit_test(distance_counts_changed_missing_and_added_letters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

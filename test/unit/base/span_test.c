/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/span.c"

static void finds_the_first_and_the_last_byte_or_gives_the_size(void **state)
{
    struct span text = span_of("a.b.c");
    (void)state;

    assert_int_equal(span_find(text, '.'), 1);
    assert_int_equal(span_find_last(text, '.'), 3);
    assert_int_equal(span_find(text, '/'), 5);
    assert_int_equal(span_find_last(text, '/'), 5);
    assert_int_equal(span_find((struct span){NULL, 0}, '/'), 0);
    assert_int_equal(span_find_last((struct span){NULL, 0}, '/'), 0);
}

static void skips_and_takes_no_more_than_there_is(void **state)
{
    struct span text = span_of("abc");
    (void)state;

    assert_true(span_is(span_skip(text, 1), "bc"));
    assert_true(span_is(span_skip(text, 9), ""));
    assert_true(span_is(span_first(text, 2), "ab"));
    assert_true(span_is(span_first(text, 9), "abc"));
    assert_null(span_skip((struct span){NULL, 0}, 2).data);
}

static void splits_into_all_parts_also_empty_ones(void **state)
{
    struct span rest = span_of("a,,b,");
    const char *parts[] = {"a", "", "b", ""};
    size_t count = 0;
    (void)state;

    while (rest.data) {
        assert_true(count < 4);
        assert_true(span_is(span_split(&rest, ','), parts[count++]));
    }
    assert_int_equal(count, 4);
}

static void an_empty_text_is_one_empty_part_and_no_text_is_none(void **state)
{
    struct span empty = span_of("");
    struct span none = {NULL, 0};
    (void)state;

    assert_int_equal(span_split(&empty, ',').size, 0);
    assert_null(empty.data);
    assert_null(span_split(&none, ',').data);
}

static void trims_spaces_and_tabs_only(void **state)
{
    (void)state;

    assert_true(span_is(span_trim(span_of(" \t a b\t ")), "a b"));
    assert_true(span_is(span_trim(span_of(" \t ")), ""));
    assert_true(span_is(span_trim(span_of("\na\r")), "\na\r"));
    assert_int_equal(span_trim((struct span){NULL, 0}).size, 0);
}

static void compares_bytes_as_unsigned_with_the_shorter_first(void **state)
{
    (void)state;

    assert_true(span_compare(span_of("a"), span_of("b")) < 0);
    assert_true(span_compare(span_of("\xff"), span_of("b")) > 0);
    assert_true(span_compare(span_of("ab"), span_of("abc")) < 0);
    assert_true(span_compare(span_of("abc"), span_of("ab")) > 0);
    assert_int_equal(span_compare(span_of("abc"), span_of("abc")), 0);
    assert_int_equal(span_compare((struct span){NULL, 0}, span_of("")), 0);
}

static void equality_and_ends_look_at_all_bytes(void **state)
{
    (void)state;

    assert_true(span_equal(span_make("a\0b", 3), span_make("a\0b", 3)));
    assert_false(span_equal(span_make("a\0b", 3), span_make("a\0c", 3)));
    assert_true(span_starts_with(span_of("leat.yml"), span_of("leat")));
    assert_false(span_starts_with(span_of("le"), span_of("leat")));
    assert_true(span_ends_with(span_of("leat.yml"), span_of(".yml")));
    assert_false(span_ends_with(span_of("yml"), span_of(".yml")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_first_and_the_last_byte_or_gives_the_size),
        cmocka_unit_test(skips_and_takes_no_more_than_there_is),
        cmocka_unit_test(splits_into_all_parts_also_empty_ones),
        cmocka_unit_test(an_empty_text_is_one_empty_part_and_no_text_is_none),
        cmocka_unit_test(trims_spaces_and_tabs_only),
        cmocka_unit_test(compares_bytes_as_unsigned_with_the_shorter_first),
        cmocka_unit_test(equality_and_ends_look_at_all_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

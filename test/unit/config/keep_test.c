/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/keep.c"

static void an_array_grows_one_by_one_and_keeps_its_items(void **state)
{
    struct arena arena = {0};
    int *items = NULL;
    (void)state;

    for (size_t i = 0; i < 1000; i++) {
        items = keep_grow(&arena, items, i, sizeof(items[0]));
        assert_int_equal(items[i], 0);
        items[i] = (int)i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    arena_done(&arena);
}

static void text_is_copied_and_ends_in_a_nul(void **state)
{
    struct arena arena = {0};
    (void)state;

    assert_string_equal(keep_text(&arena, span_make("abcdef", 3)), "abc");
    assert_string_equal(keep_text(&arena, span_make(NULL, 0)), "");
    assert_string_equal(keep_printf(&arena, "%s-%d", "a", 7), "a-7");
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_grows_one_by_one_and_keeps_its_items),
        cmocka_unit_test(text_is_copied_and_ends_in_a_nul),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

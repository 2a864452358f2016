/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/request_id.c"

#include "base/base.h"

static void an_id_of_letters_digits_and_three_signs_is_kept(void **state)
{
    static const char *const bad[] = {"",    "a b", "a\r\nb",      "a\"b",
                                      "a/b", "a.b", "caf\xc3\xa9", "<a>"};
    char longest[REQUEST_ID_MAX + 1];
    (void)state;

    memset(longest, 'a', sizeof(longest));
    assert_true(request_id_is_valid(span_of("aZ09-_@")));
    assert_true(request_id_is_valid(span_make(longest, REQUEST_ID_MAX)));
    assert_false(request_id_is_valid(span_make(longest, REQUEST_ID_MAX + 1)));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(request_id_is_valid(span_of(bad[i])));
}

static void a_made_id_is_32_digits_and_never_twice_the_same(void **state)
{
    struct request_ids ids, others;
    char first[REQUEST_ID_SIZE], second[REQUEST_ID_SIZE], third[REQUEST_ID_SIZE];
    (void)state;

    request_ids_init(&ids);
    request_ids_init(&others);
    request_id_make(&ids, first);
    request_id_make(&ids, second);
    request_id_make(&others, third);
    assert_true(ascii_all(span_make(first, sizeof(first)), ASCII_HEX));
    assert_memory_not_equal(first, second, sizeof(first));
    assert_memory_not_equal(first, third, sizeof(first));
}

static void an_invalid_id_is_replaced(void **state)
{
    struct request_ids ids;
    struct arena arena = {0};
    struct span chosen;
    (void)state;

    request_ids_init(&ids);
    assert_true(span_is(request_id_choose(&ids, span_of("mine-1"), &arena), "mine-1"));
    chosen = request_id_choose(&ids, span_of("not mine"), &arena);
    assert_int_equal(chosen.size, REQUEST_ID_SIZE);
    assert_true(request_id_is_valid(chosen));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_of_letters_digits_and_three_signs_is_kept),
        cmocka_unit_test(a_made_id_is_32_digits_and_never_twice_the_same),
        cmocka_unit_test(an_invalid_id_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/expand.c"

static char *environment[] = {(char[]){"PORT=80"}, (char[]){"EMPTY="}, (char[]){"PORTAL=x"}, NULL};

static struct arena arena;

static const char *expanded(const char *text)
{
    struct span result;
    const char *reason = expand(&arena, span_of(text), environment, &result);

    return reason ? reason : result.data;
}

static void names_are_replaced_wherever_they_stand(void **state)
{
    (void)state;

    assert_string_equal(expanded("${PORT}"), "80");
    assert_string_equal(expanded("a${PORT}b${PORTAL}c"), "a80bxc");
    arena_done(&arena);
}

static void a_default_stands_for_what_is_unset_or_empty(void **state)
{
    (void)state;

    assert_string_equal(expanded("${NONE:-a:b}"), "a:b");
    assert_string_equal(expanded("${EMPTY:-d}"), "d");
    assert_string_equal(expanded("${PORT:-d}"), "80");
    assert_string_equal(expanded("${NONE:-}"), "");
    arena_done(&arena);
}

static void unset_without_default_is_an_error(void **state)
{
    (void)state;

    assert_string_equal(expanded("${NONE}"),
                        "the environment variable NONE is not set and has no default");
    assert_string_equal(expanded("${EMPTY}"),
                        "the environment variable EMPTY is not set and has no default");
    arena_done(&arena);
}

static void a_doubled_dollar_is_literal_and_other_dollars_stay(void **state)
{
    (void)state;

    assert_string_equal(expanded("$${PORT}"), "${PORT}");
    assert_string_equal(expanded("$PORT $ $$ ${PORT}"), "$PORT $ $$ 80");
    assert_false(expand_is_needed(span_of("thin -p $PORT")));
    assert_true(expand_is_needed(span_of("x${PORT}")));
    arena_done(&arena);
}

static void broken_forms_are_named(void **state)
{
    (void)state;

    assert_string_equal(expanded("${PORT"), "${ without its }");
    assert_string_equal(expanded("${}"), "${} is neither ${NAME} nor ${NAME:-default}");
    assert_string_equal(expanded("${1A}"), "${1A} is neither ${NAME} nor ${NAME:-default}");
    assert_string_equal(expanded("${A:=b}"), "${A:=b} is neither ${NAME} nor ${NAME:-default}");
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_replaced_wherever_they_stand),
        cmocka_unit_test(a_default_stands_for_what_is_unset_or_empty),
        cmocka_unit_test(unset_without_default_is_an_error),
        cmocka_unit_test(a_doubled_dollar_is_literal_and_other_dollars_stay),
        cmocka_unit_test(broken_forms_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

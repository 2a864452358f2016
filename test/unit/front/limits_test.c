/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/limits.c"

static void below_the_limit_everybody_comes_in(void **state)
{
    (void)state;

    assert_int_equal(limits_judge(9, 10, false), LIMITS_TAKE);
    assert_int_equal(limits_judge(1000000, 0, false), LIMITS_TAKE);
}

static void at_the_limit_idle_ones_make_room_or_nobody_does(void **state)
{
    (void)state;

    assert_int_equal(limits_judge(10, 10, true), LIMITS_MAKE_ROOM);
    assert_int_equal(limits_judge(10, 10, false), LIMITS_REFUSE);
}

static void room_is_made_for_some_at_once_but_not_for_many(void **state)
{
    (void)state;

    assert_int_equal(limits_room(0), 1);
    assert_int_equal(limits_room(10), 1);
    assert_int_equal(limits_room(2560), 10);
    assert_int_equal(limits_room(1000000), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_the_limit_everybody_comes_in),
        cmocka_unit_test(at_the_limit_idle_ones_make_room_or_nobody_does),
        cmocka_unit_test(room_is_made_for_some_at_once_but_not_for_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

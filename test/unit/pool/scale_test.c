/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/scale.c"

static uint32_t wanted(uint32_t min, uint32_t fits, int32_t adjust)
{
    struct scale scale = {.min = min, .max = 6, .fits = fits, .adjust = adjust, .entries = 20};

    return scale_wanted(&scale);
}

static void a_pool_has_its_minimum(void **state)
{
    (void)state;
    assert_int_equal(wanted(2, UINT32_MAX, 0), 2);
}

static void a_pool_on_demand_has_no_worker_until_it_is_asked_for(void **state)
{
    struct scale scale = {.max = 6, .fits = UINT32_MAX, .entries = 20};

    (void)state;
    assert_int_equal(scale_wanted(&scale), 0);
    scale.demanded = true;
    assert_int_equal(scale_wanted(&scale), 1);
    scale.adjust = -1;
    assert_int_equal(scale_wanted(&scale), 1);
}

static void ttin_starts_a_pool_on_demand(void **state)
{
    (void)state;
    assert_int_equal(wanted(0, UINT32_MAX, 1), 1);
    assert_int_equal(wanted(0, UINT32_MAX, -1), 0);
}

static void memory_bounds_it(void **state)
{
    (void)state;
    assert_int_equal(wanted(4, 3, 0), 3);
}

static void ttin_and_ttou_move_it_between_one_and_half_of_the_table(void **state)
{
    (void)state;
    assert_int_equal(wanted(2, UINT32_MAX, 1), 3);
    assert_int_equal(wanted(2, UINT32_MAX, -1), 1);
    assert_int_equal(wanted(2, UINT32_MAX, -5), 1);
    assert_int_equal(wanted(2, UINT32_MAX, 50), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_has_its_minimum),
        cmocka_unit_test(a_pool_on_demand_has_no_worker_until_it_is_asked_for),
        cmocka_unit_test(ttin_starts_a_pool_on_demand),
        cmocka_unit_test(memory_bounds_it),
        cmocka_unit_test(ttin_and_ttou_move_it_between_one_and_half_of_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

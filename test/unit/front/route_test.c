/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/route.c"

#include "base/base.h"

static void files_come_before_the_pool_for_reading_only(void **state)
{
    struct site site = {.pool = 0, .has_root = true, .pulse = SPAN("/up")};
    (void)state;

    assert_int_equal(route_find(&site, METHOD_GET, span_of("/")), ROUTE_FILES_THEN_POOL);
    assert_int_equal(route_find(&site, METHOD_HEAD, span_of("/")), ROUTE_FILES_THEN_POOL);
    assert_int_equal(route_find(&site, METHOD_POST, span_of("/")), ROUTE_POOL);
    assert_int_equal(route_find(&site, METHOD_OTHER, span_of("/")), ROUTE_POOL);
    site.has_root = false;
    assert_int_equal(route_find(&site, METHOD_GET, span_of("/")), ROUTE_POOL);
}

static void the_pulse_is_the_fronts_own(void **state)
{
    struct site site = {.pool = 0, .has_root = true, .pulse = SPAN("/up")};
    (void)state;

    assert_int_equal(route_find(&site, METHOD_GET, span_of("/up")), ROUTE_PULSE);
    assert_int_equal(route_find(&site, METHOD_HEAD, span_of("/up")), ROUTE_PULSE);
    assert_int_equal(route_find(&site, METHOD_POST, span_of("/up")), ROUTE_POOL);
    assert_int_equal(route_find(&site, METHOD_GET, span_of("/up/")), ROUTE_FILES_THEN_POOL);
}

static void without_pool_there_are_files_or_nothing(void **state)
{
    struct site site = {.pool = SITE_NO_POOL, .has_root = true, .pulse = SPAN("/up")};
    (void)state;

    assert_int_equal(route_find(&site, METHOD_GET, span_of("/up")), ROUTE_FILES);
    assert_int_equal(route_find(&site, METHOD_POST, span_of("/")), ROUTE_NOT_ALLOWED);
    site.has_root = false;
    assert_int_equal(route_find(&site, METHOD_GET, span_of("/")), ROUTE_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_before_the_pool_for_reading_only),
        cmocka_unit_test(the_pulse_is_the_fronts_own),
        cmocka_unit_test(without_pool_there_are_files_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/route.c"

#include "base/base.h"

static void files_come_before_the_pool_for_reading_only(void **state)
{
    struct config_site config = {0};
    struct site site = {.config = &config, .pulse = SPAN("/up")};
    struct site_place place = {.pool = 0, .has_root = true};
    (void)state;

    assert_int_equal(route_find(&site, &place, METHOD_GET, span_of("/")), ROUTE_FILES_THEN_POOL);
    assert_int_equal(route_find(&site, &place, METHOD_HEAD, span_of("/")), ROUTE_FILES_THEN_POOL);
    assert_int_equal(route_find(&site, &place, METHOD_POST, span_of("/")), ROUTE_POOL);
    assert_int_equal(route_find(&site, &place, METHOD_OTHER, span_of("/")), ROUTE_POOL);
    place.has_root = false;
    assert_int_equal(route_find(&site, &place, METHOD_GET, span_of("/")), ROUTE_POOL);
}

static void the_pulse_is_the_fronts_own(void **state)
{
    struct config_site config = {0};
    struct site site = {.config = &config, .pulse = SPAN("/up")};
    struct site_place place = {.pool = 0, .has_root = true};
    (void)state;

    assert_int_equal(route_find(&site, &place, METHOD_GET, span_of("/up")), ROUTE_PULSE);
    assert_int_equal(route_find(&site, &place, METHOD_HEAD, span_of("/up")), ROUTE_PULSE);
    assert_int_equal(route_find(&site, &place, METHOD_POST, span_of("/up")), ROUTE_POOL);
    assert_int_equal(route_find(&site, &place, METHOD_GET, span_of("/up/")), ROUTE_FILES_THEN_POOL);
}

static void without_pool_there_are_files_or_nothing(void **state)
{
    struct config_site config = {0}, moved = {.redirect = "https://a"};
    struct site site = {.config = &config};
    struct site_place place = {.pool = SITE_NO_POOL, .has_root = true};
    (void)state;

    assert_int_equal(route_find(&site, &place, METHOD_GET, span_of("/up")), ROUTE_FILES);
    assert_int_equal(route_find(&site, &place, METHOD_POST, span_of("/")), ROUTE_NOT_ALLOWED);
    place.has_root = false;
    assert_int_equal(route_find(&site, &place, METHOD_GET, span_of("/")), ROUTE_NOT_FOUND);
    site.config = &moved;
    assert_int_equal(route_find(&site, &place, METHOD_POST, span_of("/")), ROUTE_REDIRECT);
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

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/bind_site.c"

#include "world.h"

static void expect_fault(const char *yaml, const char *fault)
{
    struct world world;

    world_open_app(&world, yaml);
    assert_null(world_load(&world));
    assert_string_equal(world_fault(&world, 0), fault);
    assert_int_equal(world.faults.size, 1);
    world_close(&world);
}

static void a_route_gets_every_value(void **state)
{
    struct world world;
    const struct config_route *route;
    (void)state;

    world_open_app(&world,
                   "pools: {shop: {}}\n"
                   "sites:\n"
                   "- {root: /, routes: {path: /blog/, pool: shop, root: pages, links: [/srv], "
                   "serve: [.rb]}}\n");
    world_write(&world, "pages/", "");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->sites[0].route_size, 1);
    route = &world.config->sites[0].routes[0];
    assert_string_equal(route->path, "/blog");
    assert_ptr_equal(route->pool, world.config->pools[0]);
    assert_string_equal(route->root + strlen(world.folder), "/pages");
    assert_string_equal(route->links.items[0], "/srv");
    assert_string_equal(route->serve.items[0], ".rb");
    world_close(&world);
}

static void a_route_needs_a_path(void **state)
{
    (void)state;

    expect_fault("sites: [{root: /, routes: [{root: /}]}]",
                 "leat.yml:1:28: sites[0].routes[0]: a route needs a path such as /blog");
    expect_fault("sites: [{root: /, routes: [{path: /, root: /}]}]",
                 "leat.yml:1:28: sites[0].routes[0]: a route needs a path such as /blog");
    expect_fault("sites: [{root: /, routes: [/blog]}]",
                 "leat.yml:1:28: sites[0].routes[0]: expected a map");
}

static void a_redirect_is_an_address_or_a_map(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "sites:\n"
                           "- {host: a, redirect: 'https://b'}\n"
                           "- {host: c, redirect: {to: 'http://d/x', status: 301}}\n");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->sites[0].redirect, "https://b");
    assert_int_equal(world.config->sites[0].redirect_status, 308);
    assert_null(world.config->sites[0].pool);
    assert_string_equal(world.config->sites[1].redirect, "http://d/x");
    assert_int_equal(world.config->sites[1].redirect_status, 301);
    world_close(&world);
}

static void a_redirect_that_leads_nowhere_is_refused(void **state)
{
    (void)state;

    expect_fault("sites: [{redirect: {to: 'http://a', status: 304}}]",
                 "leat.yml:1:20: sites[0].redirect: expected the status 301, 302, 303, 307 or 308");
    expect_fault(
        "sites: [{redirect: example.com}]",
        "leat.yml:1:20: sites[0].redirect: expected an address such as https://example.com");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_gets_every_value),
        cmocka_unit_test(a_route_needs_a_path),
        cmocka_unit_test(a_redirect_is_an_address_or_a_map),
        cmocka_unit_test(a_redirect_that_leads_nowhere_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

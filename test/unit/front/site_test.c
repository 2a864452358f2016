/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/site.c"

#include "base/base.h"

static struct config_pool pools[1] = {{.name = "app", .app = "/srv/app"}};

static uint32_t find_pool(void *data, const struct config_pool *pool)
{
    (void)data;
    return (uint32_t)(pool - pools);
}

static void exact_wins_over_wildcard_and_that_over_none(void **state)
{
    const char *exact[] = {"shop.example.com", "www.example.com"}, *wild[] = {"*.example.com"};
    const char *deeper[] = {"*.apps.example.com"};
    struct config_site sites[] = {
        {.root = "/rest"},
        {.hosts = {wild, 1}},
        {.hosts = {deeper, 1}},
        {.hosts = {exact, 2}, .pool = &pools[0], .pulse = "/up"},
    };
    struct config config = {.sites = sites, .site_size = ARRAY_LEN(sites)};
    struct site_table table;
    (void)state;

    site_table_init(&table, &config, find_pool, NULL);
    assert_int_equal(site_find(&table, span_of("shop.example.com"))->number, 3);
    assert_int_equal(site_find(&table, span_of("www.example.com."))->number, 3);
    assert_int_equal(site_find(&table, span_of("other.example.com"))->number, 1);
    assert_int_equal(site_find(&table, span_of("a.b.example.com"))->number, 1);
    assert_int_equal(site_find(&table, span_of("x.apps.example.com"))->number, 2);
    assert_int_equal(site_find(&table, span_of("apps.example.com"))->number, 1);
    assert_int_equal(site_find(&table, span_of("example.com"))->number, 0);
    assert_int_equal(site_find(&table, span_of("notexample.com"))->number, 0);
    assert_int_equal(site_find(&table, span_of(""))->number, 0);
    assert_int_equal(site_find(&table, span_of("shop.example.com"))->whole.pool, 0);
    assert_int_equal(site_find(&table, span_of(""))->whole.pool, SITE_NO_POOL);
    site_table_done(&table);
}

static void the_longest_internal_prefix_wins(void **state)
{
    struct config_prefix prefixes[] = {{"/in/", "/a"}, {"/in/side/", "/b"}, {"/x/", "/c"}};
    struct config_site sites[] = {{.root = "/r", .internal = prefixes, .internal_size = 3}};
    struct config config = {.sites = sites, .site_size = 1};
    struct site_table table;
    const struct site *site;
    struct span name;
    (void)state;

    site_table_init(&table, &config, find_pool, NULL);
    site = site_find(&table, span_of("any"));
    assert_string_equal(site_find_internal(site, span_of("in/f"), &name)->root.folder, "/a");
    assert_true(span_is(name, "f"));
    assert_string_equal(site_find_internal(site, span_of("in/side/g/h"), &name)->root.folder, "/b");
    assert_true(span_is(name, "g/h"));
    assert_null(site_find_internal(site, span_of("in"), &name));
    assert_null(site_find_internal(site, span_of("inside/f"), &name));
    assert_null(site_find_internal(site, span_of(""), &name));
    site_table_done(&table);
}

static void without_a_site_for_every_host_a_strange_name_finds_none(void **state)
{
    const char *hosts[] = {"a.test"};
    struct config_site sites[] = {{.hosts = {hosts, 1}}};
    struct config config = {.sites = sites, .site_size = 1};
    struct site_table table;
    (void)state;

    site_table_init(&table, &config, find_pool, NULL);
    assert_null(site_find(&table, span_of("b.test")));
    assert_null(site_find(&table, span_of("")));
    assert_null(site_find(&table, span_of(".")));
    assert_non_null(site_find(&table, span_of("a.test")));
    site_table_done(&table);
}

static void a_pulse_is_found_by_its_path_alone_where_a_pool_is(void **state)
{
    const char *hosts[] = {"a.test"};
    struct config_site sites[] = {{.root = "/x"},
                                  {.hosts = {hosts, 1}, .pool = &pools[0], .pulse = "/own"},
                                  {.hosts = {hosts, 1}, .pool = &pools[0]},
                                  {.pool = &pools[0]}};
    struct config config = {.sites = sites, .site_size = 4, .pulse = "/all"};
    struct site_table table;
    (void)state;

    site_table_init(&table, &config, find_pool, NULL);
    assert_int_equal(site_find_pulse(&table, NULL, span_of("/own"))->number, 1);
    assert_int_equal(site_find_pulse(&table, NULL, span_of("/all"))->number, 2);
    assert_ptr_equal(site_find_pulse(&table, &table.sites[3], span_of("/all")), &table.sites[3]);
    assert_int_equal(site_find_pulse(&table, &table.sites[3], span_of("/own"))->number, 1);
    assert_null(site_find_pulse(&table, NULL, span_of("/other")));
    site_table_done(&table);
}

static void a_site_without_pool_redirects_folders(void **state)
{
    struct config_site sites[] = {{.root = "/files"}, {.root = "/public", .pool = &pools[0]}};
    struct config config = {.sites = sites, .site_size = 2, .file = "/etc/leat.yml"};
    struct site_table table;
    (void)state;

    site_table_init(&table, &config, find_pool, NULL);
    assert_true(table.sites[0].whole.root.directories);
    assert_false(table.sites[1].whole.root.directories);
    assert_string_equal(table.sites[1].whole.root.app, "/srv/app");
    assert_string_equal(table.sites[1].whole.root.never, "/etc/leat.yml");
    site_table_done(&table);
}

static void the_longest_route_of_whole_names_has_a_path(void **state)
{
    static const struct {
        const char *path;
        const char *place;
        size_t size;
    } cases[] = {
        {"/", "", 0},
        {"/blog", "/blog", 5},
        {"/blog/", "/blog", 5},
        {"/blogger", "", 0},
        {"/blog/admin", "/blog/admin", 11},
        {"/blog/adm", "/blog", 5},
        {"/%62log/x", "/blog", 7},
        {"/blog%2Fadmin", "", 0},
        {"/blo%", "", 0},
        {"/Blog", "", 0},
        {"*", "", 0},
    };
    struct config_route routes[] = {{.path = "/blog", .pool = &pools[0]},
                                    {.path = "/blog/admin", .root = "/admin"}};
    struct config_site sites[] = {{.root = "/files", .routes = routes, .route_size = 2}};
    struct config config = {.sites = sites, .site_size = 1};
    struct site_table table;
    (void)state;

    site_table_init(&table, &config, find_pool, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t size = 99;
        const struct site_place *place =
            site_find_place(&table.sites[0], span_of(cases[i].path), &size);

        assert_true(span_is(place->path, cases[i].place));
        assert_int_equal(size, cases[i].size);
    }
    assert_int_equal(table.sites[0].routes[0].pool, SITE_NO_POOL);
    assert_true(table.sites[0].routes[0].has_root);
    site_table_done(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_route_of_whole_names_has_a_path),
        cmocka_unit_test(exact_wins_over_wildcard_and_that_over_none),
        cmocka_unit_test(the_longest_internal_prefix_wins),
        cmocka_unit_test(without_a_site_for_every_host_a_strange_name_finds_none),
        cmocka_unit_test(a_pulse_is_found_by_its_path_alone_where_a_pool_is),
        cmocka_unit_test(a_site_without_pool_redirects_folders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

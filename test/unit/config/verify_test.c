/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/verify.c"

#include "world.h"

static void expect_fault(const char *yaml, const char *fault)
{
    struct world world;
    char expected[512];

    world_open_app(&world, yaml);
    assert_null(world_load(&world));
    (void)snprintf(expected, sizeof(expected), fault, world.folder);
    assert_string_equal(world_fault(&world, 0), expected);
    assert_int_equal(world.faults.size, 1);
    world_close(&world);
}

static void folders_and_files_must_be_there(void **state)
{
    (void)state;

    expect_fault("app: gone", "leat.yml:1:1: app: there is no folder %s/gone");
    expect_fault("rackup: gone.ru", "leat.yml:1:1: rackup: there is no file %s/gone.ru");
    expect_fault("root: gone", "leat.yml:1:1: root: there is no folder %s/gone");
    expect_fault("internal: {/x/: gone}",
                 "leat.yml:1:1: internal: /x/: there is no folder %s/gone");
    expect_fault("env_file: gone",
                 "leat.yml:1:1: env_file: cannot read %s/gone: No such file or directory");
    expect_fault("ruby: /no/ruby",
                 "leat.yml:1:1: ruby: cannot run /no/ruby: No such file or directory");
    expect_fault("pools: {a: {app: /tmp/}}",
                 "leat.yml:1:13: pools.a.app: no application in /tmp: looked for config.ru and "
                 "config/environment.rb");
}

static void users_and_groups_must_exist_or_be_numbers(void **state)
{
    struct world world;
    (void)state;

    expect_fault("user: nobody-here", "leat.yml:1:1: user: there is no user \"nobody-here\"");
    expect_fault("group: nobody-here", "leat.yml:1:1: group: there is no group \"nobody-here\"");
    expect_fault("pools: {a: {user: nobody-here}}",
                 "leat.yml:1:13: pools.a.user: there is no user \"nobody-here\"");
    expect_fault("listen: {address: 'unix:s', user: nobody-here}",
                 "leat.yml:1:19: listen: there is no user \"nobody-here\"");
    world_open_app(&world, "user: 12345\ngroup: 12345\n");
    assert_non_null(world_load(&world));
    world_close(&world);
}

static void limits_fit_into_each_other(void **state)
{
    (void)state;

    expect_fault("limits: {target: 128k, header: 64k}",
                 "leat.yml:1:10: limits.target: larger than limits.header, of which it is a part");
    expect_fault("limits: {field: 128k}",
                 "leat.yml:1:10: limits.field: larger than limits.header, of which it is a part");
    expect_fault("limits: {body: 5g}",
                 "leat.yml:1:10: limits.body: larger than limits.spool, which must hold it");
    expect_fault("pools: {a: {memory: 2g, memory_total: 1g}}\n",
                 "leat.yml:1:13: pools.a.memory: one worker may take more than memory_total allows "
                 "the pool");
}

static void workers_times_threads_have_a_ceiling(void **state)
{
    (void)state;

    expect_fault("workers: 1000\nthreads: 100\n",
                 "leat.yml:2:1: threads: 1000 workers of 100 threads are more than 16384 threads");
}

static void jemalloc_has_no_arenas_of_the_c_library(void **state)
{
    (void)state;
    expect_fault("malloc: {allocator: jemalloc, arenas: 2}\n",
                 "malloc: jemalloc chooses its arenas itself; leave them out, or see MALLOC_CONF");
}

static void sites_do_not_share_hosts(void **state)
{
    (void)state;

    expect_fault("sites: [{host: a}, {host: [b, A]}]",
                 "leat.yml:1:21: sites[1].host: sites[0] has the host a already");
    expect_fault("sites: [{root: .}, {pulse: /x}]",
                 "leat.yml:1:20: sites[1]: sites[0] answers every other host already; this one "
                 "needs a host");
    expect_fault("sites: [{host: a, pool: off}]",
                 "leat.yml:1:9: sites[0]: a site needs a root or a pool");
}

static void routes_have_paths_of_their_own_and_something_to_answer_with(void **state)
{
    (void)state;

    expect_fault("sites: [{host: a, root: /, routes: [{path: /b, root: /}, {path: /b/, root: /}]}]",
                 "leat.yml:1:58: sites[0].routes[1]: routes[0] has the path /b already");
    expect_fault("sites: [{host: a, root: /, routes: [{path: /b}]}]",
                 "leat.yml:1:37: sites[0].routes[0]: a route needs a root or a pool");
    expect_fault("sites: [{host: a, root: /, routes: [{path: /b, root: gone}]}]",
                 "leat.yml:1:48: sites[0].routes[0].root: there is no folder %s/gone");
    expect_fault("sites: [{host: a, root: /, redirect: 'http://b'}]",
                 "leat.yml:1:28: sites[0].redirect: everything is redirected, so that nothing else "
                 "of this site is ever reached");
}

static void an_application_s_own_folder_is_no_root(void **state)
{
    static const char words[] = "is the folder of the application itself, with its code and "
                                "settings; name the folder of its public files";
    struct world world;
    (void)state;

    world_open_app(&world, "pools: {shop: {}}\nsites: [{root: public/.., pool: shop}]\n");
    world_write(&world, "public/a.txt", "");
    assert_null(world_load(&world));
    assert_non_null(strstr(world.faults.items[0].reason, words));
    world_close(&world);
}

static void several_pools_need_sites(void **state)
{
    struct world world;
    (void)state;

    expect_fault(
        "pools: {a: {}, b: {}}\n",
        "leat.yml:1:16: pools.b: two or more pools need sites, which say what each of them "
        "answers");
    world_open_app(&world, "pools: {a: {}, b: {app: two}}\n"
                           "sites: [{host: a, pool: a}, {host: b, pool: b}, {root: .}]\n");
    world_write(&world, "two/config.ru", "run nil\n");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pool_size, 2);
    assert_string_equal(world.config->sites[0].root + strlen(world.folder), "/public");
    assert_string_equal(world.config->sites[1].root + strlen(world.folder), "/two/public");
    assert_null(world.config->sites[2].pool);
    assert_int_equal(world.config->warnings.size, 0);
    world_close(&world);
}

static void the_admin_address_is_not_a_listener(void **state)
{
    (void)state;

    expect_fault("listen: '127.0.0.1:20503'\nadmin: '127.0.0.1:20503'\n",
                 "leat.yml:2:1: admin: 127.0.0.1:20503 is one of the addresses in listen");
}

static void an_environment_is_a_name(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    world.options.environment = "../x";
    assert_null(world_load(&world));
    assert_string_equal(world_fault(&world, 0), "-e: \"../x\" is no name");
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_files_must_be_there),
        cmocka_unit_test(users_and_groups_must_exist_or_be_numbers),
        cmocka_unit_test(limits_fit_into_each_other),
        cmocka_unit_test(workers_times_threads_have_a_ceiling),
        cmocka_unit_test(jemalloc_has_no_arenas_of_the_c_library),
        cmocka_unit_test(sites_do_not_share_hosts),
        cmocka_unit_test(routes_have_paths_of_their_own_and_something_to_answer_with),
        cmocka_unit_test(an_application_s_own_folder_is_no_root),
        cmocka_unit_test(several_pools_need_sites),
        cmocka_unit_test(the_admin_address_is_not_a_listener),
        cmocka_unit_test(an_environment_is_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

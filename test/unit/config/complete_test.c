/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/complete.c"

#include "world.h"

static void a_pool_is_named_after_its_folder(void **state)
{
    struct arena arena = {0};
    (void)state;

    assert_string_equal(complete_name(&arena, "/srv/shop"), "shop");
    assert_string_equal(complete_name(&arena, "/srv/shop/current"), "shop");
    assert_string_equal(complete_name(&arena, "/srv/my shop!"), "my_shop_");
    assert_string_equal(complete_name(&arena, "/current"), "app");
    assert_string_equal(complete_name(&arena, "/"), "app");
    arena_done(&arena);
}

static void an_application_gets_one_pool_and_one_site(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pool_size, 1);
    assert_string_equal(world.config->pools[0]->rackup, "config.ru");
    assert_string_equal(world.config->pools[0]->app, world.folder);
    assert_int_equal(world.config->site_size, 1);
    assert_ptr_equal(world.config->sites[0].pool, world.config->pools[0]);
    assert_string_equal(world.config->sites[0].root + strlen(world.folder), "/public");
    world_close(&world);
}

static void a_folder_of_pages_gets_a_site_without_a_pool(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world_write(&world, "index.html", "");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pool_size, 0);
    assert_null(world.config->sites[0].pool);
    assert_string_equal(world.config->sites[0].root, world.folder);
    world_close(&world);
}

static void an_empty_folder_says_what_was_looked_for(void **state)
{
    struct world world;
    const char *fault;
    (void)state;

    world_open(&world);
    assert_null(world_load(&world));
    fault = world_fault(&world, 0);
    assert_non_null(strstr(fault, "looked for config.ru, config/environment.rb, public/, and "
                                  "index.html"));
    world.options.target = "gone";
    assert_null(world_load(&world));
    assert_non_null(strstr(world_fault(&world, 0), "there is no folder "));
    world_close(&world);
}

static void a_rackup_file_on_the_command_line_wins(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "rackup: config.ru\n");
    world_write(&world, "admin.ru", "");
    world.options.target = "admin.ru";
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->pools[0]->rackup, "admin.ru");
    world_write(&world, "leat.yml", "app: app\n");
    world_write(&world, "app/config.ru", "");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->pools[0]->rackup + strlen(world.folder), "/admin.ru");
    world_close(&world);
}

static void sites_share_the_pool_unless_they_have_a_root_of_their_own(void **state)
{
    struct world world;
    const struct config *config;
    (void)state;

    world_open_app(&world, "pools: {shop: {}}\n"
                           "limits: {body: 1m}\n"
                           "sites:\n"
                           "- {host: a}\n"
                           "- {host: b, root: ., limits: {body: off}}\n"
                           "- {host: c, root: /tmp, pool: shop}\n"
                           "- {host: d, root: off, pool: shop}\n");
    config = world_load(&world);
    assert_non_null(config);
    assert_ptr_equal(config->sites[0].pool, config->pools[0]);
    assert_int_equal(config->sites[0].limits.body, 1 << 20);
    assert_null(config->sites[1].pool);
    assert_int_equal(config->sites[1].limits.body, 0);
    assert_string_equal(config->sites[2].root, "/tmp");
    assert_null(config->sites[3].root);
    world_close(&world);
}

static void a_pool_at_one_path_only_is_mounted_there(void **state)
{
    struct world world;
    const struct config *config;
    (void)state;

    world_open_app(
        &world,
        "pools: {one: {}, two: {}, both: {}}\n"
        "sites:\n"
        "- {host: a, pool: both, routes: [{path: /one, pool: one}, {path: /two, pool: two}]}\n"
        "- {host: b, routes: [{path: /one, pool: one}, {path: /2, pool: two}, {path: /x, pool: "
        "both}]}\n");
    config = world_load(&world);
    assert_non_null(config);
    assert_string_equal(config->pools[0]->mount, "/one");
    assert_null(config->pools[1]->mount);
    assert_null(config->pools[2]->mount);
    assert_string_equal(config->sites[0].routes[0].root + strlen(world.folder), "/public");
    world_write(&world, "leat.yml",
                "pools: {one: {}}\nsites: [{host: a, routes: [{path: /one, pool: one}]}]\n");
    config = world_load(&world);
    assert_null(config->sites[0].pool);
    assert_int_equal(config->warnings.size, 0);
    world_close(&world);
}

static void a_pool_that_no_site_uses_is_a_warning_or_was_only_imagined(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "pools: {shop: {}}\nsites: [{root: ., pool: off}]\n");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->warnings.items[0].reason, "no site uses the pool shop");
    world_write(&world, "leat.yml", "sites: [{host: a, root: .}, {host: b, root: .}]\n");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pool_size, 0);
    world_close(&world);
}

static void the_server_s_user_is_the_pool_s_unless_it_has_its_own(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "user: root\ngroup: root\n");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->pools[0]->user, "root");
    assert_string_equal(world.config->pools[0]->group, "root");
    world_close(&world);
}

static void a_site_compresses_as_the_server_does_unless_it_says_otherwise(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "");
    assert_non_null(world_load(&world));
    assert_true(world.config->sites[0].compress);
    assert_false(world.config->sites[0].page_cache_query);
    world_close(&world);
    world_open_app(&world, "compress: off\n");
    assert_non_null(world_load(&world));
    assert_false(world.config->sites[0].compress);
    world_close(&world);
    world_open_app(&world, "compress: off\nsites:\n- host: a\n- {host: b, compress: on}\n");
    assert_non_null(world_load(&world));
    assert_false(world.config->sites[0].compress);
    assert_true(world.config->sites[1].compress);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_is_named_after_its_folder),
        cmocka_unit_test(an_application_gets_one_pool_and_one_site),
        cmocka_unit_test(a_folder_of_pages_gets_a_site_without_a_pool),
        cmocka_unit_test(an_empty_folder_says_what_was_looked_for),
        cmocka_unit_test(a_rackup_file_on_the_command_line_wins),
        cmocka_unit_test(sites_share_the_pool_unless_they_have_a_root_of_their_own),
        cmocka_unit_test(a_pool_at_one_path_only_is_mounted_there),
        cmocka_unit_test(a_pool_that_no_site_uses_is_a_warning_or_was_only_imagined),
        cmocka_unit_test(a_site_compresses_as_the_server_does_unless_it_says_otherwise),
        cmocka_unit_test(the_server_s_user_is_the_pool_s_unless_it_has_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

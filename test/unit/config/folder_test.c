/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/folder.c"

#include "world.h"

static struct arena arena;

static const char *below(const struct world *world, const char *path)
{
    return keep_printf(&arena, "%s%s", world->folder, path);
}

static struct folder found(struct world *world, const char *target, const char *file)
{
    struct folder folder;

    world->options.target = target;
    world->options.file = file;
    folder_find(&arena, &world->options, &folder);
    return folder;
}

static void the_folder_is_the_one_given_with_its_symlinks(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world_write(&world, "releases/7/config.ru", "");
    assert_int_equal(symlink("releases/7", below(&world, "/current")), 0);
    assert_string_equal(found(&world, NULL, NULL).path, world.folder);
    assert_string_equal(found(&world, ".", NULL).path, world.folder);
    assert_string_equal(found(&world, "current/", NULL).path, below(&world, "/current"));
    assert_string_equal(found(&world, "gone", NULL).path, below(&world, "/gone"));
    assert_string_equal(found(&world, "/", NULL).path, "/");
    arena_done(&arena);
    world_close(&world);
}

static void parents_are_taken_out_only_when_that_leads_to_the_same_folder(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world_write(&world, "a/b/", "");
    world_write(&world, "c/", "");
    assert_int_equal(symlink("a/b", below(&world, "/link")), 0);
    assert_string_equal(found(&world, "a/../c", NULL).path, below(&world, "/c"));
    assert_string_equal(found(&world, "link/../../c", NULL).path, below(&world, "/link/../../c"));
    arena_done(&arena);
    world_close(&world);
}

static void a_rackup_file_names_its_folder(void **state)
{
    struct world world;
    struct folder folder;
    (void)state;

    world_open(&world);
    world_write(&world, "x/admin.ru", "");
    folder = found(&world, "x/admin.ru", NULL);
    assert_string_equal(folder.path, below(&world, "/x"));
    assert_string_equal(folder.rackup, "admin.ru");
    arena_done(&arena);
    world_close(&world);
}

static void a_configuration_file_implies_the_nearest_application_above(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world_write(&world, "app/config.ru", "");
    world_write(&world, "app/config/leat/x.yml", "");
    world_write(&world, "etc/leat.yml", "");
    assert_string_equal(found(&world, NULL, "app/config/leat/x.yml").path, below(&world, "/app"));
    assert_string_equal(found(&world, NULL, "etc/leat.yml").path, below(&world, "/etc"));
    assert_string_equal(found(&world, "app", "etc/leat.yml").path, below(&world, "/app"));
    arena_done(&arena);
    world_close(&world);
}

static void an_application_is_config_ru_or_the_environment_of_rails(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    assert_null(folder_find_rackup(world.folder));
    world_write(&world, "config/environment.rb", "");
    assert_string_equal(folder_find_rackup(world.folder), "config/environment.rb");
    world_write(&world, "config.ru", "");
    assert_string_equal(folder_find_rackup(world.folder), "config.ru");
    world_close(&world);
}

static void pages_are_public_or_a_folder_that_is_no_project(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    assert_null(folder_find_static(&arena, world.folder));
    world_write(&world, "index.html", "");
    assert_string_equal(folder_find_static(&arena, world.folder), world.folder);
    world_write(&world, "Gemfile", "");
    assert_null(folder_find_static(&arena, world.folder));
    world_write(&world, "public/", "");
    assert_string_equal(folder_find_static(&arena, world.folder), below(&world, "/public"));
    arena_done(&arena);
    world_close(&world);
}

static void the_most_special_configuration_file_counts(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    assert_null(folder_find_config(&arena, world.folder, "production"));
    world_write(&world, "leat.yml", "");
    assert_string_equal(folder_find_config(&arena, world.folder, "production"),
                        below(&world, "/leat.yml"));
    world_write(&world, "config/leat.yml", "");
    assert_string_equal(folder_find_config(&arena, world.folder, "production"),
                        below(&world, "/config/leat.yml"));
    world_write(&world, "config/leat/production.yml", "");
    assert_string_equal(folder_find_config(&arena, world.folder, "production"),
                        below(&world, "/config/leat/production.yml"));
    assert_string_equal(folder_find_config(&arena, world.folder, "test"),
                        below(&world, "/config/leat.yml"));
    arena_done(&arena);
    world_close(&world);
}

static void verbs_are_told_the_folder_even_when_it_is_gone(void **state)
{
    struct world world;
    struct faults faults = {0};
    char *path;
    (void)state;

    world_open(&world);
    world.options.target = "gone";
    path = config_find_folder(&world.options, &faults);
    assert_string_equal(path, below(&world, "/gone"));
    free(path);
    arena_done(&arena);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_is_the_one_given_with_its_symlinks),
        cmocka_unit_test(parents_are_taken_out_only_when_that_leads_to_the_same_folder),
        cmocka_unit_test(a_rackup_file_names_its_folder),
        cmocka_unit_test(a_configuration_file_implies_the_nearest_application_above),
        cmocka_unit_test(an_application_is_config_ru_or_the_environment_of_rails),
        cmocka_unit_test(pages_are_public_or_a_folder_that_is_no_project),
        cmocka_unit_test(the_most_special_configuration_file_counts),
        cmocka_unit_test(verbs_are_told_the_folder_even_when_it_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

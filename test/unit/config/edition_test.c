/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/edition.c"

#include "world.h"

static void a_folder_with_config_ru_needs_no_file(void **state)
{
    struct world world;
    const struct config *config;
    (void)state;

    world_open_app(&world, NULL);
    config = world_load(&world);
    assert_non_null(config);
    assert_null(config->file);
    assert_string_equal(config->folder, world.folder);
    assert_true(config->development);
    assert_string_equal(config->log, "stderr");
    assert_null(config->pid);
    assert_null(config->admin);
    assert_null(config->control);
    assert_int_equal(config->access_log.format, CONFIG_LOG_OFF);
    assert_string_equal(config->trusted_proxies.items[0], "unix");
    assert_int_equal(config->pools[0]->workers_max, 1);
    assert_int_equal(config->pools[0]->threads, 3);
    assert_int_equal(config->pools[0]->timeout_ms, 0);
    assert_int_equal(config->pools[0]->preload, CONFIG_PRELOAD_FALSE);
    assert_int_equal(config->pools[0]->umask, CONFIG_AUTO);
    assert_true(config->loops >= 1);
    world_close(&world);
}

static void outside_development_other_defaults_hold(void **state)
{
    struct world world;
    const struct config *config;
    (void)state;

    world_open_app(&world, NULL);
    world.options.environment = "production";
    config = world_load(&world);
    assert_false(config->development);
    assert_int_equal(config->pools[0]->workers_min, CONFIG_AUTO);
    assert_int_equal(config->pools[0]->timeout_ms, 60000);
    assert_int_equal(config->pools[0]->preload, CONFIG_PRELOAD_AUTO);
    assert_string_equal(config->listeners[0].address, "0.0.0.0:3000");
    world_close(&world);
}

static void the_pid_file_is_in_tmp_when_there_is_one(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    world_write(&world, "tmp/", "");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->pid + strlen(world.folder), "/tmp/pids/leat.pid");
    assert_false(world.config->pid_named);
    world_set(&world, "PIDFILE=run/x.pid");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->pid + strlen(world.folder), "/run/x.pid");
    assert_true(world.config->pid_named);
    world_close(&world);
}

static void a_detached_server_logs_to_the_folder_log_or_says_that_it_does_not(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    world.options.daemonize = true;
    assert_non_null(world_load(&world));
    assert_null(world.config->log);
    assert_string_equal(world.config->warnings.items[0].key, "log");
    world_write(&world, "log/", "");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->log + strlen(world.folder), "/log/leat.log");
    assert_int_equal(world.config->warnings.size, 0);
    world_close(&world);
}

static void the_file_is_the_one_of_the_environment(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "threads: 1\n");
    world_write(&world, "config/leat/test.yml", "threads: 2\n");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->threads, 1);
    world.options.environment = "test";
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->threads, 2);
    assert_string_equal(world.config->file + strlen(world.folder), "/config/leat/test.yml");
    world_close(&world);
}

static void
a_named_file_is_relative_to_the_current_folder_and_its_paths_to_the_application(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world_write(&world, "site/config.ru", "");
    world_write(&world, "site/leat.yml", "{app: ., pid: tmp/pids/leat.pid, log: log/leat.log}");
    world.options.file = "site/leat.yml";
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->pid + strlen(world.folder), "/site/tmp/pids/leat.pid");
    assert_string_equal(world.config->log + strlen(world.folder), "/site/log/leat.log");
    assert_string_equal(world.config->pools[0]->app + strlen(world.folder), "/site");
    world_close(&world);
}

static void a_named_file_that_is_not_there_is_the_only_fault(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world.options.file = "gone.yml";
    assert_null(world_load(&world));
    assert_int_equal(world.faults.size, 1);
    assert_string_equal(world_fault(&world, 0), "gone.yml: cannot read it: No such file or "
                                                "directory");
    world.options.file = "-";
    world_write(&world, "config.ru", "");
    assert_non_null(world_load(&world));
    world_close(&world);
}

static void broken_syntax_is_the_only_fault(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world_write(&world, "leat.yml", "listen: [tcp:127.0.0.1:8080\nworkers: two\n");
    assert_null(world_load(&world));
    assert_int_equal(world.faults.size, 1);
    assert_int_equal(world.faults.items[0].line, 2);
    world_close(&world);
}

static void faults_name_the_file_as_its_user_would(void **state)
{
    struct world world;
    (void)state;

    world_open(&world);
    world_write(&world, "app/config.ru", "");
    world_write(&world, "app/leat.yml", "x: y\n");
    world.options.target = "app";
    assert_null(world_load(&world));
    assert_string_equal(world.faults.items[0].file, "app/leat.yml");
    world.options.file = "./app/leat.yml";
    assert_null(world_load(&world));
    assert_string_equal(world.faults.items[0].file, "./app/leat.yml");
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_with_config_ru_needs_no_file),
        cmocka_unit_test(outside_development_other_defaults_hold),
        cmocka_unit_test(the_pid_file_is_in_tmp_when_there_is_one),
        cmocka_unit_test(a_detached_server_logs_to_the_folder_log_or_says_that_it_does_not),
        cmocka_unit_test(the_file_is_the_one_of_the_environment),
        cmocka_unit_test(
            a_named_file_is_relative_to_the_current_folder_and_its_paths_to_the_application),
        cmocka_unit_test(a_named_file_that_is_not_there_is_the_only_fault),
        cmocka_unit_test(broken_syntax_is_the_only_fault),
        cmocka_unit_test(faults_name_the_file_as_its_user_would),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

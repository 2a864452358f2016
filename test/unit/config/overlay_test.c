/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/overlay.c"

#include "world.h"

/* One cell of the matrix: file, variable, option, and what comes out. */
struct precedence {
    const char *yaml, *variable, *option, *expected;
};

static void load_with(struct world *world, const struct precedence *row)
{
    world_open_app(world, row->yaml);
    if (row->variable)
        world_set(world, row->variable);
}

static void workers_option_then_variable_then_file_then_default(void **state)
{
    static const struct precedence rows[] = {
        {NULL, NULL, NULL, "1"},
        {"workers: 2", NULL, NULL, "2"},
        {"workers: 2", "WEB_CONCURRENCY=3", NULL, "3"},
        {"workers: 2", "WEB_CONCURRENCY=3", "4", "4"},
        {"workers: 2", "WEB_CONCURRENCY=", NULL, "2"},
        {"workers: 2", NULL, "4", "4"},
        {NULL, "WEB_CONCURRENCY=0", NULL, "1"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world world;
        char workers[16];

        load_with(&world, &rows[i]);
        world.options.workers = rows[i].option;
        assert_non_null(world_load(&world));
        (void)snprintf(workers, sizeof(workers), "%u", world.config->pools[0]->workers_max);
        assert_string_equal(workers, rows[i].expected);
        world_close(&world);
    }
}

static void the_environment_option_then_variable_then_file_then_default(void **state)
{
    static const struct precedence rows[] = {
        {NULL, NULL, NULL, "development"},
        {"environment: staging", NULL, NULL, "staging"},
        {"environment: staging", "RACK_ENV=test", NULL, "test"},
        {"environment: staging", "RACK_ENV=test", "production", "production"},
        {"environment: staging", "RACK_ENV=", NULL, "staging"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world world;

        load_with(&world, &rows[i]);
        world.options.environment = rows[i].option;
        world.options.default_environment = NULL;
        assert_non_null(world_load(&world));
        assert_string_equal(world.config->environment, rows[i].expected);
        assert_int_equal(world.config->development, i == 0);
        world_close(&world);
    }
}

static void rails_asks_rails_env_first_and_a_quarrel_is_one_line(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    world_set(&world, "RAILS_ENV=production");
    world_set(&world, "RACK_ENV=staging");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->environment, "staging");
    assert_int_equal(world.config->warnings.size, 1);
    assert_string_equal(world.config->warnings.items[0].reason,
                        "RACK_ENV=staging and RAILS_ENV=production disagree: the environment is "
                        "staging");
    world_write(&world, "config/environment.rb", "");
    assert_non_null(world_load(&world));
    assert_string_equal(world.config->environment, "production");
    assert_int_equal(world.config->warnings.size, 1);
    world_close(&world);
}

static void every_option_reaches_its_setting(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    world_write(&world, "other.ru", "");
    world.options.threads = "5";
    world.options.rackup = "other.ru";
    world.options.pid = "a.pid";
    world.options.log = "a.log";
    world.options.user = "root";
    world.options.group = "root";
    world.options.admin = "127.0.0.1:20502";
    world.options.control = "a.sock";
    world.options.verbose = world.options.quiet = true;
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->threads, 5);
    assert_string_equal(world.config->pools[0]->rackup, "other.ru");
    assert_string_equal(world.config->pid + strlen(world.folder), "/a.pid");
    assert_true(world.config->pid_named);
    assert_string_equal(world.config->log + strlen(world.folder), "/a.log");
    assert_string_equal(world.config->user, "root");
    assert_string_equal(world.config->group, "root");
    assert_string_equal(world.config->admin, "127.0.0.1:20502");
    assert_string_equal(world.config->control + strlen(world.folder), "/a.sock");
    assert_string_equal(world.config->access_log.file, "stdout");
    assert_int_equal(world.config->access_log.format, CONFIG_LOG_COMBINED);
    assert_true(world.config->quiet);
    world_close(&world);
}

static void workers_and_threads_from_outside_are_for_the_only_rack_pool(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "pools: {a: {}, b: {}}\nsites: [{host: a, pool: a}, {pool: b}]\n");
    world_set(&world, "WEB_CONCURRENCY=7");
    world_set(&world, "RAILS_MAX_THREADS=8");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->workers_min, 1);
    assert_int_equal(world.config->pools[1]->threads, 3);
    assert_int_equal(world.config->warnings.size, 0);
    world.options.workers = "4";
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->workers_min, 1);
    assert_int_equal(world.config->warnings.size, 1);
    assert_string_equal(world.config->warnings.items[0].key, "-w");
    world_close(&world);
}

static void faults_of_options_and_variables_name_them(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    world_set(&world, "PORT=http");
    world_set(&world, "RAILS_MAX_THREADS=many");
    world_set(&world, "BINDING=a b");
    world.options.workers = "two";
    world.options.port = "0";
    assert_null(world_load(&world));
    assert_int_equal(world.faults.size, 5);
    assert_true(world_has_fault(&world, "-w: expected N, MIN..MAX or auto, not \"two\""));
    assert_true(world_has_fault(&world, "-p: expected a port from 1 to 65535, not \"0\""));
    assert_true(world_has_fault(&world, "PORT: expected a port from 1 to 65535, not \"http\""));
    assert_true(world_has_fault(&world, "RAILS_MAX_THREADS: expected a number, not \"many\""));
    assert_true(world_has_fault(
        &world, "BINDING: expected a port, an address, address:port or unix:path, not \"a b\""));
    world_close(&world);
}

/* All addresses of the edition, in one text. */
static const char *addresses(struct world *world)
{
    size_t size = 0;

    assert_non_null(world_load(world));
    world->text[0] = '\0';
    for (uint32_t i = 0; i < world->config->listener_size; i++)
        size += (size_t)snprintf(world->text + size, sizeof(world->text) - size, "%s%s",
                                 i ? " " : "", world->config->listeners[i].address);
    return world->text;
}

static void listeners_option_then_variable_then_file_then_default(void **state)
{
    static const struct {
        const char *yaml, *variable, *port, *bind, *expected;
    } rows[] = {
        {NULL, NULL, NULL, NULL, "127.0.0.1:3000 [::1]:3000"},
        {"environment: test", NULL, NULL, NULL, "0.0.0.0:3000 [::]:3000"},
        {"listen: 80", NULL, NULL, NULL, "127.0.0.1:80 [::1]:80"},
        {"listen: 80", "PORT=81", NULL, NULL, "127.0.0.1:81 [::1]:81"},
        {"listen: 80", "PORT=", NULL, NULL, "127.0.0.1:80 [::1]:80"},
        {"listen: 80", "PORT=81", "82", NULL, "127.0.0.1:82 [::1]:82"},
        {"listen: 80", "BINDING=10.0.0.1", NULL, NULL, "10.0.0.1:80"},
        {"listen: ['unix:/s', 80]", "PORT=81", NULL, NULL, "unix:/s 127.0.0.1:81 [::1]:81"},
        {"listen: 'unix:/s'", "PORT=81", NULL, NULL, "unix:/s"},
        {"listen: ['10.0.0.1:80', 90]", "PORT=81", NULL, NULL, "127.0.0.1:81 [::1]:81"},
        {"listen: '10.0.0.1:80'", "PORT=81", NULL, NULL, "10.0.0.1:81"},
        {"listen: ['unix:/s', 80]", NULL, "82", NULL, "127.0.0.1:82 [::1]:82"},
        {"listen: 80", NULL, "82", "10.0.0.1", "10.0.0.1:82"},
        {"listen: 80", NULL, NULL, "10.0.0.1:83", "10.0.0.1:83"},
        {NULL, "PORT=81", NULL, "10.0.0.1", "10.0.0.1:81"},
        {NULL, "BINDING=0.0.0.0", "82", NULL, "0.0.0.0:82"},
        {NULL, "BINDING=0.0.0.0", NULL, NULL, "0.0.0.0:3000"},
        {NULL, "BINDING=::", NULL, NULL, "0.0.0.0:3000 [::]:3000"},
        {NULL, NULL, NULL, "unix:/s", "unix:/s"},
        {NULL, NULL, NULL, "tcp://127.0.0.1:84", "127.0.0.1:84"},
        {NULL, NULL, NULL, "85", "127.0.0.1:85 [::1]:85"},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world world;
        const char *bind = rows[i].bind;

        world_open_app(&world, rows[i].yaml);
        if (rows[i].variable)
            world_set(&world, rows[i].variable);
        world.options.port = rows[i].port;
        world.options.binds = &bind;
        world.options.bind_size = bind ? 1 : 0;
        assert_string_equal(addresses(&world), rows[i].expected);
        world_close(&world);
    }
}

static void a_starter_s_own_default_is_weaker_than_the_file(void **state)
{
    const char *bind = "10.0.0.1";
    struct world world;
    (void)state;

    world_open_app(&world, NULL);
    world.options.default_port = "4000";
    world.options.default_environment = "test";
    world.options.default_pid = "tmp/pids/server.pid";
    assert_string_equal(addresses(&world), "0.0.0.0:4000 [::]:4000");
    assert_string_equal(world.config->environment, "test");
    assert_string_equal(world.config->pid + strlen(world.folder), "/tmp/pids/server.pid");
    assert_false(world.config->pid_named);
    world_write(&world, "leat.yml", "listen: '127.0.0.1:80'\nenvironment: staging\npid: off\n");
    assert_string_equal(addresses(&world), "127.0.0.1:80");
    assert_string_equal(world.config->environment, "staging");
    assert_null(world.config->pid);
    world.options.binds = &bind;
    world.options.bind_size = 1;
    assert_string_equal(addresses(&world), "10.0.0.1:4000");
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_option_then_variable_then_file_then_default),
        cmocka_unit_test(the_environment_option_then_variable_then_file_then_default),
        cmocka_unit_test(rails_asks_rails_env_first_and_a_quarrel_is_one_line),
        cmocka_unit_test(every_option_reaches_its_setting),
        cmocka_unit_test(workers_and_threads_from_outside_are_for_the_only_rack_pool),
        cmocka_unit_test(faults_of_options_and_variables_name_them),
        cmocka_unit_test(listeners_option_then_variable_then_file_then_default),
        cmocka_unit_test(a_starter_s_own_default_is_weaker_than_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

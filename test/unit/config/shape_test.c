/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/shape.c"

#include "world.h"

/* Whether the pool goes on when the first text is replaced by the second. */
static bool goes_on(const char *before, const char *after)
{
    struct world former, fresh;
    bool same;

    world_open_app(&former, before);
    assert_non_null(world_load(&former));
    /* The same folder, with another file. */
    fresh = former;
    fresh.config = NULL;
    fresh.faults = (struct faults){0};
    world_write(&fresh, "leat.yml", after);
    assert_non_null(world_load(&fresh));
    same =
        shape_is_same(former.config, former.config->pools[0], fresh.config, fresh.config->pools[0]);
    config_free(former.config);
    world_close(&fresh);
    return same;
}

static void what_only_the_front_or_master_reads_keeps_the_processes(void **state)
{
    (void)state;

    assert_true(goes_on("workers: 2", "workers: 2"));
    assert_true(goes_on("workers: 2..4", "workers: 1..4"));
    assert_true(goes_on("timeout: 10s\nidle: 1m\nmax_requests: 9\nmemory: 100m\n",
                        "timeout: 20s\nidle: 2m\nmax_requests: 8\nmemory: 200m\n"));
    assert_true(goes_on("queue: {timeout: 1s}", "queue: {timeout: 2s}"));
    assert_true(goes_on("limits: {body: 1m}\nlisten: 81", "limits: {body: 2m}\nlisten: 82"));
}

static void what_processes_or_their_board_are_made_from_does_not(void **state)
{
    (void)state;

    assert_false(goes_on("workers: 2", "workers: 3"));
    assert_false(goes_on("threads: 2", "threads: 3"));
    assert_false(goes_on("env: {A: b}", "env: {A: c}"));
    assert_false(goes_on("env: {A: b}", "env: {A: b, B: c}"));
    assert_false(goes_on("queue: {length: 10}", "queue: {length: 11}"));
    assert_false(goes_on("limits: {headers: 10}", "limits: {headers: 11}"));
    assert_false(goes_on("preload: true", "preload: false"));
    assert_false(goes_on("environment: a", "environment: b"));
    assert_false(goes_on("log: one.log", "log: two.log"));
    assert_false(goes_on("umask: 022", "umask: 027"));
    assert_false(goes_on("malloc: {arenas: 2}", "malloc: {arenas: 3}"));
    assert_false(goes_on("user: root", "user: nobody"));
    assert_true(goes_on("log: one.log", "log: one.log"));
}

static void a_running_server_keeps_its_user_and_its_files(void **state)
{
    struct world former, fresh;
    (void)state;

    world_open_app(&former, "pid: one.pid\npools: {a: {}, b: {user: daemon}}\n"
                            "sites: [{host: a, pool: a}, {host: b, pool: b}]\n");
    assert_non_null(world_load(&former));
    world_open_app(&fresh, "pid: two.pid\nuser: nobody\ncontrol: c\n"
                           "pools: {a: {}, b: {user: daemon}}\n"
                           "sites: [{host: a, pool: a}, {host: b, pool: b}]\n");
    assert_non_null(world_load(&fresh));
    shape_keep_fixed(fresh.config, former.config);
    assert_string_equal(fresh.config->pid, former.config->pid);
    assert_null(fresh.config->user);
    assert_null(fresh.config->control);
    assert_null(fresh.config->pools[0]->user);
    assert_string_equal(fresh.config->pools[1]->user, "daemon");
    assert_int_equal(fresh.config->warnings.size, 1);
    assert_string_equal(fresh.config->warnings.items[0].key, "user, pid, control");
    world_close(&former);
    world_close(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_only_the_front_or_master_reads_keeps_the_processes),
        cmocka_unit_test(what_processes_or_their_board_are_made_from_does_not),
        cmocka_unit_test(a_running_server_keeps_its_user_and_its_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

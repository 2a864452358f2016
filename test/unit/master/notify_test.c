/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/notify.c"

#include "master_world.h"

/* A service manager that listens under a name without a file. */
static int listen_as(const char *name)
{
    struct address address;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_true(read_address(name, &address));
    assert_int_equal(bind(fd, &address.socket.any, address.size), 0);
    return fd;
}

static void set(struct world *world, const char *name, const char *value)
{
    environment_set(&world->master.environment, name, value);
}

static void close_world(struct world *world)
{
    notify_close(&world->master);
    environment_done(&world->master.environment);
    world_close(world);
}

/* The next datagram; "" when there is none. */
static const char *hear(int fd)
{
    static char text[200];
    ssize_t size = recv(fd, text, sizeof text - 1, 0);

    text[size > 0 ? size : 0] = '\0';
    return text;
}

static void without_a_service_manager_nothing_is_said(void **state)
{
    struct world world;

    (void)state;
    world_open(&world);
    set(&world, "WATCHDOG_USEC", "1000000");
    notify_open(&world.master);
    assert_int_equal(world.master.notify_fd, -1);
    assert_int_equal(world.master.notify_period_ms, 0);
    notify_start(&world.master);
    notify_ready(&world.master);
    notify_stopping(&world.master, 1000);
    close_world(&world);
}

static void names_that_are_no_address_are_left_alone(void **state)
{
    char longest[200];
    struct address address;

    (void)state;
    assert_false(read_address("", &address));
    assert_false(read_address("/", &address));
    assert_false(read_address("run/notify", &address));
    assert_false(read_address("vsock:2:1234", &address));
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    assert_false(read_address(longest, &address));
}

static void ready_a_restart_and_a_stop_are_told_in_order_and_once(void **state)
{
    struct world world;
    const char *said;
    char ready[100];
    int fd = listen_as("@leat-notify-test-1");

    (void)state;
    world_open(&world);
    set(&world, "NOTIFY_SOCKET", "@leat-notify-test-1");
    notify_open(&world.master);
    notify_ready(&world.master);
    (void)snprintf(ready, sizeof ready, "READY=1\nMAINPID=%d\nSTATUS=serving: shop up",
                   (int)getpid());
    assert_string_equal(hear(fd), ready);
    notify_settle(&world.master);
    assert_string_equal(hear(fd), "");
    world.pool.state = POOL_RESTARTING;
    notify_settle(&world.master);
    notify_settle(&world.master);
    said = hear(fd);
    assert_int_equal(strncmp(said, "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
    assert_non_null(strstr(said, "\nSTATUS=restarting: shop restarting"));
    assert_string_equal(hear(fd), "");
    world.pool.state = POOL_UP;
    notify_settle(&world.master);
    assert_string_equal(hear(fd), "READY=1\nSTATUS=serving: shop up");
    world.master.phase = MASTER_DELAY;
    notify_stopping(&world.master, 30000);
    notify_stopping(&world.master, 30000);
    assert_string_equal(hear(fd),
                        "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=leaving: shop up");
    assert_string_equal(hear(fd), "");
    close_world(&world);
    (void)close(fd);
}

static void a_change_is_told_once_however_many_overlap(void **state)
{
    struct world world;
    int fd = listen_as("@leat-notify-test-3");

    (void)state;
    world_open(&world);
    set(&world, "NOTIFY_SOCKET", "@leat-notify-test-3");
    notify_open(&world.master);
    notify_changing(&world.master, true);
    assert_int_equal(strncmp(hear(fd), "RELOADING=1\n", 12), 0);
    notify_changing(&world.master, true);
    notify_changing(&world.master, false);
    assert_string_equal(hear(fd), "");
    notify_changing(&world.master, false);
    assert_string_equal(hear(fd), "READY=1\nSTATUS=serving: shop up");
    close_world(&world);
    (void)close(fd);
}

static void the_status_tells_what_is_wrong_on_one_line(void **state)
{
    struct world world;
    int fd = listen_as("@leat-notify-test-4");

    (void)state;
    world_open(&world);
    set(&world, "NOTIFY_SOCKET", "@leat-notify-test-4");
    notify_open(&world.master);
    world.pool.state = POOL_CRASHING;
    (void)snprintf(world.pool.error, sizeof world.pool.error, "no database\nat all");
    notify_settle(&world.master);
    notify_settle(&world.master);
    assert_string_equal(hear(fd), "STATUS=serving: shop crashing (no database at all)");
    assert_string_equal(hear(fd), "");
    memset(world.pool.error, 'x', sizeof world.pool.error - 1);
    notify_settle(&world.master);
    assert_int_equal(strlen(world.master.notified_status),
                     strlen("serving: shop crashing ()") + 120);
    notify_failed(&world.master, "boom\nREADY=1");
    (void)hear(fd);
    assert_string_equal(hear(fd), "STATUS=start failed: boom");
    close_world(&world);
    (void)close(fd);
}

static void a_start_asks_for_the_patience_that_its_applications_may_need(void **state)
{
    struct config_pool slow = {.name = "slow", .start_timeout_ms = 300000};
    struct config_pool *pools[2] = {NULL, &slow};
    struct world world;

    (void)state;
    world_open(&world);
    pools[0] = &world.settings;
    world.settings.start_timeout_ms = 90000;
    world.config.pools = pools;
    world.config.pool_size = 2;
    assert_int_equal(start_patience_ms(&world.master), 310000);
    slow.start_timeout_ms = 0;
    assert_int_equal(start_patience_ms(&world.master), UNLIMITED_START_MS + START_MARGIN_MS);
    world_close(&world);
}

static void a_watchdog_hears_from_us_each_third_of_its_patience(void **state)
{
    struct world world;
    int fd = listen_as("@leat-notify-test-2");

    (void)state;
    world_open(&world);
    set(&world, "NOTIFY_SOCKET", "@leat-notify-test-2");
    set(&world, "WATCHDOG_USEC", "60000");
    notify_open(&world.master);
    assert_int_equal(world.master.notify_period_ms, 20);
    notify_start(&world.master);
    assert_string_equal(hear(fd), "EXTEND_TIMEOUT_USEC=10000000\nSTATUS=serving: shop up");
    assert_string_equal(hear(fd), "WATCHDOG=1");
    assert_string_equal(hear(fd), "");
    for (int i = 0; i < 3; i++) {
        (void)loop_step(world.master.loop, 1000);
        assert_string_equal(hear(fd), "WATCHDOG=1");
    }
    close_world(&world);
    (void)close(fd);
}

static void a_watchdog_for_another_process_is_not_ours(void **state)
{
    struct world world;
    char pid[32];

    (void)state;
    world_open(&world);
    set(&world, "WATCHDOG_USEC", "3000000");
    set(&world, "WATCHDOG_PID", "1");
    assert_int_equal(read_period(&world.master), 0);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    set(&world, "WATCHDOG_PID", pid);
    assert_int_equal(read_period(&world.master), 1000);
    set(&world, "WATCHDOG_USEC", "10");
    assert_int_equal(read_period(&world.master), 1);
    set(&world, "WATCHDOG_USEC", "soon");
    assert_int_equal(read_period(&world.master), 0);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_service_manager_nothing_is_said),
        cmocka_unit_test(names_that_are_no_address_are_left_alone),
        cmocka_unit_test(ready_a_restart_and_a_stop_are_told_in_order_and_once),
        cmocka_unit_test(a_change_is_told_once_however_many_overlap),
        cmocka_unit_test(the_status_tells_what_is_wrong_on_one_line),
        cmocka_unit_test(a_start_asks_for_the_patience_that_its_applications_may_need),
        cmocka_unit_test(a_watchdog_hears_from_us_each_third_of_its_patience),
        cmocka_unit_test(a_watchdog_for_another_process_is_not_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/admin.c"

#include "front_world.h"

static void live_is_live_and_ready_follows_the_workers(void **state)
{
    (void)state;

    world_configure();
    world_start();
    assert_non_null(strstr(world_get(1, "GET /live"), "200 OK"));
    assert_non_null(strstr(world_get(1, "GET /ready"), "200 OK"));
    atomic_store(&world.board.workers[0].ready, 0);
    assert_non_null(strstr(world_get(1, "GET /live"), "200 OK"));
    assert_non_null(strstr(world_get(1, "GET /ready"), "503 Service Unavailable"));
    assert_non_null(strstr(world_get(1, "GET /other"), "404 Not Found"));
    assert_non_null(strstr(world_get(1, "POST /live"), "405 Method Not Allowed"));
    assert_int_equal(world.counters->requests, 0);
    world_stop();
}

static void the_status_comes_from_master(void **state)
{
    struct front_message answer = {.kind = FRONT_STATUS};
    int client, file = memfd_create("status", MFD_CLOEXEC);
    (void)state;

    world_configure();
    world_start();
    client = world_connect(1);
    world_send(client, "GET /status.json HTTP/1.1\r\nHost: a\r\n\r\n");
    answer.number = world_hear(FRONT_STATUS_WANTED).number;
    assert_int_equal(fd_write_all(file, span_of("{\"pid\":7}")), 0);
    assert_int_equal(front_message_send(world.channel, &answer, &file, 1), 0);
    assert_non_null(strstr(world_read_until(client, "{\"pid\":7}"), "application/json"));
    close(client);
    close(file);
    world_stop();
}

static void a_master_that_does_not_answer_is_503(void **state)
{
    int client;
    (void)state;

    world_configure();
    world_start();
    client = world_connect(1);
    world_send(client, "GET /status.json HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)world_read_until(client, "503 Service Unavailable");
    close(client);
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_is_live_and_ready_follows_the_workers),
        cmocka_unit_test(the_status_comes_from_master),
        cmocka_unit_test(a_master_that_does_not_answer_is_503),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

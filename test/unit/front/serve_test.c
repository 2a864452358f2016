/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/serve.c"

#include "front_world.h"

static void the_pulse_follows_the_workers(void **state)
{
    (void)state;

    world_configure();
    world_start();
    assert_non_null(strstr(world_get(0, "GET /pulse"), "\r\n\r\nOK"));
    atomic_store(&world.board.workers[0].ready, 0);
    assert_non_null(strstr(world_get(0, "GET /pulse"), "503 Service Unavailable"));
    world_stop();
}

static void a_strange_host_gets_404_but_the_pulse(void **state)
{
    static const char *hosts[] = {"shop.test"};
    (void)state;

    world_configure();
    world.site.hosts = (struct config_strings){hosts, 1};
    world_start();
    assert_non_null(strstr(world_get(0, "GET /"), "404 Not Found"));
    assert_non_null(strstr(world_get(0, "GET /pulse"), "200 OK"));
    world_stop();
}

static void a_site_of_files_knows_only_reading(void **state)
{
    const char *answer;
    (void)state;

    world_configure();
    world.site = (struct config_site){.root = "/nowhere"};
    world_start();
    answer = world_get(0, "DELETE /x");
    assert_non_null(strstr(answer, "405 Method Not Allowed"));
    assert_non_null(strstr(answer, "GET, HEAD"));
    assert_non_null(strstr(world_get(0, "GET /x"), "404 Not Found"));
    world_stop();
}

static void a_pool_without_hope_answers_at_once(void **state)
{
    struct front_message message = {
        .kind = FRONT_POOL_STATE, .number = FRONT_POOL_CRASHING, .value = 30};
    const char *answer;
    (void)state;

    world_configure();
    world_start();
    atomic_store(&world.board.workers[0].ready, 0);
    assert_int_equal(front_message_send(world.channel, &message, NULL, 0), 0);
    answer = world_get(0, "GET /");
    assert_non_null(strstr(answer, "503 Service Unavailable"));
    assert_non_null(strstr(answer, "retry-after"));
    world_stop();
}

static void a_pool_that_is_down_is_asked_for(void **state)
{
    struct front_message message = {.kind = FRONT_POOL_STATE, .number = FRONT_POOL_DOWN};
    struct page_writer writer;
    int client;
    (void)state;

    world_configure();
    world_start();
    assert_int_equal(front_message_send(world.channel, &message, NULL, 0), 0);
    client = world_connect(0);
    world_send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(world_hear(FRONT_POOL_WANTED).pool, 0);
    writer = world_take();
    world_answer(&writer, "at last");
    (void)world_read_until(client, "at last");
    close(client);
    world_stop();
}

static void every_answer_is_counted_once(void **state)
{
    (void)state;

    world_configure();
    world_start();
    (void)world_get(0, "GET /pulse");
    (void)world_get(0, "GET /pulse");
    (void)world_get(0, "BAD");
    world_say(FRONT_DRAIN, 0, 1000);
    (void)world_hear(FRONT_DRAINED);
    assert_int_equal(world.counters->requests, 3);
    assert_int_equal(world.counters->statuses[2], 2);
    assert_int_equal(world.counters->statuses[4], 1);
    assert_int_equal(world.counters->refusals[REFUSAL_MALFORMED], 1);
    assert_int_equal(world.counters->gauges[0].open, 0);
    assert_int_equal(world.counters->gauges[0].idle, 0);
    assert_int_equal(world_end(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pulse_follows_the_workers),
        cmocka_unit_test(a_strange_host_gets_404_but_the_pulse),
        cmocka_unit_test(a_site_of_files_knows_only_reading),
        cmocka_unit_test(a_pool_without_hope_answers_at_once),
        cmocka_unit_test(a_pool_that_is_down_is_asked_for),
        cmocka_unit_test(every_answer_is_counted_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

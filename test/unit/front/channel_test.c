/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/channel.c"

#include "front_world.h"

#include <fcntl.h>

static void a_dead_worker_is_audited_and_its_request_runs_again(void **state)
{
    struct page_writer writer;
    int client;
    (void)state;

    world_configure();
    world_start();
    client = world_connect(0);
    world_send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)world_take();
    atomic_store(&world.board.workers[0].life, BOARD_DEAD);
    world_say(FRONT_WORKER_DEAD, 0, 0);
    assert_int_equal(world_hear(FRONT_AUDITED).worker, 0);
    assert_true(audit_worker_free(&world.board, 0));
    writer = world_take();
    world_answer(&writer, "again");
    (void)world_read_until(client, "again");
    /* What is answered later finds the front between two steps. */
    assert_non_null(strstr(world_get(0, "GET /pulse"), "HTTP/1.1"));
    assert_null(board_audit(&world.board));
    close(client);
    world_stop();
}

static void what_master_says_wrongly_is_survived(void **state)
{
    struct front_message odd = {.kind = FRONT_WORKER_DEAD, .pool = 99, .worker = 99};
    (void)state;

    world_configure();
    world_start();
    assert_int_equal(front_message_send(world.channel, &odd, NULL, 0), 0);
    world_say(FRONT_WORKER_DEAD, 99, 0);
    world_say(FRONT_ACCEPTING, 0, 0);
    world_say(FRONT_STATUS, 0, 12);
    assert_int_equal(write(world.channel, "odd", 3), 3);
    assert_non_null(strstr(world_get(0, "GET /pulse"), "200 OK"));
    world_stop();
}

static void a_front_whose_channel_ends_is_over(void **state)
{
    int channel;
    (void)state;

    world_configure();
    world_start();
    channel = world.channel;
    world.channel = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(channel);
    assert_int_equal(world_end(), ORPHAN_STATUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_worker_is_audited_and_its_request_runs_again),
        cmocka_unit_test(what_master_says_wrongly_is_survived),
        cmocka_unit_test(a_front_whose_channel_ends_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/front.c"

#include "front_world.h"

static void a_request_goes_through_the_board_and_back(void **state)
{
    struct page_writer writer;
    int client;
    (void)state;

    world_configure();
    world_start();
    client = world_connect(0);
    for (int i = 0; i < 3; i++) {
        world_send(client, "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
        writer = world_take();
        world_answer(&writer, "hello");
        assert_non_null(strstr(world_read_until(client, "hello"), "HTTP/1.1 200 OK"));
    }
    close(client);
    world_stop();
}

static void a_front_whose_master_is_gone_ends_at_once(void **state)
{
    (void)state;

    world_configure();
    world_start();
    fd_close(&world.death);
    assert_int_equal(world_end(), 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_goes_through_the_board_and_back),
        cmocka_unit_test(a_front_whose_master_is_gone_ends_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

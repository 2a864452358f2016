/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/accept.c"

#include "front_world.h"

enum { LIMIT = 4 };

static void use(int client)
{
    world_send(client, "GET /pulse HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)world_read_until(client, "\r\n\r\nOK");
}

static void at_the_limit_the_longest_idle_connection_goes(void **state)
{
    int clients[LIMIT + 1];
    (void)state;

    world_configure();
    world.config.limits.connections = LIMIT;
    world_start();
    for (int i = 0; i < LIMIT; i++) {
        clients[i] = world_connect(0);
        use(clients[i]);
    }
    use(clients[0]);
    clients[LIMIT] = world_connect(0);
    use(clients[LIMIT]);
    assert_true(world_is_over(clients[1]));
    use(clients[0]);
    use(clients[2]);
    for (int i = 0; i <= LIMIT; i++)
        close(clients[i]);
    world_stop();
}

static void when_all_are_busy_a_newcomer_is_told_so(void **state)
{
    int clients[LIMIT], newcomer;
    (void)state;

    world_configure();
    world.config.limits.connections = LIMIT;
    world_start();
    for (int i = 0; i < LIMIT; i++) {
        clients[i] = world_connect(0);
        world_send(clients[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    while (queue_length(&world.board) < LIMIT)
        sched_yield();
    newcomer = world_connect(0);
    (void)world_read_until(newcomer, "503 Service Unavailable");
    assert_int_equal(world.counters->refusals[REFUSAL_OVERLOAD], 1);
    for (int i = 0; i < LIMIT; i++) {
        struct page_writer writer = world_take();

        world_answer(&writer, "served");
    }
    for (int i = 0; i < LIMIT; i++) {
        (void)world_read_until(clients[i], "served");
        close(clients[i]);
    }
    close(newcomer);
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_limit_the_longest_idle_connection_goes),
        cmocka_unit_test(when_all_are_busy_a_newcomer_is_told_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

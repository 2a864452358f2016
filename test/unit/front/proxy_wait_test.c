/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/proxy_wait.c"

/* One wait on one end of a socket pair, and how it ended. */
struct world {
    struct loop *loop;
    struct proxy_wait *wait;
    struct address local;
    int client;
    int fd; /* handed on */
    bool ended;
    enum proxy_wait_end end;
    char peer[64], server[64];
};

static void on_end(void *data, enum proxy_wait_end how, int fd, const struct address *peer,
                   const struct address *local)
{
    struct world *world = data;

    world->ended = true;
    world->end = how;
    world->fd = fd;
    (void)address_format(peer, world->peer, sizeof(world->peer));
    (void)address_format(local, world->server, sizeof(world->server));
}

static void open_world(struct world *world, bool believed, uint64_t limit_ms)
{
    struct proxy_wait_options options = {
        .believed = believed, .limit_ms = limit_ms, .on_end = on_end, .data = world};
    int pair[2];

    *world = (struct world){.loop = loop_new(), .fd = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_true(address_parse(span_of("10.0.0.1:5000"), &options.peer));
    assert_true(address_parse(span_of("10.0.0.2:80"), &world->local));
    options.local = &world->local;
    world->client = pair[0];
    world->wait = proxy_wait_open(world->loop, pair[1], &options);
    assert_non_null(world->wait);
}

static void close_world(struct world *world)
{
    fd_close(&world->client);
    fd_close(&world->fd);
    loop_free(world->loop);
}

static void give(struct world *world, struct span bytes)
{
    assert_int_equal(fd_write_all(world->client, bytes), 0);
    while (!world->ended && loop_step(world->loop, 0))
        ;
}

static void assert_next_bytes(struct world *world, const char *text)
{
    char bytes[64];

    assert_int_equal(recv(world->fd, bytes, sizeof(bytes), 0), strlen(text));
    assert_memory_equal(bytes, text, strlen(text));
}

static void takes_the_header_and_nothing_behind_it(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, true, 1000);
    give(&world, span_of("PROXY TCP4 192.0.2.1 192.0.2.2 7 443\r\nGET / HTTP/1.1\r\n"));
    assert_int_equal(world.end, PROXY_WAIT_DONE);
    assert_string_equal(world.peer, "192.0.2.1:7");
    assert_string_equal(world.server, "192.0.2.2:443");
    assert_next_bytes(&world, "GET / HTTP/1.1\r\n");
    close_world(&world);
}

static void a_header_in_single_bytes_is_not_reported_again_and_again(void **state)
{
    static const char bytes[] = "PROXY UNKNOWN\r\nGET";
    struct world world;
    (void)state;

    open_world(&world, true, 1000);
    for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
        give(&world, span_make(bytes + i, 1));
        assert_int_equal(world.ended, i >= 14);
        assert_int_equal(loop_step(world.loop, 0), 0);
    }
    assert_string_equal(world.peer, "10.0.0.1:5000");
    assert_string_equal(world.server, "10.0.0.2:80");
    assert_next_bytes(&world, "GET");
    close_world(&world);
}

static void what_is_behind_the_addresses_is_dropped_however_long(void **state)
{
    static char bytes[16 + 65535 + 3] =
        "\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff\xc0\0\x02\x01\xc6\x33";
    struct world world;
    (void)state;

    open_world(&world, true, 1000);
    memcpy(bytes + sizeof(bytes) - 3, "GET", 3);
    for (size_t at = 0; at < sizeof(bytes); at += 5000)
        give(&world, span_first(span_make(bytes + at, sizeof(bytes) - at), 5000));
    assert_int_equal(world.end, PROXY_WAIT_DONE);
    assert_string_equal(world.peer, "192.0.2.1:0");
    assert_next_bytes(&world, "GET");
    close_world(&world);
}

static void a_peer_that_is_not_believed_stays_who_it_is(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, false, 1000);
    give(&world, span_of("PROXY TCP4 192.0.2.1 192.0.2.2 7 443\r\nGET"));
    assert_int_equal(world.end, PROXY_WAIT_DONE);
    assert_string_equal(world.peer, "10.0.0.1:5000");
    assert_string_equal(world.server, "10.0.0.2:80");
    assert_next_bytes(&world, "GET");
    close_world(&world);
}

static void assert_end(struct span bytes, enum proxy_wait_end end)
{
    struct world world;

    open_world(&world, true, 1000);
    give(&world, bytes);
    fd_close(&world.client);
    while (!world.ended)
        assert_true(loop_step(world.loop, 1000));
    assert_int_equal(world.end, end);
    assert_int_equal(world.fd, -1);
    close_world(&world);
}

static void what_is_no_header_closes_the_connection(void **state)
{
    (void)state;
    assert_end(span_of("GET / HTTP/1.1\r\n"), PROXY_WAIT_REFUSED);
    assert_end(span_of("PROXY TCP4 192.0.2.1"), PROXY_WAIT_REFUSED);
    assert_end(span_of("PROXY nothing\r\n"), PROXY_WAIT_REFUSED);
    assert_end(span_of(""), PROXY_WAIT_LEFT);
}

static void a_header_has_a_time_to_come(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, true, 5);
    give(&world, span_of("PROXY "));
    while (!world.ended)
        (void)loop_step(world.loop, 1000);
    assert_int_equal(world.end, PROXY_WAIT_LATE);
    close_world(&world);
}

static void closing_tells_nobody(void **state)
{
    struct world world;
    char byte;
    (void)state;

    open_world(&world, true, 1000);
    proxy_wait_close(world.wait);
    assert_false(world.ended);
    assert_int_equal(recv(world.client, &byte, 1, 0), 0);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_header_and_nothing_behind_it),
        cmocka_unit_test(a_header_in_single_bytes_is_not_reported_again_and_again),
        cmocka_unit_test(what_is_behind_the_addresses_is_dropped_however_long),
        cmocka_unit_test(a_peer_that_is_not_believed_stays_who_it_is),
        cmocka_unit_test(what_is_no_header_closes_the_connection),
        cmocka_unit_test(a_header_has_a_time_to_come),
        cmocka_unit_test(closing_tells_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

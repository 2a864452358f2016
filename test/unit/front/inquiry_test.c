/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/inquiry.c"

#include "front_world.h"

/* The front's answer to the question with that number; the entries stay in `room`. */
static unsigned hear_listing(uint64_t number, char *room, size_t size, struct listing_entry *ret)
{
    struct front_message message;
    struct pollfd poll_fd = {.fd = world.channel, .events = POLLIN};
    struct span bytes;
    unsigned count = 0;
    int fds[2];

    do {
        assert_int_equal(poll(&poll_fd, 1, WORLD_PATIENCE_MS), 1);
        assert_int_equal(front_message_receive(world.channel, &message, fds), 1);
    } while (message.kind != FRONT_REQUESTS);
    assert_int_equal(message.number, number);
    assert_true(fds[0] >= 0);
    bytes = span_make(room, (size_t)fd_read_all(fds[0], room, size));
    fd_close(&fds[0]);
    while (listing_next(&bytes, &ret[count]))
        count++;
    return count;
}

static void ask(uint32_t kind, uint64_t number, const char *id)
{
    struct front_message message = {.kind = kind, .number = number};

    (void)snprintf(message.text, sizeof(message.text), "%s", id);
    assert_int_equal(front_message_send(world.channel, &message, NULL, 0), 0);
}

static int begin(const char *id)
{
    int client = world_connect(0);
    char text[200];

    (void)snprintf(text, sizeof(text),
                   "POST /x?secret HTTP/1.1\r\nHost: a\r\nX-Request-Id: %s\r\n"
                   "Content-Length: 0\r\n\r\n",
                   id);
    world_send(client, text);
    return client;
}

static void a_front_lists_and_ends_what_it_has(void **state)
{
    static char room[4096];
    struct listing_entry entries[8];
    int running, waiting;
    (void)state;

    world_configure();
    world_start();
    ask(FRONT_REQUESTS_WANTED, 1, "");
    assert_int_equal(hear_listing(1, room, sizeof(room), entries), 0);
    atomic_store(&world.board.workers[0].pid, 4711);
    running = begin("id-1");
    (void)world_take();
    ask(FRONT_REQUESTS_WANTED, 2, "");
    assert_int_equal(hear_listing(2, room, sizeof(room), entries), 1);
    assert_int_equal(entries[0].stage, RACK_RUNNING);
    assert_int_equal(entries[0].pid, 4711);
    assert_true(span_is(entries[0].pool, "app"));
    assert_true(span_is(entries[0].path, "/x"));
    assert_true(span_is(entries[0].client, "127.0.0.1"));
    waiting = begin("id-2");
    while (queue_length(&world.board) == 0)
        (void)sched_yield();
    ask(FRONT_REQUEST_KILL, 3, "id-2");
    assert_int_equal(hear_listing(3, room, sizeof(room), entries), 1);
    assert_int_equal(entries[0].stage, RACK_QUEUED);
    assert_non_null(strstr(world_read_until(waiting, "</html>"), "HTTP/1.1 503"));
    ask(FRONT_REQUEST_KILL, 4, "id-2");
    assert_int_equal(hear_listing(4, room, sizeof(room), entries), 0);
    ask(FRONT_REQUEST_KILL, 5, "id-1");
    assert_int_equal(world_hear(FRONT_REQUEST_KILLED).worker, 0);
    assert_int_equal(hear_listing(5, room, sizeof(room), entries), 1);
    assert_non_null(strstr(world_read_until(running, "</html>"), "HTTP/1.1 502"));
    close(running);
    close(waiting);
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_front_lists_and_ends_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/stream.c"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A stream and the peer's end; what it is told is noted. */
struct client {
    struct stream stream;
    struct loop *loop;
    int peer;
    int calls;
    unsigned told;
    bool wants_again; /* on_event wants STREAM_READ again */
    bool closes;      /* on_event closes */
};

static void note(struct stream *stream, unsigned events)
{
    struct client *client = CONTAINER_OF(stream, struct client, stream);

    client->calls++;
    client->told = events;
    if (client->wants_again)
        stream_want(stream, STREAM_READ);
    client->wants_again = false;
    if (client->closes)
        stream_close(stream, false);
}

static void open_with(struct client *client, int ours, int peer)
{
    *client = (struct client){.loop = loop_new(), .peer = peer};
    assert_int_equal(fd_set_nonblocking(ours), 0);
    assert_int_equal(stream_open_socket(&client->stream, client->loop, ours, note), 0);
}

static void open_pair(struct client *client)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    open_with(client, ends[0], ends[1]);
}

static void open_tcp(struct client *client)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(here);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&here, sizeof(here)), 0);
    open_with(client, accept(listener, NULL, NULL), peer);
    fd_close(&listener);
}

static void finish(struct client *client)
{
    if (client->stream.fd != -1)
        stream_close(&client->stream, false);
    fd_close(&client->peer);
    loop_free(client->loop);
}

/* The events told by a step that does not wait. */
static unsigned step(struct client *client)
{
    client->told = 0;
    (void)loop_step(client->loop, 0);
    return client->told;
}

static void speak(struct client *client, const char *text)
{
    size_t size = strlen(text);

    assert_int_equal(write(client->peer, text, size), (ssize_t)size);
}

static void a_new_stream_wants_to_read(void **state)
{
    struct client client;
    char text[8];
    (void)state;

    open_tcp(&client);
    assert_int_equal(step(&client), 0);
    assert_int_equal(stream_read(&client.stream, text, sizeof(text)), -EAGAIN);
    speak(&client, "hello");
    (void)loop_step(client.loop, -1);
    assert_int_equal(client.told, STREAM_READ);
    assert_int_equal(stream_read(&client.stream, text, sizeof(text)), 5);
    assert_memory_equal(text, "hello", 5);
    assert_int_equal(step(&client), 0);
    finish(&client);
}

static void a_stream_that_wants_nothing_is_not_told_and_hears_of_it_later(void **state)
{
    struct client client;
    (void)state;

    open_pair(&client);
    stream_want(&client.stream, 0);
    speak(&client, "x");
    assert_int_equal(step(&client), 0);
    assert_int_equal(loop_step(client.loop, 0), 0);
    assert_int_equal(client.calls, 0);
    stream_want(&client.stream, STREAM_READ);
    assert_int_equal(step(&client), STREAM_READ);
    finish(&client);
}

static void wanting_less_changes_the_watch_only_when_the_unwanted_happens(void **state)
{
    struct client client;
    (void)state;

    open_pair(&client);
    stream_want(&client.stream, 0);
    assert_int_equal(client.stream.watch.events, EPOLLIN);
    stream_want(&client.stream, STREAM_READ);
    stream_want(&client.stream, 0);
    speak(&client, "x");
    (void)step(&client);
    assert_int_equal(client.stream.watch.events, 0);
    finish(&client);
}

static void a_stream_that_wants_to_write_is_told_while_there_is_room(void **state)
{
    static char block[65536];
    struct iovec part = {block, sizeof(block)};
    struct client client;
    ssize_t sent, total = 0, taken = 0;
    (void)state;

    open_pair(&client);
    stream_want(&client.stream, STREAM_WRITE);
    assert_int_equal(step(&client), STREAM_WRITE);
    while ((sent = stream_write(&client.stream, &part, 1, false)) > 0)
        total += sent;
    assert_int_equal(sent, -EAGAIN);
    assert_int_equal(step(&client), 0);
    while (taken < total)
        taken += read(client.peer, block, sizeof(block));
    assert_int_equal(step(&client), STREAM_WRITE);
    finish(&client);
}

static void parts_are_written_as_one_run_of_bytes(void **state)
{
    struct iovec parts[] = {{"one ", 4}, {"", 0}, {"two", 3}};
    struct client client;
    char text[16];
    (void)state;

    open_tcp(&client);
    assert_int_equal(stream_write(&client.stream, parts, 3, false), 7);
    assert_int_equal(recv(client.peer, text, 7, MSG_WAITALL), 7);
    assert_memory_equal(text, "one two", 7);
    finish(&client);
}

static void more_parts_than_the_system_takes_are_written_in_part(void **state)
{
    static struct iovec parts[PARTS_MAX + 10];
    struct client client;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        parts[i] = (struct iovec){"x", 1};
    open_pair(&client);
    assert_int_equal(stream_write(&client.stream, parts, ARRAY_LEN(parts), false), PARTS_MAX);
    finish(&client);
}

static void a_half_closed_peer_still_gets_its_answer_and_does_not_hang_up(void **state)
{
    struct iovec part = {"answer", 6};
    struct client client;
    char text[8];
    (void)state;

    open_tcp(&client);
    assert_int_equal(shutdown(client.peer, SHUT_WR), 0);
    (void)loop_step(client.loop, -1);
    assert_int_equal(client.told, STREAM_READ);
    assert_int_equal(stream_read(&client.stream, text, sizeof(text)), 0);
    stream_want(&client.stream, 0);
    assert_int_equal(step(&client), 0);
    assert_int_equal(loop_step(client.loop, 5), 0);
    assert_int_equal(stream_write(&client.stream, &part, 1, false), 6);
    assert_int_equal(recv(client.peer, text, 6, MSG_WAITALL), 6);
    finish(&client);
}

static void reset_peer(struct client *client)
{
    struct linger at_once = {.l_onoff = 1};

    assert_int_equal(setsockopt(client->peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    fd_close(&client->peer);
}

static void a_reset_is_a_hang_up_told_once_even_to_who_wants_nothing(void **state)
{
    struct client client;
    char text[8];
    (void)state;

    open_tcp(&client);
    stream_want(&client.stream, 0);
    reset_peer(&client);
    (void)loop_step(client.loop, -1);
    assert_int_equal(client.told, STREAM_HANGUP);
    assert_int_equal(step(&client), 0);
    assert_int_equal(client.calls, 1);
    assert_int_equal(stream_read(&client.stream, text, sizeof(text)), -ECONNRESET);
    finish(&client);
}

static void bytes_before_a_hang_up_are_read_when_the_owner_asks_later(void **state)
{
    struct client client;
    char text[8];
    (void)state;

    open_pair(&client);
    stream_want(&client.stream, 0);
    speak(&client, "last");
    fd_close(&client.peer);
    assert_int_equal(step(&client), STREAM_HANGUP);
    assert_int_equal(step(&client), 0);
    stream_want(&client.stream, STREAM_READ);
    assert_int_equal(step(&client), STREAM_READ | STREAM_HANGUP);
    assert_int_equal(stream_read(&client.stream, text, sizeof(text)), 4);
    assert_int_equal(stream_read(&client.stream, text, sizeof(text)), 0);
    assert_int_equal(step(&client), 0);
    finish(&client);
}

static void an_owner_that_wants_more_at_the_hang_up_is_told_again(void **state)
{
    struct client client;
    (void)state;

    open_pair(&client);
    client.wants_again = true;
    fd_close(&client.peer);
    (void)step(&client);
    assert_int_equal(client.calls, 2);
    assert_int_equal(client.told, STREAM_READ | STREAM_HANGUP);
    assert_int_equal(step(&client), 0);
    finish(&client);
}

static void after_close_nothing_is_told(void **state)
{
    struct client client;
    (void)state;

    open_pair(&client);
    fd_close(&client.peer);
    (void)step(&client);
    stream_want(&client.stream, STREAM_READ);
    stream_close(&client.stream, false);
    assert_int_equal(client.stream.fd, -1);
    assert_int_equal(step(&client), 0);
    finish(&client);
}

static void a_stream_may_be_closed_by_its_callback(void **state)
{
    struct client client;
    (void)state;

    open_pair(&client);
    client.closes = true;
    speak(&client, "x");
    assert_int_equal(step(&client), STREAM_READ);
    assert_int_equal(client.stream.fd, -1);
    finish(&client);
}

static void writing_to_a_peer_that_is_gone_is_an_error_and_no_signal(void **state)
{
    struct iovec part = {"x", 1};
    struct client client;
    (void)state;

    open_pair(&client);
    fd_close(&client.peer);
    assert_int_equal(stream_write(&client.stream, &part, 1, false), -EPIPE);
    finish(&client);
}

static void shutdown_ends_our_direction_only(void **state)
{
    struct client client;
    char text[8];
    (void)state;

    open_tcp(&client);
    stream_shutdown(&client.stream);
    assert_int_equal(recv(client.peer, text, sizeof(text), 0), 0);
    speak(&client, "late");
    (void)loop_step(client.loop, -1);
    assert_int_equal(stream_read(&client.stream, text, sizeof(text)), 4);
    finish(&client);
}

static void close_ends_in_order_and_with_reset_the_peer_sees_a_reset(void **state)
{
    struct client client;
    char byte;
    (void)state;

    open_tcp(&client);
    stream_close(&client.stream, false);
    assert_int_equal(recv(client.peer, &byte, 1, 0), 0);
    finish(&client);

    open_tcp(&client);
    stream_close(&client.stream, true);
    assert_int_equal(recv(client.peer, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    finish(&client);
}

static void a_range_of_a_file_is_sent_and_nothing_behind_its_end(void **state)
{
    struct client client;
    FILE *file = tmpfile();
    char text[8];
    int fd;
    (void)state;

    assert_non_null(file);
    fd = fileno(file);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    open_tcp(&client);
    assert_int_equal(stream_send_file(&client.stream, fd, 3, 4), 4);
    assert_int_equal(recv(client.peer, text, 4, MSG_WAITALL), 4);
    assert_memory_equal(text, "3456", 4);
    assert_int_equal(stream_send_file(&client.stream, fd, 8, 100), 2);
    assert_int_equal(stream_send_file(&client.stream, fd, 10, 5), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 10);
    (void)fclose(file);
    finish(&client);
}

static void a_file_that_cannot_be_sent_so_is_left_to_the_owner(void **state)
{
    struct client client;
    int ends[2];
    (void)state;

    open_tcp(&client);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(stream_send_file(&client.stream, ends[0], 0, 4), -EOPNOTSUPP);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    finish(&client);
}

static void a_descriptor_that_cannot_be_watched_is_closed(void **state)
{
    struct loop *loop = loop_new();
    struct stream stream;
    char path[] = "/tmp/leat-stream-XXXXXX";
    int fd = mkstemp(path);
    (void)state;

    assert_int_equal(unlink(path), 0);
    assert_int_equal(stream_open_socket(&stream, loop, fd, note), -EPERM);
    assert_int_equal(stream.fd, -1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_stream_wants_to_read),
        cmocka_unit_test(a_stream_that_wants_nothing_is_not_told_and_hears_of_it_later),
        cmocka_unit_test(wanting_less_changes_the_watch_only_when_the_unwanted_happens),
        cmocka_unit_test(a_stream_that_wants_to_write_is_told_while_there_is_room),
        cmocka_unit_test(parts_are_written_as_one_run_of_bytes),
        cmocka_unit_test(more_parts_than_the_system_takes_are_written_in_part),
        cmocka_unit_test(a_half_closed_peer_still_gets_its_answer_and_does_not_hang_up),
        cmocka_unit_test(a_reset_is_a_hang_up_told_once_even_to_who_wants_nothing),
        cmocka_unit_test(bytes_before_a_hang_up_are_read_when_the_owner_asks_later),
        cmocka_unit_test(an_owner_that_wants_more_at_the_hang_up_is_told_again),
        cmocka_unit_test(after_close_nothing_is_told),
        cmocka_unit_test(a_stream_may_be_closed_by_its_callback),
        cmocka_unit_test(writing_to_a_peer_that_is_gone_is_an_error_and_no_signal),
        cmocka_unit_test(shutdown_ends_our_direction_only),
        cmocka_unit_test(close_ends_in_order_and_with_reset_the_peer_sees_a_reset),
        cmocka_unit_test(a_range_of_a_file_is_sent_and_nothing_behind_its_end),
        cmocka_unit_test(a_file_that_cannot_be_sent_so_is_left_to_the_owner),
        cmocka_unit_test(a_descriptor_that_cannot_be_watched_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

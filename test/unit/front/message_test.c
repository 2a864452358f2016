/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/message.c"

#include <sys/socket.h>
#include <unistd.h>

static void a_message_arrives_with_its_descriptors(void **state)
{
    struct front_message sent = {.kind = FRONT_REOPEN, .pool = 3, .number = 7, .text = "words"};
    struct front_message received;
    int pair[2], pipes[2], fds[2];
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(front_message_send(pair[0], &sent, pipes, 2), 0);
    assert_int_equal(front_message_receive(pair[1], &received, fds), 1);
    assert_int_equal(received.kind, FRONT_REOPEN);
    assert_int_equal(received.number, 7);
    assert_string_equal(received.text, "words");
    assert_int_equal(write(fds[1], "x", 1), 1);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(front_message_send(pair[0], &sent, NULL, 0), 0);
    assert_int_equal(front_message_receive(pair[1], &received, fds), 1);
    assert_int_equal(fds[0], -1);
    assert_int_equal(fds[1], -1);
    assert_int_equal(front_message_receive(pair[1], &received, fds), -EAGAIN);
    close(pair[0]);
    assert_int_equal(front_message_receive(pair[1], &received, fds), 0);
    assert_int_equal(front_message_send(pair[1], &sent, NULL, 0), -EPIPE);
    close(pair[1]);
    close(pipes[0]);
    close(pipes[1]);
}

static void what_is_no_message_is_an_error(void **state)
{
    struct front_message odd = {.kind = FRONT_MESSAGE_KINDS}, received;
    int pair[2], fds[2];
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(write(pair[0], "short", 5), 5);
    assert_int_equal(front_message_receive(pair[1], &received, fds), -EPROTO);
    assert_int_equal(front_message_send(pair[0], &odd, NULL, 0), 0);
    assert_int_equal(front_message_receive(pair[1], &received, fds), -EPROTO);
    close(pair[0]);
    close(pair[1]);
}

static void every_kind_has_a_word(void **state)
{
    (void)state;

    for (uint32_t kind = 0; kind < FRONT_MESSAGE_KINDS; kind++)
        assert_non_null(front_message_word(kind));
    assert_string_equal(front_message_word(FRONT_MESSAGE_KINDS), "unknown");
}

static void the_same_build_speaks_the_same_dialect(void **state)
{
    (void)state;
    assert_int_equal(front_message_dialect(), front_message_dialect());
    assert_int_not_equal(front_message_dialect(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_arrives_with_its_descriptors),
        cmocka_unit_test(what_is_no_message_is_an_error),
        cmocka_unit_test(every_kind_has_a_word),
        cmocka_unit_test(the_same_build_speaks_the_same_dialect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/tunnel.c"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* A tunnel between a client over TCP and an application at the other end of a socket pair. */
static struct loop *loop;
static struct stream stream;
static struct tunnel tunnel;
static int client, application;
static unsigned overs;
static bool has_left;

static void on_over(struct tunnel *over, bool client_left)
{
    overs++;
    has_left = client_left;
    tunnel_close(over);
    stream_close(&stream, false);
}

static void on_former(struct stream *former, unsigned events)
{
    (void)former;
    (void)events;
    fail();
}

static void connect_client(int *ret_ours)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(here);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&here, sizeof(here)), 0);
    *ret_ours = accept(listener, NULL, NULL);
    fd_close(&listener);
}

static void open_with(const char *head, const char *early, bool client_ended)
{
    struct buf bytes = {0};
    struct tunnel_options options = {.client = &stream,
                                     .head = span_of(head),
                                     .early = &bytes,
                                     .client_ended = client_ended,
                                     .on_over = on_over,
                                     .owner = &overs};
    int pair[2], ours;

    loop = loop_new();
    overs = 0;
    connect_client(&ours);
    assert_int_equal(fd_set_nonblocking(ours), 0);
    assert_int_equal(stream_open_socket(&stream, loop, ours, on_former), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(fd_set_nonblocking(pair[0]), 0);
    application = pair[1];
    options.fd = pair[0];
    assert_int_equal(buf_append(&bytes, span_of(early)), 0);
    assert_int_equal(tunnel_open(&tunnel, &options), 0);
    assert_int_equal(bytes.size, 0);
    assert_int_equal(fd_set_nonblocking(client), 0);
    assert_int_equal(fd_set_nonblocking(application), 0);
}

/* A step that only continued what was begun has no events. */
static void turn(void)
{
    int quiet = 0;

    while (quiet < 3)
        quiet = loop_step(loop, 5) > 0 ? 0 : quiet + 1;
}

static int open_tunnel(void **state)
{
    (void)state;
    open_with("", "", false);
    turn();
    return 0;
}

static int close_tunnel(void **state)
{
    (void)state;
    if (!overs) {
        tunnel_close(&tunnel);
        assert_ptr_equal(stream.on_event, on_former);
        stream_close(&stream, false);
    }
    fd_close(&client);
    fd_close(&application);
    loop_free(loop);
    return 0;
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    turn();
}

static void expect(int fd, const char *text)
{
    char room[256];
    ssize_t size = read(fd, room, sizeof(room));

    assert_int_equal(size, (ssize_t)strlen(text));
    assert_memory_equal(room, text, strlen(text));
}

static void bytes_pass_both_ways(void **state)
{
    (void)state;
    say(client, "question");
    expect(application, "question");
    say(application, "answer");
    expect(client, "answer");
    assert_int_equal(tunnel.up.bytes, 8);
    assert_int_equal(tunnel.down.bytes, 6);
    assert_memory_equal(tunnel.down.start, "answer", 6);
}

static void what_was_there_before_goes_first(void **state)
{
    (void)state;
    open_with("HTTP/1.1 101 X\r\n\r\n", "early ", false);
    assert_int_equal(write(client, "later", 5), 5);
    assert_int_equal(write(application, "hello", 5), 5);
    turn();
    expect(client, "HTTP/1.1 101 X\r\n\r\nhello");
    expect(application, "early later");
    close_tunnel(state);
}

static void an_end_seen_before_is_passed_on_behind_the_early_bytes(void **state)
{
    (void)state;
    open_with("", "all", true);
    turn();
    expect(application, "all");
    expect(application, "");
    say(application, "still");
    expect(client, "still");
    assert_int_equal(overs, 0);
    close_tunnel(state);
}

static void the_end_of_one_direction_leaves_the_other_open(void **state)
{
    (void)state;
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    turn();
    expect(application, "");
    say(application, "late");
    expect(client, "late");
    assert_int_equal(overs, 0);
    assert_int_equal(shutdown(application, SHUT_WR), 0);
    turn();
    expect(client, "");
    assert_int_equal(overs, 1);
    assert_false(has_left);
}

static void an_application_that_half_closes_still_reads(void **state)
{
    (void)state;
    assert_int_equal(shutdown(application, SHUT_WR), 0);
    turn();
    expect(client, "");
    say(client, "more");
    expect(application, "more");
    assert_int_equal(overs, 0);
    fd_close(&client);
    turn();
    expect(application, "");
    assert_int_equal(overs, 1);
}

static void an_application_that_closes_ends_it_behind_its_last_byte(void **state)
{
    (void)state;
    assert_int_equal(write(application, "bye", 3), 3);
    fd_close(&application);
    turn();
    assert_int_equal(overs, 1);
    assert_false(has_left);
    expect(client, "bye");
    expect(client, "");
}

static void an_application_that_closes_with_bytes_unread_is_no_failure(void **state)
{
    (void)state;
    say(client, "nobody reads this");
    assert_int_equal(write(application, "bye", 3), 3);
    fd_close(&application);
    turn();
    assert_int_equal(overs, 1);
    assert_false(has_left);
    expect(client, "bye");
}

static void a_client_that_resets_is_seen_at_once(void **state)
{
    struct linger at_once = {.l_onoff = 1};
    (void)state;

    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    fd_close(&client);
    turn();
    assert_int_equal(overs, 1);
    assert_true(has_left);
    expect(application, "");
}

/* Writes until nothing more fits. */
static size_t fill(int fd)
{
    static char bytes[65536];
    size_t total = 0;
    ssize_t size;

    do {
        size = write(fd, bytes, sizeof(bytes));
        total += size > 0 ? (size_t)size : 0;
        turn();
    } while (size > 0);
    return total;
}

static size_t empty(int fd)
{
    static char bytes[65536];
    size_t total = 0;
    ssize_t size;

    while ((size = read(fd, bytes, sizeof(bytes))) > 0) {
        total += (size_t)size;
        turn();
    }
    return total;
}

static void a_slow_reader_slows_its_writer_down_in_bounded_memory(void **state)
{
    size_t down = 0, up = 0;
    (void)state;

    /* TCP takes more with time. */
    for (int i = 0; i < 100 && !(tunnel.down.rest.size && tunnel.up.rest.size); i++) {
        down += fill(application);
        up += fill(client);
    }
    assert_in_range(tunnel.down.rest.size, 1, TUNNEL_PART);
    assert_in_range(tunnel.up.rest.size, 1, TUNNEL_PART);
    assert_int_equal(empty(client), down);
    assert_int_equal(empty(application), up);
    assert_int_equal(tunnel.down.rest.room, 0);
    assert_int_equal(tunnel.up.rest.room, 0);
}

static void a_reset_is_seen_also_while_the_application_reads_nothing(void **state)
{
    struct linger at_once = {.l_onoff = 1};
    (void)state;

    fill(client);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    fd_close(&client);
    turn();
    assert_int_equal(overs, 1);
    assert_true(has_left);
}

static void an_idle_tunnel_makes_no_events(void **state)
{
    (void)state;
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    turn();
    assert_int_equal(loop_step(loop, 0), 0);
    assert_int_equal(loop_step(loop, 20), 0);
    assert_int_equal(tunnel.up.rest.room + tunnel.down.rest.room, 0);
}

static void what_an_application_does_not_read_any_more_is_dropped(void **state)
{
    (void)state;
    assert_int_equal(shutdown(application, SHUT_RD), 0);
    say(client, "into the void");
    say(client, "and again");
    assert_true(tunnel.up.is_dead);
    say(application, "but heard");
    expect(client, "but heard");
    assert_int_equal(overs, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_tunnel, close_tunnel)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_pass_both_ways),
        cmocka_unit_test(what_was_there_before_goes_first),
        cmocka_unit_test(an_end_seen_before_is_passed_on_behind_the_early_bytes),
        TEST(the_end_of_one_direction_leaves_the_other_open),
        TEST(an_application_that_half_closes_still_reads),
        TEST(an_application_that_closes_ends_it_behind_its_last_byte),
        TEST(an_application_that_closes_with_bytes_unread_is_no_failure),
        TEST(a_client_that_resets_is_seen_at_once),
        TEST(a_slow_reader_slows_its_writer_down_in_bounded_memory),
        TEST(a_reset_is_seen_also_while_the_application_reads_nothing),
        TEST(an_idle_tunnel_makes_no_events),
        TEST(what_an_application_does_not_read_any_more_is_dropped),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/listen.c"

#include <stdlib.h>

static const struct listen_options options = {.backlog = 8, .mode = 0666, .uid = -1, .gid = -1};

static struct address parsed(const char *text)
{
    struct address address;

    assert_true(address_parse(span_of(text), &address));
    return address;
}

/* A folder of its own for a test, and the address of a socket in it. */
struct room {
    char folder[256];
    struct address address;
};

static void enter(struct room *room, size_t length)
{
    char text[300];
    size_t size;

    memcpy(room->folder, "/tmp/leat-listen-XXXXXX", 24);
    assert_non_null(mkdtemp(room->folder));
    size = strlen(room->folder);
    if (size + 1 < length) {
        room->folder[size] = '/';
        memset(room->folder + size + 1, 'd', length - size - 1);
        room->folder[length] = '\0';
        assert_int_equal(mkdir(room->folder, 0700), 0);
    }
    (void)snprintf(text, sizeof(text), "unix:%s/web.sock", room->folder);
    room->address = parsed(text);
}

/* The folder must hold nothing but the socket: no temporary name may stay behind. */
static void leave(struct room *room)
{
    (void)unlink(room->address.path);
    assert_int_equal(rmdir(room->folder), 0);
    if (room->folder[23] == '/') {
        room->folder[23] = '\0';
        assert_int_equal(rmdir(room->folder), 0);
    }
}

static int open_at(const struct address *address)
{
    const char *reason = NULL;
    int fd = listen_open(address, &options, &reason);

    if (fd < 0)
        fail_msg("%d %s", fd, reason);
    return fd;
}

/* Connects and is accepted. */
static void assert_served(int listener, const struct address *address)
{
    int client = address_connect(address, 1000), accepted;
    struct address peer;

    assert_true(client >= 0);
    accepted = listen_accept(listener, &peer);
    assert_true(accepted >= 0);
    assert_int_equal(fcntl(accepted, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(accepted, F_GETFL) & O_NONBLOCK);
    assert_int_equal(peer.socket.any.sa_family, address->socket.any.sa_family);
    fd_close(&client);
    fd_close(&accepted);
}

static void a_tcp_listener_serves_and_does_not_wait(void **state)
{
    static const char *const texts[] = {"127.0.0.1:0", "[::1]:0"};
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct address address = parsed(texts[i]);
        int fd = open_at(&address);

        assert_int_equal(address_of_socket(fd, &address), 0);
        assert_int_equal(listen_accept(fd, NULL), -EAGAIN);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_served(fd, &address);
        fd_close(&fd);
    }
}

static void the_same_port_serves_ipv4_and_ipv6_apart(void **state)
{
    struct address ip6 = parsed("[::]:20201"), ip4 = parsed("0.0.0.0:20201");
    int first = open_at(&ip6), second = open_at(&ip4);
    (void)state;

    fd_close(&first);
    fd_close(&second);
}

static void a_port_with_closed_connections_can_be_taken_again_at_once(void **state)
{
    struct address address = parsed("127.0.0.1:20202");
    int fd = open_at(&address), client = address_connect(&address, 1000);
    int accepted = listen_accept(fd, NULL);
    (void)state;

    fd_close(&accepted);
    fd_close(&client);
    fd_close(&fd);
    fd = open_at(&address);
    fd_close(&fd);
}

static void a_taken_port_and_a_foreign_address_are_refused_with_words(void **state)
{
    struct address address = parsed("127.0.0.1:20203"), foreign = parsed("192.0.2.1:20203");
    int fd = open_at(&address);
    const char *reason = NULL;
    (void)state;

    assert_int_equal(listen_open(&address, &options, &reason), -EADDRINUSE);
    assert_string_equal(reason, "another process is listening on it");
    assert_int_equal(listen_open(&foreign, &options, &reason), -EADDRNOTAVAIL);
    assert_string_equal(reason, "no network interface has this address");
    fd_close(&fd);
}

static void a_unix_listener_serves_on_short_and_long_paths(void **state)
{
    static const size_t lengths[] = {0, 98, 99, 100, 200};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct room room;
        int fd;

        enter(&room, lengths[i]);
        fd = open_at(&room.address);
        assert_served(fd, &room.address);
        fd_close(&fd);
        fd = open_at(&room.address);
        assert_served(fd, &room.address);
        fd_close(&fd);
        leave(&room);
    }
}

static void a_socket_file_has_exactly_the_mode_asked_for(void **state)
{
    static const unsigned modes[] = {0666, 0660, 0600, 0777};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct listen_options exact = options;
        const char *reason = NULL;
        struct stat status;
        struct room room;
        mode_t before;
        int fd;

        enter(&room, 0);
        before = umask(i % 2 ? 0 : 077);
        exact.mode = modes[i];
        exact.uid = (long)geteuid();
        exact.gid = (long)getegid();
        fd = listen_open(&room.address, &exact, &reason);
        (void)umask(before);
        assert_true(fd >= 0);
        assert_int_equal(stat(room.address.path, &status), 0);
        assert_int_equal(status.st_mode & 07777, modes[i]);
        assert_int_equal(status.st_uid, geteuid());
        fd_close(&fd);
        leave(&room);
    }
}

static void a_socket_for_packets_keeps_messages_apart(void **state)
{
    struct listen_options packets = options;
    socklen_t size = sizeof(int);
    const char *reason = NULL;
    struct room room;
    int fd, type = 0;
    (void)state;

    enter(&room, 0);
    packets.packets = true;
    fd = listen_open(&room.address, &packets, &reason);
    assert_true(fd >= 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size), 0);
    assert_int_equal(type, SOCK_SEQPACKET);
    fd_close(&fd);
    leave(&room);
}

static void a_file_nobody_listens_on_is_replaced_by_a_new_one(void **state)
{
    struct room room;
    struct stat before, after;
    int fd;
    (void)state;

    enter(&room, 0);
    fd = open_at(&room.address);
    assert_int_equal(stat(room.address.path, &before), 0);
    fd_close(&fd);
    fd = open_at(&room.address);
    assert_int_equal(stat(room.address.path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    assert_served(fd, &room.address);
    fd_close(&fd);
    leave(&room);
}

static void a_live_socket_is_left_alone_even_when_its_backlog_is_full(void **state)
{
    struct listen_options narrow = options;
    const char *reason = NULL;
    struct room room;
    int fd, first, second;
    (void)state;

    enter(&room, 0);
    narrow.backlog = 1;
    fd = listen_open(&room.address, &narrow, &reason);
    assert_int_equal(listen_open(&room.address, &options, &reason), -EADDRINUSE);
    assert_string_equal(reason, "another process is listening on it");
    first = address_connect(&room.address, 10);
    second = address_connect(&room.address, 10);
    reason = NULL;
    assert_int_equal(listen_open(&room.address, &options, &reason), -EADDRINUSE);
    assert_string_equal(reason, "another process is listening on it");
    assert_int_equal(access(room.address.path, F_OK), 0);
    fd_close(&fd);
    fd_close(&first);
    if (second >= 0)
        fd_close(&second);
    leave(&room);
}

static void a_datagram_socket_is_left_alone(void **state)
{
    const char *reason = NULL;
    struct room room;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)state;

    enter(&room, 0);
    assert_int_equal(bind(fd, &room.address.socket.any, room.address.size), 0);
    assert_int_equal(listen_open(&room.address, &options, &reason), -EADDRINUSE);
    fd_close(&fd);
    leave(&room);
}

static void a_file_or_link_that_is_no_socket_is_left_alone(void **state)
{
    const char *reason = NULL;
    struct room room;
    int fd;
    (void)state;

    enter(&room, 0);
    fd = open(room.address.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    fd_close(&fd);
    assert_int_equal(listen_open(&room.address, &options, &reason), -EEXIST);
    assert_string_equal(reason, "the path exists and is not a socket");
    assert_int_equal(unlink(room.address.path), 0);
    assert_int_equal(symlink("elsewhere.sock", room.address.path), 0);
    assert_int_equal(listen_open(&room.address, &options, &reason), -EEXIST);
    leave(&room);
}

static void a_missing_folder_is_named_as_the_reason(void **state)
{
    struct address address = parsed("unix:/nowhere/at/all/web.sock");
    const char *reason = NULL;
    (void)state;

    assert_int_equal(listen_open(&address, &options, &reason), -ENOENT);
    assert_string_equal(reason, "its folder does not exist");
}

static void a_listener_that_fails_half_way_leaves_nothing_behind(void **state)
{
    struct place place;
    struct room room;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)state;

    enter(&room, 0);
    place.folder_fd = address_open_folder(room.address.path, &place.folder, &place.name);
    assert_int_equal(listen_on(fd, &place, "web.sock", &options), -EOPNOTSUPP);
    assert_int_equal(access(room.address.path, F_OK), -1);
    fd_close(&fd);
    fd_close(&place.folder_fd);
    leave(&room);
}

static void access_is_never_given_to_what_a_link_points_at(void **state)
{
    struct listen_options closed = options;
    const char *reason = NULL;
    struct place place;
    struct stat status;
    struct room room;
    char name[300];
    int fd;
    (void)state;

    enter(&room, 0);
    closed.mode = 0600;
    fd = listen_open(&room.address, &closed, &reason);
    (void)snprintf(name, sizeof(name), "%s/link", room.folder);
    assert_int_equal(symlink("web.sock", name), 0);
    place.folder_fd = address_open_folder(room.address.path, &place.folder, &place.name);
    assert_int_equal(set_access(&place, "link", &options), -EEXIST);
    assert_int_equal(stat(room.address.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(unlink(name), 0);
    fd_close(&fd);
    fd_close(&place.folder_fd);
    leave(&room);
}

static void when_listening_ends_those_who_wait_are_served_and_nobody_is_added(void **state)
{
    struct address address = parsed("127.0.0.1:0");
    int listener = open_at(&address), waiting[3], late, accepted;
    (void)state;

    assert_int_equal(address_of_socket(listener, &address), 0);
    for (int i = 0; i < 3; i++)
        assert_true((waiting[i] = address_connect(&address, 1000)) >= 0);
    listen_end(listener);
    late = address_connect(&address, 50);
    assert_int_equal(late, -ETIMEDOUT);
    for (int i = 0; i < 3; i++) {
        char byte = 0;

        assert_true((accepted = listen_accept(listener, NULL)) >= 0);
        assert_int_equal(send(waiting[i], "x", 1, 0), 1);
        assert_int_equal(recv(accepted, &byte, 1, MSG_DONTWAIT), 1);
        (void)close(accepted);
        (void)close(waiting[i]);
    }
    assert_int_equal(listen_accept(listener, NULL), -EAGAIN);
    (void)close(listener);
    assert_int_equal(address_connect(&address, 1000), -ECONNREFUSED);
}

static void a_connection_that_is_accepted_names_its_peer(void **state)
{
    struct address address = parsed("127.0.0.1:0"), peer, from;
    int fd = open_at(&address), client, accepted;
    (void)state;

    assert_int_equal(address_of_socket(fd, &address), 0);
    client = address_connect(&address, 1000);
    assert_int_equal(address_of_socket(client, &from), 0);
    accepted = listen_accept(fd, &peer);
    assert_true(address_equal(&peer, &from));
    assert_int_equal(listen_accept(client, &peer), -EINVAL);
    fd_close(&accepted);
    fd_close(&client);
    fd_close(&fd);
}

static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);

    assert_int_equal(getsockopt(fd, level, option, &value, &size), 0);
    return value;
}

static void connections_send_small_pieces_without_delay(void **state)
{
    struct address address = parsed("127.0.0.1:0");
    int fd = open_at(&address), client, accepted;
    (void)state;

    assert_int_equal(address_of_socket(fd, &address), 0);
    client = address_connect(&address, 1000);
    accepted = listen_accept(fd, NULL);
    assert_int_equal(option_of(accepted, IPPROTO_TCP, TCP_NODELAY), 1);
    fd_close(&accepted);
    fd_close(&client);
    fd_close(&fd);
}

static void a_listener_of_another_process_becomes_like_ours(void **state)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)state;

    assert_int_equal(listen_adopt(fd), 0);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(listen_adopt(local), 0);
    assert_int_equal(listen_adopt(-1), -EBADF);
    fd_close(&local);
    fd_close(&fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tcp_listener_serves_and_does_not_wait),
        cmocka_unit_test(the_same_port_serves_ipv4_and_ipv6_apart),
        cmocka_unit_test(a_port_with_closed_connections_can_be_taken_again_at_once),
        cmocka_unit_test(a_taken_port_and_a_foreign_address_are_refused_with_words),
        cmocka_unit_test(a_unix_listener_serves_on_short_and_long_paths),
        cmocka_unit_test(a_socket_file_has_exactly_the_mode_asked_for),
        cmocka_unit_test(a_socket_for_packets_keeps_messages_apart),
        cmocka_unit_test(a_file_nobody_listens_on_is_replaced_by_a_new_one),
        cmocka_unit_test(a_live_socket_is_left_alone_even_when_its_backlog_is_full),
        cmocka_unit_test(a_datagram_socket_is_left_alone),
        cmocka_unit_test(a_file_or_link_that_is_no_socket_is_left_alone),
        cmocka_unit_test(a_missing_folder_is_named_as_the_reason),
        cmocka_unit_test(a_listener_that_fails_half_way_leaves_nothing_behind),
        cmocka_unit_test(access_is_never_given_to_what_a_link_points_at),
        cmocka_unit_test(when_listening_ends_those_who_wait_are_served_and_nobody_is_added),
        cmocka_unit_test(a_connection_that_is_accepted_names_its_peer),
        cmocka_unit_test(connections_send_small_pieces_without_delay),
        cmocka_unit_test(a_listener_of_another_process_becomes_like_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/address.c"

#include <stdlib.h>
#include <sys/stat.h>

static struct address parsed(const char *text)
{
    struct address address;

    assert_true(address_parse(span_of(text), &address));
    return address;
}

static void addresses_are_read_and_written_back_the_same(void **state)
{
    static const char *const texts[] = {
        "127.0.0.1:80",  "0.0.0.0:0",         "255.255.255.255:65535", "[::]:3000",
        "[::1]:80",      "[2001:db8::a]:443", "[::ffff:127.0.0.1]:80", "unix:/run/leat/web.sock",
        "unix:web.sock",
    };
    char out[128];
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct address address = parsed(texts[i]);

        assert_int_equal(address_format(&address, out, sizeof(out)), strlen(texts[i]));
        assert_string_equal(out, texts[i]);
    }
}

static void what_is_no_address_is_refused_and_leaves_the_result_alone(void **state)
{
    static const char *const texts[] = {
        "",
        ":",
        "80",
        ":80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:080",
        "127.0.0.1:+80",
        "127.0.0.1: 80",
        "127.0.0.1:80 ",
        " 127.0.0.1:80",
        "127.0.0.1:8o",
        "127.0.0.1:99999999999999999999",
        "127.1:80",
        "127.0.0.01:80",
        "256.0.0.1:80",
        "localhost:80",
        "*:80",
        "::1:80",
        "[::1]",
        "[::1]:",
        "[::1]80",
        "[::1:80",
        "[]:80",
        "[127.0.0.1]:80",
        "[::1%lo]:80",
        "[::1]]:80",
        "[0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0]:80",
        "unix:",
        "unix:/run/",
        "UNIX:/a",
        "unix",
    };
    struct address address = {.size = 77};
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (address_parse(span_of(texts[i]), &address))
            fail_msg("%s was read", texts[i]);
    assert_false(address_parse(span_make("unix:/a\0b", 9), &address));
    assert_false(address_parse(span_make("127.0.0.1\0:80", 13), &address));
    assert_int_equal(address.size, 77);
}

static void a_unix_path_may_be_long_but_not_endless(void **state)
{
    char text[1100];
    struct address address;
    (void)state;

    memset(text, 'a', sizeof(text));
    memcpy(text, "unix:/", 6);
    assert_true(address_parse(span_make(text, 5 + 107), &address));
    assert_int_equal(address.size, sizeof(struct sockaddr_un));
    assert_true(address_parse(span_make(text, 5 + 108), &address));
    assert_int_equal(address.size, 0);
    assert_int_equal(strlen(address.path), 108);
    assert_true(address_parse(span_make(text, 5 + 1023), &address));
    assert_false(address_parse(span_make(text, 5 + 1024), &address));
}

static void a_host_is_written_without_port_mapped_addresses_as_plain_ones(void **state)
{
    static const char *const pairs[][2] = {
        {"10.1.2.3:80", "10.1.2.3"},
        {"[::1]:80", "::1"},
        {"[::ffff:10.1.2.3]:80", "10.1.2.3"},
        {"unix:/run/a.sock", "127.0.0.1"},
    };
    char out[64];
    (void)state;

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct address address = parsed(pairs[i][0]);

        assert_int_equal(address_format_host(&address, out, sizeof(out)), strlen(pairs[i][1]));
        assert_string_equal(out, pairs[i][1]);
    }
}

static void text_that_does_not_fit_is_cut_and_ended(void **state)
{
    struct address address = parsed("127.0.0.1:80");
    char out[6];
    (void)state;

    assert_int_equal(address_format(&address, out, sizeof(out)), 5);
    assert_string_equal(out, "127.0");
    assert_int_equal(address_format_host(&address, out, 0), 0);
}

static void ports_and_kinds_are_told(void **state)
{
    struct address ip4 = parsed("127.0.0.1:81"), ip6 = parsed("[::1]:82"),
                   local = parsed("unix:/a");
    (void)state;

    assert_int_equal(address_port(&ip4), 81);
    assert_int_equal(address_port(&ip6), 82);
    assert_int_equal(address_port(&local), 0);
    assert_true(address_is_unix(&local));
    assert_false(address_is_unix(&ip4));
}

static void addresses_are_equal_when_host_port_and_path_are(void **state)
{
    static const char *const texts[] = {
        "127.0.0.1:80", "127.0.0.1:81", "127.0.0.2:80", "[::1]:80",
        "[::2]:80",     "[::1]:81",     "unix:/a",      "unix:/b",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++) {
            struct address a = parsed(texts[i]), b = parsed(texts[j]);

            assert_int_equal(address_equal(&a, &b), i == j);
        }
}

/* A listening TCP socket on a free port of this machine, with its address. */
static int listen_somewhere(struct address *ret_address)
{
    struct address address = parsed("127.0.0.1:0");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, &address.socket.any, address.size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(address_of_socket(fd, ret_address), 0);
    assert_int_not_equal(address_port(ret_address), 0);
    return fd;
}

static void a_connection_is_made_blocking_and_close_on_exec(void **state)
{
    struct address address;
    struct timeval limit;
    socklen_t size = sizeof(limit);
    int listener = listen_somewhere(&address);
    int fd = address_connect(&address, 1000);
    (void)state;

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, &size), 0);
    assert_int_equal(limit.tv_sec, 0);
    assert_int_equal(limit.tv_usec, 0);
    fd_close(&fd);
    fd_close(&listener);
}

static void nobody_at_the_address_is_an_error_at_once(void **state)
{
    struct address address, local = parsed("unix:/nowhere/at/all.sock");
    int listener = listen_somewhere(&address);
    (void)state;

    fd_close(&listener);
    assert_int_equal(address_connect(&address, 1000), -ECONNREFUSED);
    assert_int_equal(address_connect(&local, 1000), -ENOENT);
}

/* A folder whose sockets have paths that are too long for sun_path. */
static void make_long_folder(char folder[256])
{
    memcpy(folder, "/tmp/leat-address-XXXXXX", 25);
    assert_non_null(mkdtemp(folder));
    strncat(folder, "/", 2);
    memset(folder + 25, 'd', 120);
    folder[145] = '\0';
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void remove_long_folder(char folder[256])
{
    assert_int_equal(rmdir(folder), 0);
    folder[24] = '\0';
    assert_int_equal(rmdir(folder), 0);
}

static void a_full_backlog_behind_a_long_path_ends_by_the_time_limit(void **state)
{
    char folder[256], text[300];
    struct address address;
    struct sockaddr_un local;
    struct span parent, name;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), folder_fd, first, second;
    uint64_t start_ms;
    (void)state;

    make_long_folder(folder);
    (void)snprintf(text, sizeof(text), "unix:%s/s", folder);
    address = parsed(text);
    assert_int_equal(address_connect(&address, 1000), -ENOENT);

    folder_fd = address_open_folder(address.path, &parent, &name);
    assert_true(folder_fd >= 0);
    assert_true(span_is(parent, folder) && span_is(name, "s"));
    assert_int_equal(address_in_folder(parent, folder_fd, name, &local), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&local, sizeof(local)), 0);
    assert_int_equal(listen(listener, 0), 0);

    first = address_connect(&address, 1000);
    assert_true(first >= 0);
    start_ms = clock_ms();
    second = address_connect(&address, 30);
    assert_int_equal(second, -ETIMEDOUT);
    assert_true(clock_ms() >= start_ms + 30);

    fd_close(&first);
    fd_close(&listener);
    assert_int_equal(unlinkat(folder_fd, "s", 0), 0);
    fd_close(&folder_fd);
    remove_long_folder(folder);
}

static void a_path_is_cut_into_folder_and_name(void **state)
{
    struct span folder, name;
    int fd = address_open_folder("web.sock", &folder, &name);
    (void)state;

    assert_true(fd >= 0);
    assert_true(span_is(folder, ".") && span_is(name, "web.sock"));
    fd_close(&fd);
    fd = address_open_folder("/web.sock", &folder, &name);
    assert_true(fd >= 0);
    assert_true(span_is(folder, "/") && span_is(name, "web.sock"));
    fd_close(&fd);
    assert_int_equal(address_open_folder("/nowhere/web.sock", &folder, &name), -ENOENT);
}

static void a_short_name_is_reached_by_its_path_a_long_one_through_the_folder(void **state)
{
    static const struct span run = SPAN("/run"), name = SPAN("a");
    char text[160];
    struct sockaddr_un local;
    (void)state;

    memset(text, 'n', sizeof(text));
    assert_int_equal(address_in_folder(top, 3, name, &local), 0);
    assert_string_equal(local.sun_path, "/a");
    assert_int_equal(address_in_folder(run, 3, name, &local), 0);
    assert_string_equal(local.sun_path, "/run/a");
    assert_int_equal(address_in_folder(span_make(text, 120), 3, name, &local), 0);
    assert_string_equal(local.sun_path, "/proc/self/fd/3/a");
    assert_int_equal(address_in_folder(run, 3, span_make(text, 120), &local), -ENAMETOOLONG);
}

static void the_address_of_a_unix_socket_has_its_path(void **state)
{
    struct address address, found;
    char text[] = "unix:/tmp/leat-address-XXXXXX";
    int fd = mkstemp(text + 5), listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;

    fd_close(&fd);
    assert_int_equal(unlink(text + 5), 0);
    address = parsed(text);
    assert_int_equal(bind(listener, &address.socket.any, address.size), 0);
    assert_int_equal(address_of_socket(listener, &found), 0);
    assert_true(address_equal(&address, &found));
    assert_int_equal(address_of_socket(-1, &found), -EBADF);
    fd_close(&listener);
    assert_int_equal(unlink(text + 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written_back_the_same),
        cmocka_unit_test(what_is_no_address_is_refused_and_leaves_the_result_alone),
        cmocka_unit_test(a_unix_path_may_be_long_but_not_endless),
        cmocka_unit_test(a_host_is_written_without_port_mapped_addresses_as_plain_ones),
        cmocka_unit_test(text_that_does_not_fit_is_cut_and_ended),
        cmocka_unit_test(ports_and_kinds_are_told),
        cmocka_unit_test(addresses_are_equal_when_host_port_and_path_are),
        cmocka_unit_test(a_connection_is_made_blocking_and_close_on_exec),
        cmocka_unit_test(nobody_at_the_address_is_an_error_at_once),
        cmocka_unit_test(a_full_backlog_behind_a_long_path_ends_by_the_time_limit),
        cmocka_unit_test(a_path_is_cut_into_folder_and_name),
        cmocka_unit_test(a_short_name_is_reached_by_its_path_a_long_one_through_the_folder),
        cmocka_unit_test(the_address_of_a_unix_socket_has_its_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

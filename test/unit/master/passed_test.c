/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/passed.c"

#include <fcntl.h>

/* Descriptors are passed from 3 up: these tests own 3, 4 and 5. */
enum { PASSED_FDS = 3 };

static struct environment environment;

static void set_up(const char *count, const char *names)
{
    char pid[32];

    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    environment_set(&environment, "LISTEN_PID", pid);
    environment_set(&environment, "LISTEN_FDS", count);
    if (names)
        environment_set(&environment, "LISTEN_FDNAMES", names);
}

static int tear_down(void **state)
{
    (void)state;
    environment_done(&environment);
    for (int i = 0; i < PASSED_FDS; i++)
        (void)close(FIRST + i);
    return 0;
}

/* A socket of that address as the descriptor; the address with its real port. */
static struct address pass(int fd, const char *text, int type, int only_six, bool listens)
{
    struct address address;
    int own;

    assert_true(address_parse(span_of(text), &address));
    own = socket(address.socket.any.sa_family, type, 0);
    assert_true(own >= 0);
    if (address.socket.any.sa_family == AF_INET6)
        assert_int_equal(setsockopt(own, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof only_six), 0);
    assert_int_equal(bind(own, &address.socket.any, address.size), 0);
    if (listens)
        assert_int_equal(listen(own, 1), 0);
    if (own != fd) {
        assert_int_equal(dup2(own, fd), fd);
        (void)close(own);
    }
    assert_int_equal(address_of_socket(fd, &address), 0);
    return address;
}

static void what_was_passed_to_another_process_is_not_ours(void **state)
{
    struct passed passed;

    (void)state;
    assert_int_equal(passed_count(&environment), 0);
    set_up("2", NULL);
    assert_int_equal(passed_count(&environment), 2);
    environment_set(&environment, "LISTEN_PID", "1");
    assert_int_equal(passed_count(&environment), 0);
    assert_false(passed_get(&environment, 0, &passed));
    set_up("4000000000", NULL);
    assert_int_equal(passed_count(&environment), 0);
    set_up("-1", NULL);
    assert_int_equal(passed_count(&environment), 0);
}

static void a_socket_is_found_by_its_address(void **state)
{
    struct address web, other, wanted;
    bool covered = false;

    (void)state;
    other = pass(FIRST, "127.0.0.1:0", SOCK_STREAM, 0, true);
    web = pass(FIRST + 1, "127.0.0.1:0", SOCK_STREAM, 0, true);
    set_up("2", NULL);
    assert_int_equal(passed_find(&environment, &web, &covered), FIRST + 1);
    assert_int_equal(passed_find(&environment, &other, &covered), FIRST);
    assert_true(address_parse(span_of("127.0.0.1:1"), &wanted));
    assert_int_equal(passed_find(&environment, &wanted, &covered), -1);
    assert_false(covered);
}

static void one_of_both_families_covers_all_addresses_of_ipv4(void **state)
{
    struct address address, wanted;
    char text[64];
    bool covered = false;

    (void)state;
    address = pass(FIRST, "[::]:0", SOCK_STREAM, 0, true);
    set_up("1", NULL);
    (void)snprintf(text, sizeof text, "0.0.0.0:%u", address_port(&address));
    assert_true(address_parse(span_of(text), &wanted));
    assert_int_equal(passed_find(&environment, &wanted, &covered), -1);
    assert_true(covered);
    (void)pass(FIRST, "[::]:0", SOCK_STREAM, 1, true);
    covered = false;
    assert_int_equal(passed_find(&environment, &wanted, &covered), -1);
    assert_false(covered);
}

static void each_has_its_name(void **state)
{
    struct passed passed;

    (void)state;
    (void)pass(FIRST, "127.0.0.1:0", SOCK_STREAM, 0, true);
    (void)pass(FIRST + 1, "127.0.0.1:0", SOCK_STREAM, 0, true);
    (void)pass(FIRST + 2, "127.0.0.1:0", SOCK_STREAM, 0, true);
    set_up("3", "web::");
    assert_true(passed_get(&environment, 0, &passed));
    assert_string_equal(passed.name, "web");
    assert_true(passed.listens);
    assert_true(passed_get(&environment, 1, &passed));
    assert_string_equal(passed.name, "unknown");
    set_up("3", "web:admin");
    assert_true(passed_get(&environment, 1, &passed));
    assert_string_equal(passed.name, PASSED_ADMIN);
    assert_true(passed_get(&environment, 2, &passed));
    assert_string_equal(passed.name, "unknown");
    assert_false(passed_get(&environment, 3, &passed));
}

static void what_does_not_listen_is_told_apart(void **state)
{
    struct passed passed;
    int file = open("/dev/null", O_RDONLY);

    (void)state;
    assert_int_equal(dup2(file, FIRST + 2), FIRST + 2);
    (void)pass(FIRST, "127.0.0.1:0", SOCK_DGRAM, 0, false);
    (void)pass(FIRST + 1, "127.0.0.1:0", SOCK_STREAM, 0, false);
    set_up("3", NULL);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(passed_get(&environment, i, &passed));
        assert_int_equal(passed.fd, FIRST + (int)i);
        assert_false(passed.listens);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_was_passed_to_another_process_is_not_ours, tear_down),
        cmocka_unit_test_teardown(a_socket_is_found_by_its_address, tear_down),
        cmocka_unit_test_teardown(one_of_both_families_covers_all_addresses_of_ipv4, tear_down),
        cmocka_unit_test_teardown(each_has_its_name, tear_down),
        cmocka_unit_test_teardown(what_does_not_listen_is_told_apart, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

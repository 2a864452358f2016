/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/listener.c"

static struct arena arena;

static const struct type_context context = {.arena = &arena, .folder = "/srv/app"};

static struct listener_spec parsed(const char *text)
{
    struct listener_spec spec = {0};

    assert_null(listener_parse(&context, span_of(text), &spec));
    return spec;
}

static void expect(const char *text, const char *host, unsigned port)
{
    struct listener_spec spec = parsed(text);

    if (host)
        assert_string_equal(spec.host, host);
    else
        assert_null(spec.host);
    assert_int_equal(spec.port, port);
    assert_null(spec.path);
}

static void every_form_of_the_internet_is_read(void **state)
{
    (void)state;

    expect("80", NULL, 80);
    expect("localhost", "localhost", 0);
    expect("127.0.0.1:8080", "127.0.0.1", 8080);
    expect("[::1]:8080", "::1", 8080);
    expect("[::1]", "::1", 0);
    expect("::1", "::1", 0);
    expect("*:80", "*", 80);
    expect("tcp://0.0.0.0:3000", "0.0.0.0", 3000);
    expect("tcp:127.0.0.1:3000", "127.0.0.1", 3000);
    arena_done(&arena);
}

static void sockets_with_a_path_are_relative_to_the_application(void **state)
{
    (void)state;

    assert_string_equal(parsed("unix:tmp/a.sock").path, "/srv/app/tmp/a.sock");
    assert_string_equal(parsed("unix:///run/a.sock").path, "/run/a.sock");
    assert_string_equal(parsed("unix://tmp/a.sock").path, "/srv/app/tmp/a.sock");
    arena_done(&arena);
}

static void what_is_no_place_has_a_reason(void **state)
{
    const char *const bad[] = {"0",     "65536", "a:0",   "a:b",     "[::1",   "[::1]80",
                               "a b",   ":80",   "a:",    "unix:",   "unix:/", "unix:@x",
                               "[]:80", "",      "a/b:1", "[x]:80x", "ssl://a"};
    struct listener_spec spec;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_non_null(listener_parse(&context, span_of(bad[i]), &spec));
    assert_string_equal(listener_parse(&context, span_of("70000"), &spec),
                        "a port must be from 1 to 65535");
    arena_done(&arena);
}

static void resolve(struct config *config, const char *text)
{
    struct listener_entry entry = {.spec = parsed(text)};

    assert_null(listener_resolve(&context, config, &entry));
}

static void localhost_is_both_loopbacks_and_ipv6_may_be_missing(void **state)
{
    struct config config = {0};
    (void)state;

    resolve(&config, "localhost:3000");
    assert_int_equal(config.listener_size, 2);
    assert_string_equal(config.listeners[0].address, "127.0.0.1:3000");
    assert_false(config.listeners[0].optional);
    assert_string_equal(config.listeners[1].address, "[::1]:3000");
    assert_true(config.listeners[1].optional);
    assert_string_equal(config.listeners[1].shown, "http://localhost:3000");
    arena_done(&arena);
}

static void all_addresses_are_two_listeners(void **state)
{
    struct config config = {0}, explicit = {0};
    (void)state;

    resolve(&config, "*:80");
    assert_string_equal(config.listeners[0].address, "0.0.0.0:80");
    assert_string_equal(config.listeners[1].address, "[::]:80");
    assert_true(config.listeners[1].optional);
    resolve(&explicit, "[::]:80");
    assert_int_equal(explicit.listener_size, 2);
    assert_string_equal(explicit.listeners[1].address, "[::]:80");
    assert_false(explicit.listeners[1].optional);
    arena_done(&arena);
}

static void the_same_address_is_listed_once(void **state)
{
    struct config config = {0};
    (void)state;

    resolve(&config, "localhost:80");
    resolve(&config, "[::1]:80");
    assert_int_equal(config.listener_size, 2);
    assert_false(config.listeners[1].optional);
    arena_done(&arena);
}

static void an_unknown_host_is_named(void **state)
{
    struct config config = {0};
    struct listener_entry entry = {.spec = parsed("no-such-host.invalid:80")};
    (void)state;

    assert_string_equal(listener_resolve(&context, &config, &entry),
                        "the host no-such-host.invalid is no address and not in /etc/hosts");
    arena_done(&arena);
}

static void a_line_of_the_hosts_file_may_have_remarks_and_many_names(void **state)
{
    (void)state;

    assert_string_equal(match_line((char[]){"10.0.0.7\tweb  web.local # x\n"}, "web.local"),
                        "10.0.0.7");
    assert_null(match_line((char[]){"# 10.0.0.7 web\n"}, "web"));
    assert_null(match_line((char[]){"10.0.0.7 web # other\n"}, "other"));
    assert_null(match_line((char[]){"\n"}, "web"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_the_internet_is_read),
        cmocka_unit_test(sockets_with_a_path_are_relative_to_the_application),
        cmocka_unit_test(what_is_no_place_has_a_reason),
        cmocka_unit_test(localhost_is_both_loopbacks_and_ipv6_may_be_missing),
        cmocka_unit_test(all_addresses_are_two_listeners),
        cmocka_unit_test(the_same_address_is_listed_once),
        cmocka_unit_test(an_unknown_host_is_named),
        cmocka_unit_test(a_line_of_the_hosts_file_may_have_remarks_and_many_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/unit.c"

static const char *name_of(const char *folder)
{
    static char name[UNIT_NAME];

    unit_name(folder, name);
    return name;
}

static void the_name_is_the_folders_or_that_of_the_folder_around_releases(void **state)
{
    (void)state;
    assert_string_equal(name_of("/srv/shop"), "shop");
    assert_string_equal(name_of("/srv/shop/"), "shop");
    assert_string_equal(name_of("/srv/shop/current"), "shop");
    assert_string_equal(name_of("/srv/shop/releases/20261201"), "shop");
    assert_string_equal(name_of("/current"), "current");
    assert_string_equal(name_of("/releases/7"), "7");
    assert_string_equal(name_of("/srv/my shop 100%/current"), "my-shop-100-");
    assert_string_equal(name_of("/srv/caf\xc3\xa9@1:2"), "caf---1-2");
    assert_string_equal(name_of("/"), "app");
}

static void a_long_name_is_cut_and_stays_one(void **state)
{
    char folder[400];

    (void)state;
    memset(folder, 'x', sizeof folder - 1);
    folder[0] = '/';
    folder[sizeof folder - 1] = '\0';
    assert_int_equal(strlen(name_of(folder)), UNIT_NAME - 1);
    assert_true(unit_is_name(name_of(folder)));
}

static void a_name_of_the_users_is_checked(void **state)
{
    (void)state;
    assert_true(unit_is_name("shop-2_b.c"));
    assert_false(unit_is_name(""));
    assert_false(unit_is_name("a b"));
    assert_false(unit_is_name("../shop"));
    assert_false(unit_is_name("shop@1"));
}

static void paths_that_a_unit_cannot_name_are_refused(void **state)
{
    (void)state;
    assert_null(unit_refuse_path("/srv/my shop \"100%\" $x caf\xc3\xa9"));
    assert_string_equal(unit_refuse_path("/srv/a\nb"), "has a control character in it");
    assert_string_equal(unit_refuse_path("/srv/\xff"), "is not UTF-8");
    assert_string_equal(unit_refuse_path("/srv/\xe2\x82"), "is not UTF-8");
    assert_string_equal(unit_refuse_path("/srv/a "), "ends with a space or a backslash");
    assert_string_equal(unit_refuse_path("/srv/a\\"), "ends with a space or a backslash");
}

static void assert_word(const char *text, bool is_command, const char *expected)
{
    struct buf buf = {.size = 0};

    add_word(&buf, text, is_command);
    add_byte(&buf, '\0');
    assert_string_equal(buf_span(&buf).data, expected);
    buf_done(&buf);
}

static void words_are_quoted_and_their_signs_doubled(void **state)
{
    (void)state;
    assert_word("/usr/bin/leat", true, "/usr/bin/leat");
    assert_word("[::1]:80", true, "\"[::1]:80\"");
    assert_word("a b", true, "\"a b\"");
    assert_word("100%", true, "100%%");
    assert_word("$HOME", true, "$$HOME");
    assert_word("$HOME", false, "$HOME");
    assert_word("a\"b\\c'd;", true, "\"a\\\"b\\\\c'd;\"");
    assert_word("", true, "\"\"");
}

static const char *const start[] = {"/usr/bin/leat", "start",        "-e",
                                    "production",    "/srv/my shop", NULL};
static const char *const reload[] = {"/usr/bin/leat", "reload", "/srv/my shop", NULL};
static const char *const sockets[] = {"0.0.0.0:80", "/run/100%.sock", NULL};
static struct unit_variable variables[] = {{"PATH", "/opt/my ruby/bin:/usr/bin"}};

static struct unit full(void)
{
    return (struct unit){.name = "shop",
                         .folder = "/srv/my shop",
                         .start = start,
                         .reload = reload,
                         .variables = variables,
                         .variable_size = 1,
                         .start_s = 120,
                         .stop_s = 80,
                         .sockets = sockets,
                         .backlog = 511,
                         .has_file = true,
                         .mode = 0660,
                         .owner = "www"};
}

/* A text with its NUL, until the next call. */
static const char *text_of(const struct unit *unit,
                           void (*write)(const struct unit *unit, struct buf *out))
{
    static struct buf buf;

    buf_clear(&buf);
    write(unit, &buf);
    add_byte(&buf, '\0');
    return buf_span(&buf).data;
}

static void assert_line(const char *text, const char *line)
{
    char whole[512];

    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    if (!strstr(text, whole))
        fail_msg("no line \"%s\" in:\n%s", line, text);
}

static void the_service_says_how_to_start_watch_and_stop(void **state)
{
    struct unit unit = full();
    const char *text = text_of(&unit, unit_write_service);

    (void)state;
    assert_line(text, "Type=notify");
    assert_line(text, "WorkingDirectory=/srv/my shop");
    assert_line(text, "Environment=\"PATH=/opt/my ruby/bin:/usr/bin\"");
    assert_line(text, "EnvironmentFile=-/etc/leat/shop.env");
    assert_line(text, "ExecStart=/usr/bin/leat start -e production \"/srv/my shop\"");
    assert_line(text, "ExecReload=/usr/bin/leat reload \"/srv/my shop\"");
    assert_line(text, "KillMode=mixed");
    assert_line(text, "TimeoutStartSec=120");
    assert_line(text, "TimeoutStopSec=80");
    assert_line(text, "Requires=leat-shop.socket");
    assert_line(text, "Also=leat-shop.socket");
    assert_line(text, "WantedBy=multi-user.target");
    assert_line(text, "ProtectSystem=full");
    assert_line(text, "PrivateTmp=yes");
}

static void hardening_gives_way_to_the_paths_that_are_needed(void **state)
{
    struct unit unit = full();
    const char *text;

    (void)state;
    unit.keeps_temporary = unit.writes_system = true;
    text = text_of(&unit, unit_write_service);
    assert_null(strstr(text, "PrivateTmp"));
    assert_null(strstr(text, "ProtectSystem"));
    assert_line(text, "ProtectKernelTunables=yes");
}

static void a_users_unit_asks_for_nothing_that_needs_privileges(void **state)
{
    struct unit unit = full();
    const char *text;

    (void)state;
    unit.for_user = true;
    text = text_of(&unit, unit_write_service);
    assert_line(text, "WantedBy=default.target");
    assert_line(text, "EnvironmentFile=-%h/.config/leat/shop.env");
    assert_null(strstr(text, "Protect"));
    assert_null(strstr(text, "CapabilityBoundingSet"));
    assert_null(strstr(text, "network-online"));
}

static void without_sockets_the_service_needs_none(void **state)
{
    static const char *const none[] = {NULL};
    struct unit unit = full();

    (void)state;
    unit.sockets = none;
    assert_null(strstr(text_of(&unit, unit_write_service), ".socket"));
}

static void the_socket_unit_has_every_address_and_the_files_owner(void **state)
{
    struct unit unit = full();
    const char *text = text_of(&unit, unit_write_socket);

    (void)state;
    assert_line(text, "ListenStream=0.0.0.0:80");
    assert_line(text, "ListenStream=/run/100%%.sock");
    assert_line(text, "BindIPv6Only=ipv6-only");
    assert_line(text, "Backlog=511");
    assert_line(text, "SocketMode=0660");
    assert_line(text, "SocketUser=www");
    assert_null(strstr(text, "SocketGroup"));
    unit.has_file = false;
    assert_null(strstr(text_of(&unit, unit_write_socket), "SocketMode"));
}

static void a_unit_of_ours_says_for_which_folder_it_is(void **state)
{
    struct unit unit = full();
    char folder[UNIT_FOLDER];

    (void)state;
    assert_true(unit_read_folder(span_of(text_of(&unit, unit_write_service)), folder));
    assert_string_equal(folder, "/srv/my shop");
    assert_true(unit_read_folder(span_of(text_of(&unit, unit_write_socket)), folder));
    assert_false(unit_read_folder(span_of("[Unit]\nDescription=by hand\n"), folder));
    assert_false(unit_read_folder(span_of("# Written by `leat install` for \n"), folder));
    assert_false(unit_read_folder(span_of(""), folder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_the_folders_or_that_of_the_folder_around_releases),
        cmocka_unit_test(a_long_name_is_cut_and_stays_one),
        cmocka_unit_test(a_name_of_the_users_is_checked),
        cmocka_unit_test(paths_that_a_unit_cannot_name_are_refused),
        cmocka_unit_test(words_are_quoted_and_their_signs_doubled),
        cmocka_unit_test(the_service_says_how_to_start_watch_and_stop),
        cmocka_unit_test(hardening_gives_way_to_the_paths_that_are_needed),
        cmocka_unit_test(a_users_unit_asks_for_nothing_that_needs_privileges),
        cmocka_unit_test(without_sockets_the_service_needs_none),
        cmocka_unit_test(the_socket_unit_has_every_address_and_the_files_owner),
        cmocka_unit_test(a_unit_of_ours_says_for_which_folder_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

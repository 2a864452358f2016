/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/mime.c"

#include <unistd.h>

static void assert_type(const char *name, const char *type)
{
    struct span found = mime_find(span_of(name));
    char text[128];

    assert_true(found.size < sizeof(text));
    memcpy(text, found.data, found.size);
    text[found.size] = 0;
    assert_string_equal(text, type);
}

static int setup(void **state)
{
    (void)state;
    mime_load();
    return 0;
}

static void knows_what_web_applications_send(void **state)
{
    (void)state;
    assert_type("index.html", "text/html; charset=utf-8");
    assert_type("assets/app.css", "text/css; charset=utf-8");
    assert_type("app.js", "text/javascript; charset=utf-8");
    assert_type("logo.svg", "image/svg+xml");
    assert_type("font.woff2", "font/woff2");
}

static void looks_at_the_last_dot_of_the_last_segment_in_any_case(void **state)
{
    (void)state;
    assert_type("a.b/PHOTO.JPG", "image/jpeg");
    assert_type("jquery.min.js", "text/javascript; charset=utf-8");
    assert_type("folder.js/name", "application/octet-stream");
}

static void what_is_not_known_is_bytes(void **state)
{
    (void)state;
    assert_type("", "application/octet-stream");
    assert_type("name.", "application/octet-stream");
    assert_type("LICENSE", "application/octet-stream");
    assert_type("x.nobody-has-this", "application/octet-stream");
    assert_type("x.an-extension-longer-than-any", "application/octet-stream");
}

static void the_systems_list_adds_types_but_never_replaces_ours(void **state)
{
    char path[] = "/tmp/mime-test-XXXXXX";
    static const char list[] = "# comment\n"
                               "\n"
                               "application/x-none\n"
                               "application/x-own\t\towntype  owntype2\n"
                               "text/x-own otext css\n"
                               "text/x-later otext\n";
    int fd = mkstemp(path);
    (void)state;

    assert_int_equal(write(fd, list, sizeof(list) - 1), sizeof(list) - 1);
    close(fd);
    load_system(path);
    unlink(path);
    assert_type("a.owntype", "application/x-own");
    assert_type("a.owntype2", "application/x-own");
    assert_type("a.otext", "text/x-own; charset=utf-8");
    assert_type("a.css", "text/css; charset=utf-8");
}

static void a_missing_list_changes_nothing(void **state)
{
    (void)state;
    load_system("/nonexistent/mime.types");
    assert_type("a.html", "text/html; charset=utf-8");
}

static int teardown(void **state)
{
    (void)state;
    map_done(&types);
    arena_done(&system_memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_web_applications_send),
        cmocka_unit_test(looks_at_the_last_dot_of_the_last_segment_in_any_case),
        cmocka_unit_test(what_is_not_known_is_bytes),
        cmocka_unit_test(the_systems_list_adds_types_but_never_replaces_ours),
        cmocka_unit_test(a_missing_list_changes_nothing),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

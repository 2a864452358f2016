/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/form.c"

#include "base/log.h"

#include "static_world.h"

static int setup(void **state)
{
    log_to(-1);
    return world_setup(state);
}

static void find(const char *path, const char *accept)
{
    begin("GET", path, "accept-encoding", accept, NULL);
    static_find(&world.exchange, world.cache, &world.root, on_world_missing);
    run();
}

/* The first answer comes through a file thread, the second from the cache. */
static void assert_form(const char *path, const char *accept, const char *coding, const char *text)
{
    for (int i = 0; i < 2; i++) {
        find(path, accept);
        assert_string_equal(field("content-encoding"), coding);
        assert_string_equal(field("vary"), "accept-encoding");
        assert_string_equal(field("content-type"), "text/css; charset=utf-8");
        assert_string_equal(body(), text);
    }
}

static void a_form_counts_while_it_is_not_older(void **state)
{
    const struct resolve_identity file = {.modified = {100, 500}};
    (void)state;

    assert_true(form_is_current(&(struct resolve_identity){.modified = {100, 500}}, &file));
    assert_true(form_is_current(&(struct resolve_identity){.modified = {101, 0}}, &file));
    assert_true(form_is_current(&(struct resolve_identity){.modified = {100, 0}}, &file));
    assert_false(form_is_current(&(struct resolve_identity){.modified = {100, 499}}, &file));
    assert_false(form_is_current(&(struct resolve_identity){.modified = {99, 999}}, &file));
}

static void the_form_that_the_client_wants_is_sent(void **state)
{
    (void)state;
    write_text("public/a.css", "plain");
    write_text("public/a.css.gz", "in gzip");
    write_text("public/a.css.br", "in br");
    assert_form("/a.css", "gzip, br", "br", "in br");
    assert_form("/a.css", "gzip", "gzip", "in gzip");
    assert_form("/a.css", "zstd", "", "plain");
    assert_form("/a.css", "br;q=0.1, gzip;q=0.2", "gzip", "in gzip");
}

static void a_file_without_neighbours_does_not_vary(void **state)
{
    (void)state;
    write_text("public/a.css", "plain");
    for (int i = 0; i < 2; i++) {
        find("/a.css", "gzip");
        assert_string_equal(field("vary"), "");
        assert_string_equal(body(), "plain");
    }
}

static void a_neighbour_that_goes_or_falls_behind_counts_no_more(void **state)
{
    struct timespec later[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};
    (void)state;

    write_text("public/a.css", "plain");
    write_text("public/a.css.gz", "in gzip");
    write_text("public/a.css.br", "in br");
    assert_form("/a.css", "gzip, br", "br", "in br");
    assert_int_equal(unlink(in_world("public/a.css.br")), 0);
    assert_form("/a.css", "gzip, br", "gzip", "in gzip");
    assert_int_equal(utimensat(AT_FDCWD, in_world("public/a.css"), later, 0), 0);
    find("/a.css", "gzip, br");
    assert_string_equal(field("content-encoding"), "");
    assert_string_equal(field("vary"), "");
}

static void a_neighbour_that_is_being_written_does_not_count(void **state)
{
    int fd;
    (void)state;

    write_text("public/a.css", "plain");
    fd = open(in_world("public/a.css.gz"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "ha", 2), 2);
    find("/a.css", "gzip");
    assert_string_equal(body(), "plain");
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_form_counts_while_it_is_not_older),
        TEST(the_form_that_the_client_wants_is_sent),
        TEST(a_file_without_neighbours_does_not_vary),
        TEST(a_neighbour_that_goes_or_falls_behind_counts_no_more),
        TEST(a_neighbour_that_is_being_written_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

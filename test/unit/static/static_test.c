/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/static.c"

#include "static_world.h"

static int setup(void **state)
{
    log_to(-1);
    return world_setup(state);
}

/* Asks, and asks again: the first answer comes through a file thread, the second from the cache. */
static void get(const char *path)
{
    begin("GET", path, NULL);
    static_find(&world.exchange, world.cache, &world.root, on_world_missing);
    run();
}

static void assert_page(const char *path, const char *text)
{
    for (int i = 0; i < 3; i++) {
        int missing = world.missing;

        get(path);
        if (!text) {
            assert_int_equal(world.missing, missing + 1);
            continue;
        }
        assert_int_equal(world.missing, missing);
        assert_int_equal(world.exchange.response.status, 200);
        assert_string_equal(body(), text);
    }
}

static void tries_the_name_then_html_then_the_index_of_a_folder(void **state)
{
    (void)state;
    write_text("public/a.txt", "file a");
    write_text("public/posts.html", "posts page");
    make_folder("public/docs");
    write_text("public/docs/index.html", "docs index");
    make_folder("public/both");
    write_text("public/both/index.html", "index");
    write_text("public/both.html", "page");
    write_text("public/index.html", "home");
    assert_page("/a.txt", "file a");
    assert_page("/posts", "posts page");
    assert_page("/docs", "docs index");
    assert_page("/docs/", "docs index");
    assert_page("/both", "page");
    assert_page("/both/", "index");
    assert_page("/", "home");
    assert_page("/none", NULL);
    assert_page("/posts/", NULL);
    assert_page("/a.txt/", NULL);
}

static void names_are_decoded_exactly_once(void **state)
{
    (void)state;
    write_text("public/a b.html", "space");
    write_text("public/100%25.txt", "percent 25");
    write_text("public/caf\xc3\xa9.txt", "cafe");
    write_text("public/plus+.js", "plus");
    assert_page("/a%20b.html", "space");
    assert_page("/100%2525.txt", "percent 25");
    assert_page("/caf%c3%a9.txt", "cafe");
    assert_page("/plus+.js", "plus");
    assert_page("/a+b.html", NULL);
    assert_page("/100%25.txt", NULL);
}

static void nothing_leads_out_of_the_root(void **state)
{
    (void)state;
    write_text("secret", "secret");
    make_link("../secret", "public/link");
    make_link("/etc/hostname", "public/absolute");
    assert_page("/../secret", NULL);
    assert_page("/%2e%2e/secret", NULL);
    assert_page("/..%2fsecret", NULL);
    assert_page("//etc/hostname", NULL);
    assert_page("/a%00", NULL);
}

static void a_link_that_leads_out_of_the_root_is_refused(void **state)
{
    (void)state;
    write_text("secret", "secret");
    make_link("../secret", "public/link");
    make_link("/etc/hostname", "public/absolute");
    get("/link");
    get("/absolute");
    assert_int_equal(world.refused, 2);
    assert_int_equal(world.missing, 0);
    write_text("public/link.html", "page");
    assert_page("/link", "page");
}

static void a_root_that_cannot_be_entered_leaves_all_to_the_application(void **state)
{
    (void)state;
    make_link("round", "round");
    snprintf(world.root_path, sizeof(world.root_path), "%s/round", world.folder);
    get("/page");
    assert_int_equal(world.refused, 0);
    assert_int_equal(world.missing, 1);
}

static void dot_names_and_sources_are_not_sent(void **state)
{
    (void)state;
    write_text("public/.env", "leak");
    write_text("public/app.rb", "leak");
    make_folder("public/.well-known");
    write_text("public/.well-known/x", "known");
    assert_page("/.env", NULL);
    assert_page("/%2eenv", NULL);
    assert_page("/app.rb", NULL);
    assert_page("/.well-known/x", "known");
}

static void what_comes_changes_and_goes_is_noticed_at_once(void **state)
{
    char tag[64];
    (void)state;
    assert_page("/page", NULL);
    write_text("public/page.html", "one");
    assert_page("/page", "one");
    snprintf(tag, sizeof(tag), "%s", field("etag"));
    write_text("public/page.html", "two");
    assert_page("/page", "two");
    assert_string_not_equal(field("etag"), tag);
    write_text("public/new", "three");
    assert_int_equal(rename(in_world("public/new"), "/tmp/none/none"), -1);
    {
        char from[PATH_MAX];

        snprintf(from, sizeof(from), "%s", in_world("public/new"));
        assert_int_equal(rename(from, in_world("public/page.html")), 0);
    }
    assert_page("/page", "three");
    unlink(in_world("public/page.html"));
    assert_page("/page", NULL);
}

static void a_version_of_the_same_second_is_not_taken_for_the_one_before(void **state)
{
    struct timespec times[2] = {{1700000000, 1}, {1700000000, 1}};
    char date[64];
    (void)state;
    write_text("public/a", "aaaa");
    assert_int_equal(utimensat(AT_FDCWD, in_world("public/a"), times, 0), 0);
    assert_page("/a", "aaaa");
    snprintf(date, sizeof(date), "%s", field("last-modified"));
    write_text("public/a", "bbbb");
    times[1].tv_nsec = 2;
    assert_int_equal(utimensat(AT_FDCWD, in_world("public/a"), times, 0), 0);
    begin("GET", "/a", "if-modified-since", date, NULL);
    static_find(&world.exchange, world.cache, &world.root, on_world_missing);
    run();
    assert_int_equal(world.exchange.response.status, 200);
    assert_string_equal(body(), "bbbb");
}

static void a_root_whose_link_moves_is_followed_at_once(void **state)
{
    static char root[PATH_MAX];
    char new[PATH_MAX];
    (void)state;
    make_folder("one");
    make_folder("two");
    write_text("one/v", "1");
    write_text("two/v", "2");
    write_text("one/old", "old");
    make_link("one", "current");
    snprintf(root, sizeof(root), "%s/current", world.folder);
    world.root.folder = root;
    assert_page("/v", "1");
    assert_page("/old", "old");
    make_link("two", "next");
    snprintf(new, sizeof(new), "%s", in_world("next"));
    assert_int_equal(rename(new, root), 0);
    assert_page("/v", "2");
    assert_page("/old", NULL);
}

static void a_missing_root_holds_nothing_and_may_come_later(void **state)
{
    static char root[PATH_MAX];
    (void)state;
    snprintf(root, sizeof(root), "%s/later", world.folder);
    world.root.folder = root;
    assert_page("/a", NULL);
    make_folder("later");
    write_text("later/a", "a");
    assert_page("/a", "a");
}

static void a_static_site_redirects_to_the_folder(void **state)
{
    (void)state;
    world.root.directories = true;
    make_folder("public/docs");
    write_text("public/docs/index.html", "docs");
    for (int i = 0; i < 2; i++) {
        begin("GET", "//docs", NULL);
        world.exchange.request.query = span_of("a=b");
        world.exchange.request.has_query = true;
        static_find(&world.exchange, world.cache, &world.root, on_world_missing);
        run();
        assert_int_equal(world.exchange.response.status, 301);
        assert_string_equal(field("location"), "/docs/?a=b");
    }
    assert_page("/docs/", "docs");
}

static void get_with_query(const char *path)
{
    begin("GET", path, NULL);
    world.exchange.request.query = span_of("a=1");
    world.exchange.request.has_query = true;
    static_find(&world.exchange, world.cache, &world.root, on_world_missing);
    run();
}

static void cached_pages_answer_a_query_only_when_the_site_says_so(void **state)
{
    (void)state;
    write_text("public/posts.html", "posts");
    write_text("public/index.html", "home");
    get_with_query("/posts");
    get_with_query("/");
    assert_int_equal(world.missing, 2);
    assert_page("/posts", "posts");
    get_with_query("/posts.html");
    assert_string_equal(body(), "posts");
    world.root.page_query = true;
    get_with_query("/posts");
    assert_string_equal(body(), "posts");
    world.root.page_query = false;
    world.root.directories = true;
    get_with_query("/");
    assert_string_equal(body(), "home");
    assert_int_equal(world.missing, 2);
}

static void a_page_that_somebody_writes_is_not_there_yet(void **state)
{
    int fd;
    (void)state;

    write_text("public/posts.html", "old");
    write_text("public/a.txt", "text");
    assert_page("/posts", "old");
    fd = open(in_world("public/posts.html"), O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_page("/posts", NULL);
    assert_int_equal(write(fd, "new", 3), 3);
    assert_page("/posts", NULL);
    assert_page("/posts.html", NULL);
    close(fd);
    assert_page("/posts", "new");
    fd = open(in_world("public/a.txt"), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_page("/a.txt", "text"); /* a log, say */
    close(fd);
}

static void find_file(const char *name, unsigned status, bool full)
{
    begin("POST", "/any", "range", "bytes=0-0", NULL);
    static_find_file(&world.exchange, world.cache, &world.root, span_of(name), status, full,
                     on_world_missing);
    run();
}

static void one_file_is_found_by_its_name_alone(void **state)
{
    (void)state;
    write_text("public/.hidden", "dot");
    write_text("public/a.html", "page");
    for (int i = 0; i < 2; i++) {
        find_file("a.html", 503, false);
        assert_int_equal(world.exchange.response.status, 503);
        assert_string_equal(body(), "page");
        assert_string_equal(field("etag"), "");
    }
    find_file("a", 200, true);
    find_file("", 200, true);
    find_file(".hidden", 200, true);
    assert_int_equal(world.missing, 3);
    world.root.any_name = true;
    get("/"); /* another batch: what was missing is looked for anew */
    find_file(".hidden", 200, true);
    assert_string_equal(body(), "dot");
}

static void a_cancelled_look_up_touches_its_exchange_no_more(void **state)
{
    (void)state;
    write_text("public/a", "a");
    begin("GET", "/a", NULL);
    static_find(&world.exchange, world.cache, &world.root, on_world_missing);
    assert_non_null(world.exchange.handler);
    exchange_abort(&world.exchange, REFUSAL_CLIENT_LEFT);
    exchange_reset(&world.exchange);
    memset(&world.exchange.response, 0xee, sizeof(world.exchange.response));
    loop_step(world.loop, 2000);
    exchange_init(&world.exchange, world.loop, &world_conn, &world_service, NULL);
    assert_page("/a", "a");
}

static void the_cache_may_go_while_file_threads_look(void **state)
{
    (void)state;
    write_text("public/a", "a");
    begin("GET", "/a", NULL);
    static_find(&world.exchange, world.cache, &world.root, on_world_missing);
    exchange_abort(&world.exchange, REFUSAL_CLIENT_LEFT);
    static_cache_free(world.cache);
    world.cache = NULL;
}

static void a_descriptor_from_elsewhere_is_sent(void **state)
{
    int fds[2];
    (void)state;
    write_bytes("big", 100000);
    begin("GET", "/any", NULL);
    assert_true(static_send_open(&world.exchange, NULL, open(in_world("big"), O_RDONLY | O_CLOEXEC),
                                 span_of("big.css"), 200, true));
    run();
    assert_int_equal(world.body.size, 100000);
    assert_string_equal(field("content-type"), "text/css; charset=utf-8");
    assert_string_not_equal(field("etag"), "");
    begin("GET", "/any", NULL);
    exchange_add_field(&world.exchange, span_of("content-type"), span_of("text/own"));
    assert_true(static_send_open(&world.exchange, NULL, open(in_world("big"), O_RDONLY | O_CLOEXEC),
                                 span_of("big.css"), 404, false));
    run();
    assert_int_equal(world.exchange.response.status, 404);
    assert_string_equal(field("content-type"), "text/own");
    assert_string_equal(field("etag"), "");
    assert_int_equal(pipe(fds), 0);
    begin("GET", "/any", NULL);
    assert_false(static_send_open(&world.exchange, NULL, fds[0], span_of("x"), 200, true));
    close(fds[1]);
    world.exchange.response.ended = true;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tries_the_name_then_html_then_the_index_of_a_folder),
        TEST(names_are_decoded_exactly_once),
        TEST(nothing_leads_out_of_the_root),
        TEST(a_link_that_leads_out_of_the_root_is_refused),
        TEST(a_root_that_cannot_be_entered_leaves_all_to_the_application),
        TEST(dot_names_and_sources_are_not_sent),
        TEST(what_comes_changes_and_goes_is_noticed_at_once),
        TEST(a_version_of_the_same_second_is_not_taken_for_the_one_before),
        TEST(a_root_whose_link_moves_is_followed_at_once),
        TEST(a_missing_root_holds_nothing_and_may_come_later),
        TEST(a_static_site_redirects_to_the_folder),
        TEST(cached_pages_answer_a_query_only_when_the_site_says_so),
        TEST(a_page_that_somebody_writes_is_not_there_yet),
        TEST(one_file_is_found_by_its_name_alone),
        TEST(a_cancelled_look_up_touches_its_exchange_no_more),
        TEST(the_cache_may_go_while_file_threads_look),
        TEST(a_descriptor_from_elsewhere_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

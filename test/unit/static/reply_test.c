/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/reply.c"

#include "static_world.h"

static void send_form(const char *name, enum coding coding)
{
    struct resolve_identity identity;
    int fd = open(in_world(name), O_RDONLY | O_CLOEXEC);
    struct open_file *file;
    struct form form;

    assert_true(resolve_identify(fd, &identity));
    file = open_file_new(fd, &identity, span_of(name));
    open_file_load(file, OPEN_FILE_SMALL);
    form = form_coded(file, file, coding);
    form.varies = coding != CODING_IDENTITY;
    reply_send(&world.exchange, world.offload, world.post, &form, 200, true);
    open_file_unref(file);
    run();
}

static void send_file(const char *name)
{
    send_form(name, CODING_IDENTITY);
}

static void assert_status(unsigned status, int64_t length)
{
    assert_int_equal(world.exchange.response.status, status);
    assert_int_equal(world.exchange.response.length, length);
    assert_false(world.exchange.response.cut);
}

static void a_whole_file_has_type_length_and_validators(void **state)
{
    (void)state;
    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", NULL);
    send_file("a.txt");
    assert_status(200, 10);
    assert_string_equal(body(), "0123456789");
    assert_string_equal(field("content-type"), "text/plain; charset=utf-8");
    assert_string_equal(field("accept-ranges"), "bytes");
    assert_int_equal(strlen(field("last-modified")), 29);
    assert_int_equal(field("etag")[0], '"');
    assert_string_equal(field("cache-control"), "");
}

static void head_says_the_same_without_a_body(void **state)
{
    (void)state;
    write_text("a.txt", "0123456789");
    begin("HEAD", "/a.txt", "range", "bytes=0-1", NULL);
    send_file("a.txt");
    assert_status(200, 10);
    assert_int_equal(world.body.size, 0);
}

static void an_empty_file_is_an_answer(void **state)
{
    (void)state;
    write_text("a.txt", "");
    begin("GET", "/a.txt", NULL);
    send_file("a.txt");
    assert_status(200, 0);
}

static void a_known_version_is_not_sent_again(void **state)
{
    char tag[64];
    (void)state;
    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", NULL);
    send_file("a.txt");
    snprintf(tag, sizeof(tag), "%s", field("etag"));
    begin("GET", "/a.txt", "if-none-match", tag, NULL);
    send_file("a.txt");
    assert_int_equal(world.exchange.response.status, 304);
    assert_string_equal(field("etag"), tag);
    assert_string_equal(field("content-type"), "");
    begin("GET", "/a.txt", "if-match", "\"other\"", NULL);
    send_file("a.txt");
    assert_status(412, 0);
}

static void one_part_is_206_with_its_place(void **state)
{
    (void)state;
    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", "range", "bytes=2-4", NULL);
    send_file("a.txt");
    assert_status(206, 3);
    assert_string_equal(body(), "234");
    assert_string_equal(field("content-range"), "bytes 2-4/10");
}

static void a_part_outside_is_416_with_the_length(void **state)
{
    (void)state;
    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", "range", "bytes=10-", NULL);
    send_file("a.txt");
    assert_status(416, 0);
    assert_string_equal(field("content-range"), "bytes */10");
}

static void a_part_of_another_version_becomes_the_whole_file(void **state)
{
    (void)state;
    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", "range", "bytes=2-4", "if-range", "\"other\"", NULL);
    send_file("a.txt");
    assert_status(200, 10);
    begin("GET", "/a.txt", "range", "bytes=2-4", "range", "bytes=5-6", NULL);
    send_file("a.txt");
    assert_status(200, 10);
}

static void several_parts_come_in_one_body(void **state)
{
    char expected[1024], boundary[32];
    (void)state;
    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", "range", "bytes=0-1,-2", NULL);
    send_file("a.txt");
    assert_int_equal(sscanf(field("content-type"), "multipart/byteranges; boundary=%31s", boundary),
                     1);
    snprintf(expected, sizeof(expected),
             "\r\n--%s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes "
             "0-1/10\r\n\r\n01"
             "\r\n--%s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes "
             "8-9/10\r\n\r\n89"
             "\r\n--%s--\r\n",
             boundary, boundary, boundary);
    assert_status(206, (int64_t)strlen(expected));
    assert_string_equal(body(), expected);
}

static void assets_with_a_digest_never_change(void **state)
{
    (void)state;
    make_folder("assets");
    write_text("assets/app-0123456789abcdef.js", "1");
    begin("GET", "/x", NULL);
    send_file("assets/app-0123456789abcdef.js");
    assert_string_equal(field("cache-control"), "public, max-age=31536000, immutable");
}

static void what_the_application_said_wins(void **state)
{
    (void)state;
    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", "if-none-match", "\"app\"", NULL);
    exchange_add_field(&world.exchange, span_of("etag"), span_of("\"app\""));
    exchange_add_field(&world.exchange, span_of("content-length"), span_of("99"));
    send_file("a.txt");
    assert_int_equal(world.exchange.response.status, 304);
    assert_string_equal(field("etag"), "\"app\"");
    assert_string_equal(field("content-length"), "");
}

static void no_date_lies_in_the_future(void **state)
{
    struct timespec times[2] = {{4000000000, 0}, {4000000000, 0}};
    (void)state;
    write_text("a.txt", "0123456789");
    assert_int_equal(utimensat(AT_FDCWD, in_world("a.txt"), times, 0), 0);
    begin("GET", "/a.txt", NULL);
    send_file("a.txt");
    assert_null(strstr(field("last-modified"), "2096"));
}

static void a_form_names_its_coding_and_has_ranges_of_its_own(void **state)
{
    (void)state;
    write_text("a.css", "0123456789");
    begin("GET", "/a.css", "range", "bytes=2-3", NULL);
    send_form("a.css", CODING_GZIP);
    assert_status(206, 2);
    assert_string_equal(field("content-encoding"), "gzip");
    assert_string_equal(field("vary"), "accept-encoding");
    begin("GET", "/a.css", "range", "bytes=0-0,5-5", NULL);
    send_form("a.css", CODING_GZIP);
    assert_status(200, 10);
    begin("GET", "/a.css", "if-none-match", "*", NULL);
    send_form("a.css", CODING_GZIP);
    assert_status(304, 0);
    assert_string_equal(field("content-encoding"), "");
    assert_string_equal(field("vary"), "accept-encoding");
}

static void the_application_s_date_is_the_one_that_counts(void **state)
{
    static const char date[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    (void)state;

    write_text("a.txt", "0123456789");
    begin("GET", "/a.txt", "if-modified-since", date, NULL);
    exchange_add_field(&world.exchange, span_of("last-modified"), span_of(date));
    exchange_add_field(&world.exchange, span_of("accept-ranges"), span_of("bytes"));
    send_file("a.txt");
    assert_status(304, 0);
    assert_int_equal(fields_count(&world.exchange.response.fields, FIELD_ID_LAST_MODIFIED), 1);
}

static void a_redirect_never_names_another_host(void **state)
{
    (void)state;
    begin("GET", "///host/docs", NULL);
    reply_redirect(&world.exchange);
    assert_status(301, 0);
    assert_string_equal(field("location"), "/host/docs/");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_file_has_type_length_and_validators),
        TEST(head_says_the_same_without_a_body),
        TEST(an_empty_file_is_an_answer),
        TEST(a_known_version_is_not_sent_again),
        TEST(one_part_is_206_with_its_place),
        TEST(a_part_outside_is_416_with_the_length),
        TEST(a_part_of_another_version_becomes_the_whole_file),
        TEST(several_parts_come_in_one_body),
        TEST(assets_with_a_digest_never_change),
        TEST(what_the_application_said_wins),
        TEST(no_date_lies_in_the_future),
        TEST(a_form_names_its_coding_and_has_ranges_of_its_own),
        TEST(the_application_s_date_is_the_one_that_counts),
        TEST(a_redirect_never_names_another_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/access_log_format.c"

/* 2026-12-01 10:00:00.123 UTC */
enum { SECONDS = 1796119200 };

static const uint64_t wall_ms = SECONDS * 1000ull + 123;

static struct exchange *make(void)
{
    static struct exchange exchange;

    exchange_init(&exchange, NULL, NULL, NULL, NULL);
    exchange.client.address = span_of("192.0.2.7");
    exchange.request.method_text = span_of("GET");
    exchange.request.target = span_of("/a?b=1");
    exchange.request.path = span_of("/a");
    exchange.request.query = span_of("b=1");
    exchange.request.host = span_of("example.com");
    exchange.request.minor = 1;
    exchange.response.status = 200;
    exchange.response.written = 17;
    exchange.id = span_of("abc");
    return &exchange;
}

static const char *combined(const struct exchange *exchange, struct buf *out)
{
    assert_int_equal(access_log_format_combined(out, exchange, wall_ms), 0);
    assert_int_equal(buf_append_byte(out, '\0'), 0);
    return buf_span(out).data;
}

static void the_combined_form_is_what_tools_read(void **state)
{
    struct exchange *exchange = make();
    struct buf out = {0};
    (void)state;

    fields_add(&exchange->request.fields, span_of("user-agent"), span_of("test/1.0"));
    assert_string_equal(combined(exchange, &out),
                        "192.0.2.7 - - [01/Dec/2026:10:00:00 +0000] \"GET /a?b=1 HTTP/1.1\" 200 17 "
                        "\"-\" \"test/1.0\"\n");
    buf_done(&out);
    exchange_done(exchange);
}

static void nothing_a_client_sends_ends_a_quoted_part_or_a_line(void **state)
{
    struct exchange *exchange = make();
    struct buf out = {0};
    (void)state;

    exchange->request.target = span_of("/\"\\\n\x7f\xc3\xa9");
    fields_add(&exchange->request.fields, span_of("referer"), span_of("a\" b"));
    assert_string_equal(combined(exchange, &out),
                        "192.0.2.7 - - [01/Dec/2026:10:00:00 +0000] \"GET "
                        "/\\x22\\x5c\\x0a\\x7f\\xc3\\xa9 HTTP/1.1\" 200 17 \"a\\x22 b\" \"-\"\n");
    buf_done(&out);
    exchange_done(exchange);
}

static void a_request_that_could_not_be_read_has_a_line_too(void **state)
{
    struct exchange *exchange = make();
    struct buf out = {0};
    (void)state;

    exchange->request.method_text = exchange->client.address = (struct span){0};
    exchange->response.status = 400;
    assert_string_equal(combined(exchange, &out),
                        "- - - [01/Dec/2026:10:00:00 +0000] \"-\" 400 17 \"-\" \"-\"\n");
    buf_done(&out);
    exchange_done(exchange);
}

static void a_client_that_left_before_the_answer_is_499(void **state)
{
    struct exchange *exchange = make();
    (void)state;

    exchange->refusal = REFUSAL_CLIENT_LEFT;
    assert_int_equal(access_log_status(exchange), 200);
    exchange->response.status = 0;
    assert_int_equal(access_log_status(exchange), 499);
    exchange_done(exchange);
}

static void json_has_the_time_of_each_stage(void **state)
{
    struct exchange *exchange = make();
    struct buf out = {0};
    (void)state;

    exchange->times = (struct times){1000, 2500, 3000, 4000, 14000, 15001};
    assert_int_equal(access_log_format_json(&out, exchange, "shop", wall_ms), 0);
    buf_append_byte(&out, '\0');
    assert_string_equal(
        buf_span(&out).data,
        "{\"time\":\"2026-12-01T10:00:00.123Z\",\"status\":200,\"id\":\"abc\","
        "\"client\":\"192.0.2.7\",\"method\":\"GET\",\"host\":\"example.com\","
        "\"path\":\"/a\",\"query\":\"b=1\",\"protocol\":\"HTTP/"
        "1.1\",\"pool\":\"shop\",\"request_bytes\":0,"
        "\"bytes\":17,\"head_ms\":1.500,\"body_ms\":0.500,\"queue_ms\":1.000,\"app_ms\":10.000,"
        "\"write_ms\":1.001,\"total_ms\":14.001}\n");
    buf_done(&out);
    exchange_done(exchange);
}

static void stages_that_were_not_reached_have_no_time(void **state)
{
    struct exchange *exchange = make();
    struct buf out = {0};
    (void)state;

    exchange->times = (struct times){.start_us = 1000, .head_us = 2000, .body_us = 2000};
    exchange->response.status = 0;
    exchange->refusal = REFUSAL_CLIENT_LEFT;
    assert_int_equal(access_log_format_json(&out, exchange, NULL, wall_ms), 0);
    buf_append_byte(&out, '\0');
    assert_null(strstr(buf_span(&out).data, "queue_ms"));
    assert_null(strstr(buf_span(&out).data, "app_ms"));
    assert_non_null(strstr(buf_span(&out).data, "\"refusal\":\"client-left\""));
    buf_done(&out);
    exchange_done(exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_combined_form_is_what_tools_read),
        cmocka_unit_test(nothing_a_client_sends_ends_a_quoted_part_or_a_line),
        cmocka_unit_test(a_request_that_could_not_be_read_has_a_line_too),
        cmocka_unit_test(a_client_that_left_before_the_answer_is_499),
        cmocka_unit_test(json_has_the_time_of_each_stage),
        cmocka_unit_test(stages_that_were_not_reached_have_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

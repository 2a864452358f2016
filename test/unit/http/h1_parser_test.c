/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_parser.c"

static void assert_span(struct span span, const char *text)
{
    if (!span_is(span, text))
        print_error("%.*s is not %s\n", SPAN_ARG(span), text);
    assert_true(span_is(span, text));
}

static const struct h1_limits limits = {
    .target_bytes = 8, .field_bytes = 10, .header_bytes = 100, .field_count = 3};

static enum h1_result read_text(struct h1_parser *parser, struct arena *arena, const char *text)
{
    h1_parser_init(parser, &limits, arena);
    return h1_parser_read(parser, span_of(text));
}

static void marks_every_part_by_its_place(void **state)
{
    struct arena arena = {0};
    struct h1_parser parser;
    const char *text = "\r\nPUT /a HTTP/1.0\r\nA: b \r\nC:\r\n\r\nbody";
    struct span bytes = span_of(text);
    (void)state;

    assert_int_equal(read_text(&parser, &arena, text), H1_DONE);
    assert_span(h1_part_span(parser.method, bytes), "PUT");
    assert_span(h1_part_span(parser.target, bytes), "/a");
    assert_int_equal(parser.minor, 0);
    assert_int_equal(parser.line_count, 2);
    assert_span(h1_part_span(parser.lines[0].name, bytes), "A");
    assert_span(h1_part_span(parser.lines[0].value, bytes), " b ");
    assert_span(h1_part_span(parser.lines[1].name, bytes), "C");
    assert_span(h1_part_span(parser.lines[1].value, bytes), "");
    assert_span(span_skip(bytes, parser.at), "body");
    arena_done(&arena);
}

static void each_limit_is_met_exactly(void **state)
{
    struct arena arena = {0};
    struct h1_parser parser;
    (void)state;

    assert_int_equal(read_text(&parser, &arena, "GET /2345678 HTTP/1.1\r\n\r\n"), H1_DONE);
    assert_int_equal(read_text(&parser, &arena, "GET /23456789"), H1_REFUSED);
    assert_int_equal(parser.refusal, REFUSAL_TARGET_LONG);
    assert_int_equal(read_text(&parser, &arena, "GET / HTTP/1.1\r\nA: 4567890\r\n\r\n"), H1_DONE);
    assert_int_equal(read_text(&parser, &arena, "GET / HTTP/1.1\r\nA: 45678901"), H1_REFUSED);
    assert_int_equal(parser.refusal, REFUSAL_FIELDS_LARGE);
    assert_int_equal(read_text(&parser, &arena, "GET / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\n\r\n"),
                     H1_DONE);
    assert_int_equal(read_text(&parser, &arena, "GET / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\nD"),
                     H1_REFUSED);
    assert_int_equal(parser.refusal, REFUSAL_FIELDS_LARGE);
    arena_done(&arena);
}

static void empty_lines_count_for_the_head_limit(void **state)
{
    struct arena arena = {0};
    struct h1_parser parser;
    char text[102];
    (void)state;

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 ? '\n' : '\r';
    h1_parser_init(&parser, &limits, &arena);
    assert_int_equal(h1_parser_read(&parser, span_make(text, 100)), H1_MORE);
    assert_false(parser.begun);
    assert_int_equal(h1_parser_read(&parser, span_make(text, 101)), H1_REFUSED);
    assert_int_equal(parser.refusal, REFUSAL_FIELDS_LARGE);
    arena_done(&arena);
}

static void bytes_may_move_between_two_calls(void **state)
{
    struct arena arena = {0};
    struct h1_parser parser;
    char first[] = "GET /a HT", second[] = "GET /a HTTP/1.1\r\n\r\n";
    (void)state;

    h1_parser_init(&parser, &limits, &arena);
    assert_int_equal(h1_parser_read(&parser, span_of(first)), H1_MORE);
    memset(first, 0, sizeof(first));
    assert_int_equal(h1_parser_read(&parser, span_of(second)), H1_DONE);
    assert_span(h1_part_span(parser.target, span_of(second)), "/a");
    arena_done(&arena);
}

static void another_major_version_is_refused_at_its_digit(void **state)
{
    struct arena arena = {0};
    struct h1_parser parser;
    (void)state;

    assert_int_equal(read_text(&parser, &arena, "PRI * HTTP/2"), H1_REFUSED);
    assert_int_equal(parser.refusal, REFUSAL_VERSION);
    assert_int_equal(read_text(&parser, &arena, "GET / HTTP/1.7\r\n\r\n"), H1_DONE);
    assert_int_equal(parser.minor, 1);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_every_part_by_its_place),
        cmocka_unit_test(each_limit_is_met_exactly),
        cmocka_unit_test(empty_lines_count_for_the_head_limit),
        cmocka_unit_test(bytes_may_move_between_two_calls),
        cmocka_unit_test(another_major_version_is_refused_at_its_digit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

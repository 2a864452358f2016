/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_request.c"

#include "base/fd.h"
#include "h1_corpus.h"

#include <glob.h>

/* Feeds bytes in parts of step bytes, or in two cut at `cut` when step is 0. */
static char *read_in_parts(struct span bytes, size_t step, size_t cut)
{
    struct corpus_reader reader = {0};

    if (!step) {
        corpus_feed(&reader, span_first(bytes, cut));
        corpus_feed(&reader, span_skip(bytes, cut));
    }
    for (size_t at = 0; step && at < bytes.size; at += step)
        corpus_feed(&reader, span_first(span_skip(bytes, at), step));
    return corpus_done(&reader);
}

static void check_in_parts(const char *path, struct span bytes, const char *expected, size_t step,
                           size_t cut)
{
    char *told = read_in_parts(bytes, step, cut);

    if (strcmp(told, expected))
        print_error("%s, step %zu, cut %zu\n", path, step, cut);
    assert_string_equal(told, expected);
    free(told);
}

static void check_file(const char *path)
{
    char *text, *end;
    size_t size;

    assert_int_equal(fd_read_file(path, 1 << 20, &text, &size), 0);
    end = memchr(text, '\n', size);
    assert_non_null(end);
    *end++ = 0;
    size -= (size_t)(end - text);
    check_in_parts(path, span_make(end, size), text, size, 0);
    check_in_parts(path, span_make(end, size), text, 1, 0);
    for (size_t cut = 1; cut < size; cut++)
        check_in_parts(path, span_make(end, size), text, 0, cut);
    free(text);
}

static void every_corpus_file_says_the_same_however_it_is_cut(void **state)
{
    glob_t files;
    (void)state;

    assert_int_equal(glob("test/corpus/h1/*.http", 0, NULL, &files), 0);
    assert_true(files.gl_pathc > 50);
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_file(files.gl_pathv[i]);
    globfree(&files);
}

static enum refusal read_head(const char *text, struct exchange *exchange,
                              struct h1_framing *framing)
{
    struct h1_parser parser;

    exchange_init(exchange, NULL, NULL, NULL, NULL);
    h1_parser_init(&parser, &corpus_limits, &exchange->arena);
    assert_int_equal(h1_parser_read(&parser, span_of(text)), H1_DONE);
    return h1_request_read(&exchange->request, &exchange->arena, &parser, span_of(text), framing);
}

static void assert_span(struct span span, const char *text)
{
    if (!span_is(span, text))
        print_error("'%.*s' is not '%s'\n", SPAN_ARG(span), text);
    assert_true(span_is(span, text));
}

static void the_authority_of_the_target_wins_over_host(void **state)
{
    struct exchange exchange = {0};
    struct h1_framing framing;
    (void)state;

    assert_int_equal(read_head("GET http://Shop.Example:81/a?b=c HTTP/1.1\r\nHost: other\r\n\r\n",
                               &exchange, &framing),
                     REFUSAL_NONE);
    assert_span(exchange.request.host, "shop.example");
    assert_int_equal(exchange.request.port, 81);
    assert_span(exchange.request.authority, "Shop.Example:81");
    assert_span(exchange.request.path, "/a");
    assert_span(exchange.request.query, "b=c");
    exchange_done(&exchange);
}

static void equal_lengths_become_one_field(void **state)
{
    struct exchange exchange = {0};
    struct h1_framing framing;
    (void)state;

    assert_int_equal(read_head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 05\r\n"
                               "Content-Length: 5\r\n\r\n",
                               &exchange, &framing),
                     REFUSAL_NONE);
    assert_int_equal(fields_count(&exchange.request.fields, FIELD_ID_CONTENT_LENGTH), 1);
    assert_span(fields_value(&exchange.request.fields, FIELD_ID_CONTENT_LENGTH), "5");
    exchange_done(&exchange);
}

static void a_refused_head_still_tells_the_log_what_it_was(void **state)
{
    struct exchange exchange = {0};
    struct h1_parser parser;
    struct span text = SPAN("HEAD /x HTTP/1.0\r\nbad line\r\n\r\n");
    (void)state;

    exchange_init(&exchange, NULL, NULL, NULL, NULL);
    h1_parser_init(&parser, &corpus_limits, &exchange.arena);
    assert_int_equal(h1_parser_read(&parser, text), H1_REFUSED);
    h1_request_read_refused(&exchange.request, &exchange.arena, &parser, text);
    assert_int_equal(exchange.request.method, METHOD_HEAD);
    assert_span(exchange.request.target, "/x");
    assert_int_equal(exchange.request.minor, 1);
    exchange_done(&exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_corpus_file_says_the_same_however_it_is_cut),
        cmocka_unit_test(the_authority_of_the_target_wins_over_host),
        cmocka_unit_test(equal_lengths_become_one_field),
        cmocka_unit_test(a_refused_head_still_tells_the_log_what_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

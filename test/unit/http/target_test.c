/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/target.c"

static void assert_span(struct span span, const char *text)
{
    if (!span_is(span, text))
        print_error("%.*s is not %s\n", SPAN_ARG(span), text);
    assert_true(span_is(span, text));
}

static void splits_path_and_query_at_the_first_question_mark(void **state)
{
    struct target target;
    (void)state;

    assert_int_equal(target_parse(METHOD_GET, span_of("/a?b?c=/../d"), &target), REFUSAL_NONE);
    assert_span(target.path, "/a");
    assert_span(target.query, "b?c=/../d");
    assert_true(target.has_query);
    assert_null(target.authority.data);
    assert_int_equal(target_parse(METHOD_GET, span_of("/a?"), &target), REFUSAL_NONE);
    assert_true(target.has_query);
    assert_int_equal(target.query.size, 0);
    assert_int_equal(target_parse(METHOD_GET, span_of("//a//b"), &target), REFUSAL_NONE);
    assert_span(target.path, "//a//b");
    assert_false(target.has_query);
}

static void reads_the_absolute_form(void **state)
{
    struct target target;
    (void)state;

    assert_int_equal(target_parse(METHOD_GET, span_of("HTTP://a:1?q"), &target), REFUSAL_NONE);
    assert_span(target.authority, "a:1");
    assert_span(target.path, "/");
    assert_span(target.query, "q");
    assert_int_equal(target_parse(METHOD_GET, span_of("https://a/b"), &target), REFUSAL_NONE);
    assert_span(target.path, "/b");
    assert_int_equal(target_parse(METHOD_GET, span_of("http:///b"), &target), REFUSAL_HOST);
}

static void refuses_forms_that_the_method_may_not_use(void **state)
{
    struct target target;
    (void)state;

    assert_int_equal(target_parse(METHOD_CONNECT, span_of("a:22"), &target), REFUSAL_METHOD);
    assert_int_equal(target_parse(METHOD_GET, span_of("*"), &target), REFUSAL_MALFORMED);
    assert_int_equal(target_parse(METHOD_OPTIONS, span_of("*"), &target), REFUSAL_NONE);
    assert_int_equal(target_parse(METHOD_GET, span_of("a:80"), &target), REFUSAL_MALFORMED);
    assert_int_equal(target_parse(METHOD_GET, span_of("ftp://a/"), &target), REFUSAL_MALFORMED);
    assert_int_equal(target_parse(METHOD_GET, span_of("/a#b"), &target), REFUSAL_MALFORMED);
    assert_int_equal(target_parse(METHOD_GET, span_of(""), &target), REFUSAL_MALFORMED);
}

static void authorities_are_checked_and_folded(void **state)
{
    static const struct {
        const char *text, *host;
        unsigned port;
    } good[] = {{"a", "a", 0},           {"A.b-C_1~:80", "a.b-c_1~", 80}, {"a:", "a", 0},
                {"[::1]:8", "[::1]", 8}, {"[FE80::1]", "[fe80::1]", 0},   {"1.2.3.4", "1.2.3.4", 0},
                {"a%20b", "a%20b", 0}};
    static const char *bad[] = {"",       ":80", "a:b",       "a:-1", "a:65536", "a/b",  "u@a",
                                "a?b",    "a#b", "a\\b",      "a,b",  "a b",     "[::1", "[]",
                                "[::1]x", "[a]", "[1.2.3.4]", "a%2",  "a%zz",    "::1",  "a\tb"};
    struct arena arena = {0};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct span host;
        unsigned port;

        assert_true(target_parse_authority(span_of(good[i].text), &arena, &host, &port));
        assert_span(host, good[i].host);
        assert_int_equal(port, good[i].port);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct span host = SPAN("untouched");
        unsigned port;

        if (target_parse_authority(span_of(bad[i]), &arena, &host, &port))
            fail_msg("'%s' was taken", bad[i]);
        assert_span(host, "untouched");
    }
    arena_done(&arena);
}

static void paths_of_files_are_decoded_once_and_stay_below_the_root(void **state)
{
    static const struct {
        const char *path, *name; /* NULL: no file */
    } cases[] = {
        {"/", ""},
        {"/a/b.txt", "a/b.txt"},
        {"/a%20b", "a b"},
        {"/%2541", "%41"},
        {"//a///b/", "a/b/"},
        {"/a/./b", "a/b"},
        {"/a/../b", "b"},
        {"/a/..", ""},
        {"/a/.%2e/b", "b"},
        {"/a/...", "a/..."},
        {"/../a", NULL},
        {"/a/../../b", NULL},
        {"/%2e%2e/a", NULL},
        {"/..%2fa", NULL},
        {"/a%00", NULL},
        {"/%", NULL},
        {"/%4", NULL},
        {"/%zz", NULL},
        {"/%c0%ae%c0%ae/a", "\xc0\xae\xc0\xae/a"},
    };
    struct arena arena = {0};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct span name;
        bool found = target_decode(span_of(cases[i].path), &arena, &name);

        if (found != (cases[i].name != NULL))
            fail_msg("'%s'", cases[i].path);
        if (found)
            assert_string_equal(name.data, cases[i].name);
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_path_and_query_at_the_first_question_mark),
        cmocka_unit_test(reads_the_absolute_form),
        cmocka_unit_test(refuses_forms_that_the_method_may_not_use),
        cmocka_unit_test(authorities_are_checked_and_folded),
        cmocka_unit_test(paths_of_files_are_decoded_once_and_stay_below_the_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

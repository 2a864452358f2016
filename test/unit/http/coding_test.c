/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/coding.c"

static const enum coding all[] = {CODING_BR, CODING_ZSTD, CODING_GZIP};

/* What is chosen of all codings for Accept-Encoding fields with these values, up to a NULL. */
static const char *chosen(const char *value, ...)
{
    struct arena arena = {0};
    struct fields fields;
    struct coding_wish wish;
    va_list list;

    fields_init(&fields, &arena);
    va_start(list, value);
    for (; value; value = va_arg(list, const char *))
        fields_add_id(&fields, FIELD_ID_ACCEPT_ENCODING, span_of(value));
    va_end(list);
    wish = coding_read_wish(&fields);
    arena_done(&arena);
    return coding_name(coding_choose(&wish, all, ARRAY_LEN(all))).data;
}

static void nobody_gets_a_coding_that_was_not_asked_for(void **state)
{
    (void)state;
    assert_string_equal(chosen(NULL), "identity");
    assert_string_equal(chosen("", NULL), "identity");
    assert_string_equal(chosen("deflate, compress", NULL), "identity");
    assert_string_equal(chosen("gzip;q=0", NULL), "identity");
    assert_string_equal(chosen("gzip;q=0.000, br;q=0", NULL), "identity");
    assert_string_equal(chosen("gzippy, xbr", NULL), "identity");
}

static void the_most_wanted_wins_and_of_equals_the_first_offered(void **state)
{
    (void)state;
    assert_string_equal(chosen("gzip", NULL), "gzip");
    assert_string_equal(chosen("x-gzip", NULL), "gzip");
    assert_string_equal(chosen("GZIP ; Q=0.5", NULL), "gzip");
    assert_string_equal(chosen("gzip, deflate, br, zstd", NULL), "br");
    assert_string_equal(chosen("br;q=0.2, gzip;q=0.9, zstd;q=0.8", NULL), "gzip");
    assert_string_equal(chosen("gzip;q=0.5", "zstd;q=0.6", NULL), "zstd");
    assert_string_equal(chosen("gzip;q=0.001", NULL), "gzip");
}

static void identity_wins_only_when_it_is_wanted_more(void **state)
{
    (void)state;
    assert_string_equal(chosen("gzip;q=0.5, identity", NULL), "identity");
    assert_string_equal(chosen("gzip;q=0.5, identity;q=0.5", NULL), "gzip");
    assert_string_equal(chosen("identity, gzip", NULL), "gzip");
}

static void a_star_stands_for_all_that_nobody_named(void **state)
{
    (void)state;
    assert_string_equal(chosen("*", NULL), "br");
    assert_string_equal(chosen("br;q=0, *", NULL), "zstd");
    assert_string_equal(chosen("gzip, *;q=0.1", NULL), "gzip");
    assert_string_equal(chosen("gzip;q=0.3, *;q=0.5", NULL), "br");
    assert_string_equal(chosen("*;q=0", NULL), "identity");
}

static void a_refused_identity_can_be_told(void **state)
{
    struct arena arena = {0};
    struct fields fields;
    (void)state;

    fields_init(&fields, &arena);
    assert_int_not_equal(coding_read_wish(&fields).quality[CODING_IDENTITY], 0);
    fields_add_id(&fields, FIELD_ID_ACCEPT_ENCODING, span_of("gzip, identity;q=0"));
    assert_int_equal(coding_read_wish(&fields).quality[CODING_IDENTITY], 0);
    fields.size = 0;
    fields_add_id(&fields, FIELD_ID_ACCEPT_ENCODING, span_of("*;q=0, gzip"));
    assert_int_equal(coding_read_wish(&fields).quality[CODING_IDENTITY], 0);
    arena_done(&arena);
}

static void a_quality_that_cannot_be_read_accepts_nothing(void **state)
{
    static const char *const bad[] = {"gzip;q=",   "gzip;q=x",      "gzip;q=1.5",
                                      "gzip;q=-1", "gzip;q=0.5555", "gzip;q=0x1"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_string_equal(chosen(bad[i], NULL), "identity");
    assert_string_equal(chosen("gzip;q=1.000", NULL), "gzip");
    assert_string_equal(chosen("gzip;level=3;q=0.3", NULL), "gzip");
    assert_string_equal(chosen(",,gzip,", NULL), "gzip");
}

static void texts_are_worthwhile_by_whatever_name(void **state)
{
    static const char *const texts[] = {"text/html; charset=utf-8", "TEXT/CSS",
                                        "application/json",         "image/svg+xml",
                                        "application/ld+json;x=y",  "application/javascript",
                                        "application/xml",          "application/atom+xml"};
    static const char *const others[] = {
        "",           "image/png",       "application/octet-stream", "video/mp4",
        "font/woff2", "application/zip", "text/event-stream",        "texture/x",
        "+json"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_true(coding_is_worthwhile(span_of(texts[i])));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(coding_is_worthwhile(span_of(others[i])));
}

static void every_coding_has_an_ending_but_identity(void **state)
{
    (void)state;
    assert_int_equal(coding_ending(CODING_IDENTITY).size, 0);
    assert_true(span_is(coding_ending(CODING_BR), ".br"));
    assert_true(span_is(coding_ending(CODING_ZSTD), ".zst"));
    assert_true(span_is(coding_ending(CODING_GZIP), ".gz"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_gets_a_coding_that_was_not_asked_for),
        cmocka_unit_test(the_most_wanted_wins_and_of_equals_the_first_offered),
        cmocka_unit_test(identity_wins_only_when_it_is_wanted_more),
        cmocka_unit_test(a_star_stands_for_all_that_nobody_named),
        cmocka_unit_test(a_refused_identity_can_be_told),
        cmocka_unit_test(a_quality_that_cannot_be_read_accepts_nothing),
        cmocka_unit_test(texts_are_worthwhile_by_whatever_name),
        cmocka_unit_test(every_coding_has_an_ending_but_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

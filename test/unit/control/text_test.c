/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "control/text.c"

static void assert_json(struct span text, const char *expected)
{
    struct buf buf = {.size = 0};

    assert_int_equal(text_add_json(&buf, text), 0);
    assert_true(span_is(buf_span(&buf), expected));
    buf_done(&buf);
}

static void any_bytes_become_a_string_that_can_be_read(void **state)
{
    (void)state;

    assert_json(span_of(""), "\"\"");
    assert_json(span_of("a\"b\\c"), "\"a\\\"b\\\\c\"");
    assert_json(span_make("\0\n", 2), "\"\\u0000\\u000a\"");
    assert_json(span_of("\xc3\xa4"), "\"\xc3\xa4\"");
    assert_json(span_of("a\xff\xc3"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_json(span_of("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void broken_utf8_never_gets_out(void **state)
{
    static const char *const broken[] = {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                         "\xe2\x82"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++)
        assert_int_equal(utf8_length(span_of(broken[i])), 0);
    assert_int_equal(utf8_length(span_of("\xe2\x82\xac")), 3);
    assert_int_equal(utf8_length(span_of("\xf0\x9f\x98\x80")), 4);
}

static void people_see_no_byte_that_a_terminal_obeys(void **state)
{
    struct buf buf = {.size = 0};
    (void)state;

    assert_int_equal(text_add_plain(&buf, span_of("/a\x1b[2J\xff\xc3\xa4\xc2\x9b\x7f")), 0);
    assert_true(span_is(buf_span(&buf), "/a?[2J?\xc3\xa4??"));
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(people_see_no_byte_that_a_terminal_obeys),
        cmocka_unit_test(broken_utf8_never_gets_out),
        cmocka_unit_test(any_bytes_become_a_string_that_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

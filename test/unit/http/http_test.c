/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/http.c"

static void every_listed_method_and_field_is_found_by_its_name(void **state)
{
    (void)state;
#define ROW(constant, text, safe) assert_int_equal(http_method(span_of(text)), METHOD_##constant);
#include "http/method.def"
#undef ROW
#define ROW(constant, name, flags) \
    assert_int_equal(http_field_id(span_of(name)), FIELD_ID_##constant);
#include "http/field.def"
#undef ROW
}

static void methods_are_case_sensitive_and_field_names_are_not(void **state)
{
    (void)state;
    assert_int_equal(http_method(span_of("get")), METHOD_OTHER);
    assert_int_equal(http_method(span_of("GETS")), METHOD_OTHER);
    assert_int_equal(http_field_id(span_of("Content-LENGTH")), FIELD_ID_CONTENT_LENGTH);
    assert_int_equal(http_field_id(span_of("content_length")), FIELD_OTHER);
    assert_int_equal(http_field_id((struct span){NULL, 0}), FIELD_OTHER);
}

static void only_methods_that_change_nothing_run_again(void **state)
{
    (void)state;
    assert_true(http_method_is_safe(METHOD_GET));
    assert_true(http_method_is_safe(METHOD_OPTIONS));
    assert_false(http_method_is_safe(METHOD_DELETE));
    assert_false(http_method_is_safe(METHOD_OTHER));
}

static void refusals_have_word_status_and_words(void **state)
{
    (void)state;
    assert_string_equal(http_refusal_word(REFUSAL_FRAMING), "framing");
    assert_int_equal(http_refusal_status(REFUSAL_TOO_LARGE), 413);
    assert_int_equal(http_refusal_status(REFUSAL_ANSWER_CUT), 0);
    assert_string_equal(http_refusal_text(REFUSAL_NONE), "");
}

static void statuses_have_phrases_and_some_no_body(void **state)
{
    (void)state;
    assert_string_equal(http_status_phrase(404), "Not Found");
    assert_string_equal(http_status_phrase(299), "");
    assert_true(http_status_has_no_body(103));
    assert_true(http_status_has_no_body(204));
    assert_true(http_status_has_no_body(304));
    assert_false(http_status_has_no_body(200));
    assert_false(http_status_has_no_body(404));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_listed_method_and_field_is_found_by_its_name),
        cmocka_unit_test(methods_are_case_sensitive_and_field_names_are_not),
        cmocka_unit_test(only_methods_that_change_nothing_run_again),
        cmocka_unit_test(refusals_have_word_status_and_words),
        cmocka_unit_test(statuses_have_phrases_and_some_no_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/reading.c"

static void what_is_there_is_found_and_what_is_not_is_nothing(void **state)
{
    struct reading reading;
    const struct yaml *list;

    (void)state;
    assert_true(
        reading_parse(span_of("{\"pid\":7,\"up\":12.75,\"ruby\":null,\"name\":\"a: b\",\"list\":"
                              "[{\"path\":\"/${HOME}/\\u001b\"}]}\n"),
                      &reading));
    assert_int_equal(reading_number(reading.root, "pid"), 7);
    assert_int_equal(reading_number(reading.root, "up"), 12);
    assert_int_equal(reading_number(reading.root, "name"), 0);
    assert_int_equal(reading_number(reading.root, "list"), 0);
    assert_int_equal(reading_number(NULL, "pid"), 0);
    assert_string_equal(reading_text(reading.root, "name"), "a: b");
    assert_string_equal(reading_text(reading.root, "ruby"), "");
    assert_string_equal(reading_text(reading.root, "list"), "");
    assert_string_equal(reading_text(reading.root, "none"), "");
    list = reading_find(reading.root, "list");
    assert_int_equal(reading_size(list), 1);
    assert_int_equal(reading_size(reading.root), 0);
    assert_string_equal(reading_text(reading_item(list, 0), "path"), "/${HOME}/\x1b");
    assert_null(reading_item(list, 1));
    reading_done(&reading);
}

static void what_is_no_object_is_refused(void **state)
{
    static const char *const wrong[] = {"", "[1]", "7", "{\"a\":", "{\"a\":1,\"a\":2}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct reading reading;
        assert_false(reading_parse(span_of(wrong[i]), &reading));
        reading_done(&reading);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_found_and_what_is_not_is_nothing),
        cmocka_unit_test(what_is_no_object_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

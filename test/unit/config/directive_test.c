/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/directive.c"

static void the_nearest_name_is_one_of_the_wanted_sections(void **state)
{
    unsigned server = 1u << SECTION_SERVER;
    (void)state;

    assert_string_equal(directive_nearest(server, span_of("lissten")), "listen");
    assert_string_equal(directive_nearest(server | 1u << SECTION_POOL, span_of("worker")),
                        "workers");
    assert_string_equal(directive_nearest(1u << SECTION_TIMEOUTS, span_of("keep_alive")),
                        "keepalive");
    assert_non_null(directive_nearest(server, span_of("")));
}

static void a_name_is_found_in_its_section_only(void **state)
{
    (void)state;

    assert_non_null(directive_find(SECTION_QUEUE, span_of("timeout")));
    assert_ptr_not_equal(directive_find(SECTION_QUEUE, span_of("timeout")),
                         directive_find(SECTION_POOL, span_of("timeout")));
    assert_null(directive_find(SECTION_SERVER, span_of("workers")));
    assert_int_equal(directive_find_anywhere(span_of("workers"))->section, SECTION_POOL);
    assert_null(directive_find_anywhere(span_of("nonsense")));
}

static void names_are_unique_and_every_row_has_words(void **state)
{
    size_t size;
    const struct directive *rows = directives(&size);
    (void)state;

    for (size_t i = 0; i < size; i++) {
        assert_ptr_equal(directive_find(rows[i].section, span_of(rows[i].name)), &rows[i]);
        assert_true(strlen(rows[i].help) > 10);
        assert_true(strlen(type_expects(rows[i].type)) > 4);
        assert_true(rows[i].low <= rows[i].high || rows[i].high == 0);
        assert_true(strlen(section_place(rows[i].section)) > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_name_is_one_of_the_wanted_sections),
        cmocka_unit_test(a_name_is_found_in_its_section_only),
        cmocka_unit_test(names_are_unique_and_every_row_has_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

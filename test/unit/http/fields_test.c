/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/fields.c"

static void keeps_order_and_finds_by_id_and_by_name(void **state)
{
    struct arena arena = {0};
    struct fields fields;
    struct field *field;
    (void)state;

    fields_init(&fields, &arena);
    for (int i = 0; i < 100; i++)
        assert_int_equal(fields_add(&fields, span_of("X-N"), span_of(i % 2 ? "odd" : "even")), 0);
    assert_int_equal(fields_add(&fields, span_of("COOKIE"), span_of("a=1")), 0);
    assert_int_equal(fields_add(&fields, span_of("x-m"), span_of("m")), 0);
    assert_int_equal(fields_add(&fields, span_of("cookie"), span_of("b=2")), 0);
    assert_int_equal(fields.size, 103);
    assert_true(span_is(fields_value(&fields, FIELD_ID_COOKIE), "a=1"));
    field = fields_next(&fields, fields_find(&fields, FIELD_ID_COOKIE));
    assert_true(span_is(field->value, "b=2"));
    assert_null(fields_next(&fields, field));
    field = fields_find_name(&fields, span_of("x-n"));
    assert_true(span_is(field->value, "even"));
    assert_true(span_is(fields_next(&fields, field)->value, "odd"));
    assert_null(fields_next(&fields, fields_find_name(&fields, span_of("X-M"))));
    assert_null(fields_value(&fields, FIELD_ID_HOST).data);
    arena_done(&arena);
}

static void removes_all_of_an_id_and_keeps_the_others_in_order(void **state)
{
    struct arena arena = {0};
    struct fields fields;
    (void)state;

    fields_init(&fields, &arena);
    fields_add_id(&fields, FIELD_ID_DATE, span_of("1"));
    fields_add_id(&fields, FIELD_ID_HOST, span_of("2"));
    fields_add_id(&fields, FIELD_ID_DATE, span_of("3"));
    fields_add_id(&fields, FIELD_ID_VARY, span_of("4"));
    assert_int_equal(fields_count(&fields, FIELD_ID_DATE), 2);
    fields_remove(&fields, FIELD_ID_DATE);
    assert_int_equal(fields.size, 2);
    assert_true(span_is(fields.items[0].name, "host"));
    assert_true(span_is(fields.items[1].value, "4"));
    arena_done(&arena);
}

static void finds_tokens_in_any_line_of_a_list(void **state)
{
    struct arena arena = {0};
    struct fields fields;
    (void)state;

    fields_init(&fields, &arena);
    fields_add_id(&fields, FIELD_ID_CONNECTION, span_of("keep-alive, not-close"));
    assert_false(fields_has_token(&fields, FIELD_ID_CONNECTION, span_of("close")));
    fields_add_id(&fields, FIELD_ID_CONNECTION, span_of("a ,\tCLOSE ,"));
    assert_true(fields_has_token(&fields, FIELD_ID_CONNECTION, span_of("close")));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order_and_finds_by_id_and_by_name),
        cmocka_unit_test(removes_all_of_an_id_and_keeps_the_others_in_order),
        cmocka_unit_test(finds_tokens_in_any_line_of_a_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

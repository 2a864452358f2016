/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/protocol.c"

static void a_message_comes_apart_as_it_was_put_together(void **state)
{
    struct buf buf = {.size = 0};
    struct protocol_message message;
    uint64_t number;

    (void)state;
    assert_int_equal(protocol_begin(&buf, "failed"), 0);
    assert_int_equal(protocol_add(&buf, "message", span_of("two\nlines \\ and = signs")), 0);
    assert_int_equal(protocol_add_number(&buf, "index", 42), 0);
    assert_true(protocol_parse(buf.memory + buf.start, buf.size, &message));
    assert_true(span_is(message.verb, "failed"));
    assert_true(span_is(protocol_get(&message, "message"), "two\nlines \\ and = signs"));
    assert_true(protocol_get_number(&message, "index", &number));
    assert_int_equal(number, 42);
    buf_done(&buf);
}

static void a_missing_key_is_empty_and_no_number(void **state)
{
    char text[] = "ready\npid=x\n";
    struct protocol_message message;
    uint64_t number = 7;

    (void)state;
    assert_true(protocol_parse(text, sizeof text - 1, &message));
    assert_int_equal(protocol_get(&message, "index").size, 0);
    assert_false(protocol_get_number(&message, "index", &number));
    assert_false(protocol_get_number(&message, "pid", &number));
    assert_int_equal(number, 7);
}

static void a_message_without_values_is_only_its_verb(void **state)
{
    char text[] = "quit";
    struct protocol_message message;

    (void)state;
    assert_true(protocol_parse(text, 4, &message));
    assert_true(span_is(message.verb, "quit"));
    assert_int_equal(message.size, 0);
}

static void what_is_no_message_is_refused(void **state)
{
    char empty[] = "\nkey=value\n";
    char no_equals[] = "verb\nkey value\n";
    char no_key[] = "verb\n=value\n";
    struct protocol_message message;

    (void)state;
    assert_false(protocol_parse(empty, sizeof empty - 1, &message));
    assert_false(protocol_parse(empty, 0, &message));
    assert_false(protocol_parse(no_equals, sizeof no_equals - 1, &message));
    assert_false(protocol_parse(no_key, sizeof no_key - 1, &message));
}

static void more_keys_than_a_message_holds_are_refused(void **state)
{
    struct buf buf = {.size = 0};
    struct protocol_message message;

    (void)state;
    assert_int_equal(protocol_begin(&buf, "verb"), 0);
    for (int i = 0; i <= PROTOCOL_PAIRS; i++)
        assert_int_equal(protocol_add(&buf, "key", span_of("value")), 0);
    assert_false(protocol_parse(buf.memory + buf.start, buf.size, &message));
    buf_done(&buf);
}

static void a_backslash_at_the_end_stays_one(void **state)
{
    char text[] = "verb\nkey=a\\";
    struct protocol_message message;

    (void)state;
    assert_true(protocol_parse(text, sizeof text - 1, &message));
    assert_true(span_is(protocol_get(&message, "key"), "a\\"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_comes_apart_as_it_was_put_together),
        cmocka_unit_test(a_missing_key_is_empty_and_no_number),
        cmocka_unit_test(a_message_without_values_is_only_its_verb),
        cmocka_unit_test(what_is_no_message_is_refused),
        cmocka_unit_test(more_keys_than_a_message_holds_are_refused),
        cmocka_unit_test(a_backslash_at_the_end_stays_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

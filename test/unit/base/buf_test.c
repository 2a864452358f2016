/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.c"

#define assert_content(buf, text) assert_true(span_is(buf_span(buf), text))

static void starts_empty_and_collects_what_is_appended(void **state)
{
    struct buf buf = {0};
    (void)state;

    assert_int_equal(buf_span(&buf).size, 0);
    assert_int_equal(buf_append(&buf, span_of("one ")), 0);
    assert_int_equal(buf_append_byte(&buf, '2'), 0);
    assert_int_equal(buf_printf(&buf, " %s%d", "x", 3), 0);
    assert_int_equal(buf_append(&buf, (struct span){NULL, 0}), 0);
    assert_content(&buf, "one 2 x3");
    buf_done(&buf);
    assert_null(buf.memory);
}

static void keeps_the_content_while_it_grows_and_is_consumed(void **state)
{
    struct buf buf = {0};
    unsigned written = 0, read = 0;
    (void)state;

    for (int turn = 0; turn < 300; turn++) {
        for (int i = 0; i < 100; i++, written++)
            assert_int_equal(buf_append(&buf, span_make((char *)&written, sizeof(written))), 0);
        for (int i = 0; i < 90; i++, read++) {
            assert_memory_equal(buf_span(&buf).data, &read, sizeof(read));
            buf_consume(&buf, sizeof(read));
        }
        assert_true(buf.start + buf.size <= buf.room);
    }
    assert_int_equal(buf.size, (written - read) * sizeof(read));
    buf_done(&buf);
}

static void room_that_was_consumed_is_used_again(void **state)
{
    struct buf buf = {0};
    char block[200] = {0};
    size_t room;
    (void)state;

    assert_int_equal(buf_append(&buf, span_make(block, sizeof(block))), 0);
    room = buf.room;
    for (int i = 0; i < 1000; i++) {
        buf_consume(&buf, 150);
        assert_int_equal(buf_append(&buf, span_make(block, 150)), 0);
    }
    assert_int_equal(buf.room, room);
    buf_done(&buf);
}

static void reserved_room_counts_only_once_it_is_taken(void **state)
{
    struct buf buf = {0};
    char *place = buf_reserve(&buf, 1000);
    (void)state;

    assert_non_null(place);
    memset(place, 'x', 1000);
    assert_int_equal(buf_span(&buf).size, 0);
    buf_grow(&buf, 3);
    assert_content(&buf, "xxx");
    buf_done(&buf);
}

static void a_size_that_no_memory_has_leaves_it_unchanged(void **state)
{
    struct buf buf = {0};
    (void)state;

    assert_int_equal(buf_append(&buf, span_of("kept")), 0);
    assert_null(buf_reserve(&buf, SIZE_MAX));
    assert_null(buf_reserve(&buf, SIZE_MAX - 4));
    assert_null(buf_reserve(&buf, SIZE_MAX / 2 + 2));
    assert_content(&buf, "kept");
    buf_done(&buf);
}

static void clearing_keeps_the_memory_and_shrinking_gives_it_back(void **state)
{
    struct buf buf = {0};
    (void)state;

    assert_int_equal(buf_append(&buf, span_of("something")), 0);
    buf_shrink(&buf, 0);
    assert_content(&buf, "something");
    buf_clear(&buf);
    assert_int_equal(buf.size, 0);
    buf_shrink(&buf, buf.room);
    assert_non_null(buf.memory);
    buf_shrink(&buf, buf.room - 1);
    assert_null(buf.memory);
    assert_int_equal(buf.room, 0);
}

static void an_escaped_value_stays_within_its_line(void **state)
{
    struct buf buf = {0};
    (void)state;

    assert_int_equal(buf_append_escaped(&buf, span_of("a\nb\\c\td")), 0);
    assert_content(&buf, "a\\nb\\\\c\td");
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty_and_collects_what_is_appended),
        cmocka_unit_test(keeps_the_content_while_it_grows_and_is_consumed),
        cmocka_unit_test(room_that_was_consumed_is_used_again),
        cmocka_unit_test(reserved_room_counts_only_once_it_is_taken),
        cmocka_unit_test(a_size_that_no_memory_has_leaves_it_unchanged),
        cmocka_unit_test(an_escaped_value_stays_within_its_line),
        cmocka_unit_test(clearing_keeps_the_memory_and_shrinking_gives_it_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

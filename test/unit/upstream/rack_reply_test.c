/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buf.h"
#include "upstream/rack_reply.c"

static enum reply_step step(struct reply *reply, uint8_t type, uint8_t flags)
{
    struct page_record record = {.type = type, .flags = flags};

    return reply_step(reply, &record);
}

static void put_field(struct buf *out, const char *name, struct span value)
{
    uint16_t name_size = (uint16_t)strlen(name), zero = 0;
    uint32_t value_size = (uint32_t)value.size;

    buf_append(out, span_make((char *)&name_size, 2));
    buf_append(out, span_make((char *)&zero, 2));
    buf_append(out, span_make((char *)&value_size, 4));
    buf_append(out, span_of(name));
    buf_append(out, value);
}

static struct buf head_of(uint16_t status, uint16_t count)
{
    struct buf out = {0};
    struct page_head head = {status, count};

    buf_append(&out, span_make((char *)&head, sizeof(head)));
    return out;
}

static void an_answer_is_head_data_and_end(void **state)
{
    struct reply reply = {0};
    (void)state;

    assert_int_equal(step(&reply, PAGE_INTERIM, 0), REPLY_INTERIM);
    assert_int_equal(step(&reply, PAGE_INTERIM, 0), REPLY_INTERIM);
    assert_int_equal(step(&reply, PAGE_HEAD, PAGE_MORE), REPLY_HEAD_PART);
    assert_int_equal(step(&reply, PAGE_HEAD, 0), REPLY_HEAD);
    assert_int_equal(step(&reply, PAGE_DATA, 0), REPLY_DATA);
    assert_int_equal(step(&reply, PAGE_FILE, 0), REPLY_FILE);
    assert_int_equal(step(&reply, PAGE_TRAILERS, 0), REPLY_TRAILERS);
    assert_int_equal(step(&reply, PAGE_END, 0), REPLY_END);
}

static void what_no_worker_writes_is_broken_and_stays_so(void **state)
{
    static const uint8_t firsts[] = {PAGE_DATA, PAGE_FILE, PAGE_TRAILERS, 0, PAGE_END + 1, 255};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
        struct reply reply = {0};

        assert_int_equal(step(&reply, firsts[i], 0), REPLY_BROKEN);
        assert_int_equal(step(&reply, PAGE_HEAD, 0), REPLY_BROKEN);
    }
}

static void nothing_follows_an_end(void **state)
{
    (void)state;

    for (unsigned type = 0; type < 256; type++) {
        struct reply reply = {REPLY_OVER};

        assert_int_equal(step(&reply, (uint8_t)type, 0), REPLY_BROKEN);
    }
}

static void an_end_before_the_head_is_only_a_cut_one(void **state)
{
    struct reply cut = {0}, whole = {0};
    (void)state;

    assert_int_equal(step(&cut, PAGE_END, PAGE_CUT), REPLY_END);
    assert_int_equal(step(&whole, PAGE_END, 0), REPLY_BROKEN);
}

static void a_head_is_read_field_by_field(void **state)
{
    struct buf bytes = head_of(404, 2);
    struct reply_head head;
    struct span name, value;
    (void)state;

    put_field(&bytes, "x-a", span_of("1"));
    put_field(&bytes, "x-empty", span_of(""));
    assert_true(reply_head_read(buf_span(&bytes), false, &head));
    assert_int_equal(head.status, 404);
    assert_true(reply_field(&head.fields, &name, &value));
    assert_true(span_is(name, "x-a") && span_is(value, "1"));
    assert_true(reply_field(&head.fields, &name, &value));
    assert_true(span_is(name, "x-empty") && span_is(value, ""));
    assert_false(reply_field(&head.fields, &name, &value));
    buf_done(&bytes);
}

static void a_raw_head_is_followed_by_a_tunnel_or_a_cut_end(void **state)
{
    struct reply tunnel = {0}, bare = {0}, cut = {0}, whole = {0}, data = {0}, framed = {0};
    (void)state;

    assert_int_equal(step(&tunnel, PAGE_HEAD, PAGE_RAW | PAGE_MORE), REPLY_HEAD_PART);
    assert_int_equal(step(&tunnel, PAGE_HEAD, PAGE_RAW), REPLY_HEAD);
    assert_int_equal(step(&tunnel, PAGE_TUNNEL, 0), REPLY_TUNNEL);
    assert_int_equal(step(&tunnel, PAGE_END, PAGE_CUT), REPLY_BROKEN);
    assert_int_equal(step(&bare, PAGE_INTERIM, 0), REPLY_INTERIM);
    assert_int_equal(step(&bare, PAGE_TUNNEL, 0), REPLY_TUNNEL);
    assert_int_equal(step(&cut, PAGE_HEAD, PAGE_RAW), REPLY_HEAD);
    assert_int_equal(step(&cut, PAGE_END, PAGE_CUT), REPLY_END);
    assert_int_equal(step(&whole, PAGE_HEAD, PAGE_RAW), REPLY_HEAD);
    assert_int_equal(step(&whole, PAGE_END, 0), REPLY_BROKEN);
    assert_int_equal(step(&data, PAGE_HEAD, PAGE_RAW), REPLY_HEAD);
    assert_int_equal(step(&data, PAGE_DATA, 0), REPLY_BROKEN);
    assert_int_equal(step(&framed, PAGE_HEAD, 0), REPLY_HEAD);
    assert_int_equal(step(&framed, PAGE_TUNNEL, 0), REPLY_BROKEN);
}

static void a_status_is_101_or_200_to_599_and_interim_only_103(void **state)
{
    struct reply_head head;
    (void)state;

    for (unsigned status = 0; status < 1100; status++) {
        struct buf bytes = head_of((uint16_t)status, 0);

        assert_int_equal(reply_head_read(buf_span(&bytes), false, &head),
                         status == 101 || (status >= 200 && status <= 599));
        assert_int_equal(reply_head_read(buf_span(&bytes), true, &head), status == 103);
        buf_done(&bytes);
    }
}

static void a_field_that_could_end_the_head_breaks_it(void **state)
{
    static const struct span values[] = {SPAN("a\r\nb: c"), SPAN("a\nb"), SPAN("a\rb"),
                                         SPAN("a\0b")};
    static const char *const names[] = {"", "a b", "a:", "a\r\n", "\xc3\xa9"};
    struct reply_head head;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct buf bytes = head_of(200, 1);

        put_field(&bytes, "x", values[i]);
        assert_false(reply_head_read(buf_span(&bytes), false, &head));
        buf_done(&bytes);
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf bytes = head_of(200, 1);

        put_field(&bytes, names[i], span_of("1"));
        assert_false(reply_head_read(buf_span(&bytes), false, &head));
        buf_done(&bytes);
    }
}

static void a_head_cut_at_any_byte_or_with_a_wrong_count_is_none(void **state)
{
    struct buf bytes = head_of(200, 2);
    struct reply_head head;
    (void)state;

    put_field(&bytes, "x-a", span_of("value"));
    put_field(&bytes, "x-b", span_of("another"));
    for (size_t size = 0; size < bytes.size; size++)
        assert_false(reply_head_read(span_first(buf_span(&bytes), size), false, &head));
    assert_true(reply_head_read(buf_span(&bytes), false, &head));
    buf_span(&bytes);
    bytes.memory[bytes.start + 2] = 3;
    assert_false(reply_head_read(buf_span(&bytes), false, &head));
    buf_done(&bytes);
}

static void sizes_beyond_the_payload_are_refused(void **state)
{
    struct buf bytes = head_of(200, 1);
    struct reply_head head;
    uint32_t huge = UINT32_MAX;
    (void)state;

    put_field(&bytes, "x-a", span_of("value"));
    memcpy(bytes.memory + bytes.start + sizeof(struct page_head) + 4, &huge, sizeof(huge));
    assert_false(reply_head_read(buf_span(&bytes), false, &head));
    buf_done(&bytes);
}

static void a_file_range_fits_into_63_bits(void **state)
{
    struct page_file good = {1, 2}, bad = {INT64_MAX, 1}, read;
    (void)state;

    assert_true(reply_file_read(span_make((char *)&good, sizeof(good)), &read));
    assert_int_equal(read.size, 2);
    assert_false(reply_file_read(span_make((char *)&good, sizeof(good) - 1), &read));
    assert_false(reply_file_read(span_make((char *)&bad, sizeof(bad)), &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_head_data_and_end),
        cmocka_unit_test(what_no_worker_writes_is_broken_and_stays_so),
        cmocka_unit_test(nothing_follows_an_end),
        cmocka_unit_test(an_end_before_the_head_is_only_a_cut_one),
        cmocka_unit_test(a_head_is_read_field_by_field),
        cmocka_unit_test(a_raw_head_is_followed_by_a_tunnel_or_a_cut_end),
        cmocka_unit_test(a_status_is_101_or_200_to_599_and_interim_only_103),
        cmocka_unit_test(a_field_that_could_end_the_head_breaks_it),
        cmocka_unit_test(a_head_cut_at_any_byte_or_with_a_wrong_count_is_none),
        cmocka_unit_test(sizes_beyond_the_payload_are_refused),
        cmocka_unit_test(a_file_range_fits_into_63_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/listing.c"

#include <stdlib.h>

static struct listing_entry entry_of(const char *path, const char *id)
{
    return (struct listing_entry){.stage = 1,
                                  .pid = 42,
                                  .age_us = 7000,
                                  .run_us = 3000,
                                  .pool = span_of("shop"),
                                  .method = span_of("GET"),
                                  .path = span_of(path),
                                  .client = span_of("192.0.2.7"),
                                  .id = span_of(id)};
}

static void entries_come_back_in_order(void **state)
{
    struct listing_entry one = entry_of("/one", "id-1"), two = entry_of("", "id-2"), read;
    struct buf buf = {.size = 0};
    struct span bytes;
    (void)state;

    assert_true(listing_add(&buf, &one));
    assert_true(listing_add(&buf, &two));
    bytes = buf_span(&buf);
    assert_true(listing_next(&bytes, &read));
    assert_int_equal(read.stage, 1);
    assert_int_equal(read.pid, 42);
    assert_int_equal(read.age_us, 7000);
    assert_int_equal(read.run_us, 3000);
    assert_true(span_is(read.pool, "shop"));
    assert_true(span_is(read.method, "GET"));
    assert_true(span_is(read.path, "/one"));
    assert_true(span_is(read.client, "192.0.2.7"));
    assert_true(span_is(read.id, "id-1"));
    assert_true(listing_next(&bytes, &read));
    assert_int_equal(read.path.size, 0);
    assert_true(span_is(read.id, "id-2"));
    assert_false(listing_next(&bytes, &read));
    buf_done(&buf);
}

static void long_strings_are_cut_and_a_full_listing_takes_no_more(void **state)
{
    static char path[5000];
    struct listing_entry entry, read;
    struct buf buf = {.size = 0};
    struct span bytes;
    unsigned count = 0;
    (void)state;

    memset(path, 'x', sizeof(path) - 1);
    entry = entry_of(path, path);
    while (listing_add(&buf, &entry))
        count++;
    assert_in_range(buf.size, LISTING_MAX - 2000, LISTING_MAX);
    bytes = buf_span(&buf);
    assert_true(listing_next(&bytes, &read));
    assert_int_equal(read.path.size, LISTING_PATH);
    assert_int_equal(read.id.size, LISTING_ID);
    while (listing_next(&bytes, &read))
        count--;
    assert_int_equal(count, 1);
    buf_done(&buf);
}

/* Each prefix lies in memory of its own size, so that a read behind it would be seen. */
static void what_cannot_be_a_listing_ends_it(void **state)
{
    struct listing_entry entry = entry_of("/", "id"), read;
    struct buf buf = {.size = 0};
    struct span bytes;
    uint32_t huge = UINT32_MAX;
    (void)state;

    assert_true(listing_add(&buf, &entry));
    for (size_t size = 0; size < buf.size; size++) {
        char *copy = must_alloc(1, size + 1);

        memcpy(copy, buf_span(&buf).data, size);
        bytes = span_make(copy, size);
        assert_false(listing_next(&bytes, &read));
        assert_int_equal(bytes.size, size);
        free(copy);
    }
    memcpy(buf.memory + buf.start + offsetof(struct head, sizes), &huge, sizeof(huge));
    bytes = buf_span(&buf);
    assert_false(listing_next(&bytes, &read));
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_back_in_order),
        cmocka_unit_test(long_strings_are_cut_and_a_full_listing_takes_no_more),
        cmocka_unit_test(what_cannot_be_a_listing_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_chunk.c"

#include <stdio.h>

static enum h1_chunk_result read_text(struct h1_chunk *chunk, const char *text, size_t *ret_used)
{
    return h1_chunk_read(chunk, span_of(text), ret_used);
}

static void payload_is_skipped_by_its_length(void **state)
{
    struct h1_chunk chunk;
    size_t used;
    (void)state;

    h1_chunk_init(&chunk, 100);
    assert_int_equal(read_text(&chunk, "1A;x=y\r\nabc", &used), H1_CHUNK_PAYLOAD);
    assert_int_equal(used, 8);
    assert_int_equal(chunk.left, 26);
    h1_chunk_took(&chunk, 3);
    assert_int_equal(read_text(&chunk, "more", &used), H1_CHUNK_PAYLOAD);
    assert_int_equal(used, 0);
    h1_chunk_took(&chunk, 23);
    assert_int_equal(read_text(&chunk, "\r", &used), H1_CHUNK_MORE);
    assert_int_equal(read_text(&chunk, "\n0\r\nA: b\r\n\r\nGET", &used), H1_CHUNK_END);
    assert_int_equal(used, 12);
}

/* The line as a last chunk. */
static enum h1_chunk_result read_extension(const char *extension)
{
    struct h1_chunk chunk;
    char text[64];
    size_t used;

    h1_chunk_init(&chunk, 100);
    (void)snprintf(text, sizeof(text), "0%s\r\n\r\n", extension);
    return read_text(&chunk, text, &used);
}

static void an_extension_is_ignored_when_it_is_one(void **state)
{
    static const char *const good[] = {"", ";a", ";a=b", " ;\ta\t= \"b;\\\" c\";d", ";a=\"\""};
    static const char *const bad[] = {" ",        ";",         ";;a",    ";=b",
                                      ";a=",      ";a b",      ";a=\"b", ";a=\"b\"c",
                                      ";\"a\"=b", ";a=\"\\\"", ";a/b",   ";a "};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(read_extension(good[i]), H1_CHUNK_END);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(read_extension(bad[i]), H1_CHUNK_REFUSED);
}

static void the_largest_size_has_63_bits(void **state)
{
    struct h1_chunk chunk;
    size_t used;
    (void)state;

    h1_chunk_init(&chunk, 100);
    assert_int_equal(read_text(&chunk, "7fffffffffffffff\r\n", &used), H1_CHUNK_PAYLOAD);
    assert_true(chunk.left == INT64_MAX);
    h1_chunk_init(&chunk, 100);
    assert_int_equal(read_text(&chunk, "8000000000000000\r\n", &used), H1_CHUNK_REFUSED);
    assert_int_equal(chunk.refusal, REFUSAL_CHUNK);
    assert_int_equal(read_text(&chunk, "0\r\n\r\n", &used), H1_CHUNK_REFUSED);
}

static void a_long_size_line_is_refused(void **state)
{
    struct h1_chunk chunk;
    char line[LINE_BYTES + 2];
    size_t used;
    (void)state;

    memset(line, 'e', sizeof(line));
    memcpy(line, "5;", 2);
    h1_chunk_init(&chunk, 100);
    assert_int_equal(h1_chunk_read(&chunk, span_make(line, LINE_BYTES), &used), H1_CHUNK_MORE);
    assert_int_equal(h1_chunk_read(&chunk, span_of("e"), &used), H1_CHUNK_REFUSED);
}

static void much_framing_for_little_payload_is_refused(void **state)
{
    struct h1_chunk chunk;
    enum h1_chunk_result result = H1_CHUNK_MORE;
    char line[1024];
    size_t used;
    int chunks = 0;
    (void)state;

    memset(line, 'e', sizeof(line));
    memcpy(line, "1;", 2);
    memcpy(line + sizeof(line) - 2, "\r\n", 2);
    h1_chunk_init(&chunk, 100);
    while (result != H1_CHUNK_REFUSED && ++chunks < 100) {
        result = h1_chunk_read(&chunk, span_make(line, sizeof(line)), &used);
        if (result == H1_CHUNK_PAYLOAD) {
            h1_chunk_took(&chunk, 1);
            assert_int_equal(h1_chunk_read(&chunk, span_of("\r\n"), &used), H1_CHUNK_MORE);
        }
    }
    assert_in_range(chunks, 10, 20);
}

static void a_body_of_single_bytes_is_no_abuse(void **state)
{
    struct h1_chunk chunk;
    size_t used;
    (void)state;

    h1_chunk_init(&chunk, 100);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(h1_chunk_read(&chunk, span_of("1\r\n"), &used), H1_CHUNK_PAYLOAD);
        h1_chunk_took(&chunk, 1);
        assert_int_equal(h1_chunk_read(&chunk, span_of("\r\n"), &used), H1_CHUNK_MORE);
    }
}

static void a_large_trailer_is_refused(void **state)
{
    struct h1_chunk chunk;
    size_t used;
    (void)state;

    h1_chunk_init(&chunk, 10);
    assert_int_equal(read_text(&chunk, "0\r\nA: 12345\r\n\r\n", &used), H1_CHUNK_END);
    h1_chunk_init(&chunk, 10);
    assert_int_equal(read_text(&chunk, "0\r\nA: 123456\r\n\r\n", &used), H1_CHUNK_REFUSED);
    assert_int_equal(chunk.refusal, REFUSAL_FIELDS_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_is_skipped_by_its_length),
        cmocka_unit_test(an_extension_is_ignored_when_it_is_one),
        cmocka_unit_test(the_largest_size_has_63_bits),
        cmocka_unit_test(a_long_size_line_is_refused),
        cmocka_unit_test(much_framing_for_little_payload_is_refused),
        cmocka_unit_test(a_body_of_single_bytes_is_no_abuse),
        cmocka_unit_test(a_large_trailer_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

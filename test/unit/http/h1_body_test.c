/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_body.c"

#include <unistd.h>

static uint64_t used_bytes;

static struct h1_spool spool_of(size_t memory, uint64_t limit)
{
    used_bytes = 0;
    return (struct h1_spool){
        .memory_bytes = memory, .folder = "/tmp", .used = &used_bytes, .limit = limit};
}

static struct exchange *exchange_of(uint64_t body_limit)
{
    static struct exchange exchange;

    exchange_init(&exchange, NULL, NULL, NULL, NULL);
    exchange.request.body_limit = body_limit;
    return &exchange;
}

static void small_bodies_stay_in_memory_and_leave_what_follows(void **state)
{
    const struct h1_spool spool = spool_of(5, 100);
    const struct h1_framing framing = {.body = H1_BODY_LENGTH, .length = 5};
    struct exchange *exchange = exchange_of(100);
    struct h1_body_reader reader;
    enum refusal refusal;
    size_t used;
    (void)state;

    h1_body_start(&reader, &framing, 100);
    assert_int_equal(
        h1_body_read(&reader, &exchange->request, &spool, span_of("hel"), &used, &refusal),
        H1_BODY_MORE);
    assert_int_equal(
        h1_body_read(&reader, &exchange->request, &spool, span_of("loGET"), &used, &refusal),
        H1_BODY_END);
    assert_int_equal(used, 2);
    assert_true(span_is(buf_span(&exchange->request.body.memory), "hello"));
    assert_int_equal(exchange->request.body.fd, -1);
    exchange_done(exchange);
}

static void the_file_holds_all_of_a_larger_body_and_its_share_is_given_back(void **state)
{
    const struct h1_spool spool = spool_of(5, 100);
    const struct h1_framing framing = {.body = H1_BODY_CHUNKED, .length = -1};
    struct exchange *exchange = exchange_of(100);
    struct h1_body_reader reader;
    enum refusal refusal;
    char text[16];
    size_t used;
    (void)state;

    h1_body_start(&reader, &framing, 100);
    assert_int_equal(h1_body_read(&reader, &exchange->request, &spool,
                                  span_of("4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n"), &used, &refusal),
                     H1_BODY_END);
    assert_int_equal(exchange->request.body.size, 7);
    assert_int_equal(exchange->request.body.memory.size, 0);
    assert_int_equal(pread(exchange->request.body.fd, text, sizeof(text), 0), 7);
    assert_memory_equal(text, "abcdefg", 7);
    assert_int_equal(used_bytes, 7);
    h1_body_done(&reader, &spool);
    assert_int_equal(used_bytes, 0);
    exchange_done(exchange);
}

static enum refusal refusal_of(const struct h1_spool *spool, uint64_t body_limit, const char *text)
{
    const struct h1_framing framing = {.body = H1_BODY_CHUNKED, .length = -1};
    struct exchange *exchange = exchange_of(body_limit);
    struct h1_body_reader reader;
    enum refusal refusal;
    size_t used;

    h1_body_start(&reader, &framing, 100);
    (void)h1_body_read(&reader, &exchange->request, spool, span_of(text), &used, &refusal);
    h1_body_done(&reader, spool);
    exchange_done(exchange);
    return refusal;
}

static void every_limit_has_its_own_refusal(void **state)
{
    struct h1_spool spool = spool_of(5, 10);
    (void)state;

    assert_int_equal(refusal_of(&spool, 4, "4\r\nabcd\r\n0\r\n\r\n"), REFUSAL_NONE);
    assert_int_equal(refusal_of(&spool, 3, "4\r\n"), REFUSAL_TOO_LARGE);
    assert_int_equal(refusal_of(&spool, 6, "4\r\nabcd\r\n4\r\n"), REFUSAL_TOO_LARGE);
    assert_int_equal(refusal_of(&spool, 99, "b\r\n01234567890"), REFUSAL_SPOOL);
    assert_int_equal(refusal_of(&spool, 99, "x"), REFUSAL_CHUNK);
    spool.folder = "/nonexistent";
    assert_int_equal(refusal_of(&spool, 99, "6\r\n012345"), REFUSAL_SPOOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_bodies_stay_in_memory_and_leave_what_follows),
        cmocka_unit_test(the_file_holds_all_of_a_larger_body_and_its_share_is_given_back),
        cmocka_unit_test(every_limit_has_its_own_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

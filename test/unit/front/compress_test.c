/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/compress.c"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { LARGE = 2 * 1000 * 1000 };

/* One exchange whose connection takes all that stands ready when the test says so. */
static struct world {
    struct exchange exchange;
    struct loop *loop;
    struct encoder_store store;
    struct buf output;
    bool settled;
    int resumed;
} world;

static void on_update(struct exchange *exchange)
{
    (void)exchange;
}

static void on_resume(struct exchange *exchange)
{
    (void)exchange;
    world.resumed++;
}

static const struct conn world_conn = {.update = on_update};
static const struct handler world_handler = {.name = "test", .resume = on_resume};

static int setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.loop = loop_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    exchange_done(&world.exchange);
    assert_int_equal(world.store.live, 0);
    encoder_store_done(&world.store);
    buf_done(&world.output);
    loop_free(world.loop);
    return 0;
}

/* Begins the next request with this Accept-Encoding, or none. */
static struct exchange *begin_request(const char *accept)
{
    struct exchange *exchange = &world.exchange;

    exchange_reset(exchange);
    exchange_init(exchange, world.loop, &world_conn, NULL, NULL);
    exchange->request.method = METHOD_GET;
    exchange->handler = &world_handler;
    buf_clear(&world.output);
    world.settled = false;
    world.resumed = 0;
    if (accept)
        fields_add_id(&exchange->request.fields, FIELD_ID_ACCEPT_ENCODING, span_of(accept));
    compress_start(exchange, &world.store);
    return exchange;
}

static void add(const char *name, const char *value)
{
    exchange_add_field(&world.exchange, span_of(name), span_of(value));
}

/* A 200 with a type. */
static void head(const char *type, int64_t length)
{
    add("content-type", type);
    exchange_head(&world.exchange, 200, length);
}

/* What a connection does at the end of a batch; then whether anything was sent. */
static bool pull(void)
{
    struct exchange *exchange = &world.exchange;
    struct response *response = &exchange->response;
    bool sent = !list_is_empty(&response->pieces);

    if (!world.settled)
        exchange_settle(exchange);
    world.settled = true;
    while (!list_is_empty(&response->pieces)) {
        struct piece *piece = CONTAINER_OF(response->pieces.next, struct piece, link);

        sent = true;
        assert_int_equal(piece->kind, PIECE_BYTES);
        buf_append(&world.output, span_make(piece->data, piece->size));
        exchange_consume(exchange, piece->size);
    }
    exchange_pull(exchange);
    return sent;
}

static void run(void)
{
    for (int i = 0; i < 10000 && (pull() || !world.exchange.response.ended); i++)
        ;
    assert_true(world.exchange.response.ended);
}

static const char *field(const char *name)
{
    static char values[4][256];
    static unsigned next;
    char *value = values[next++ % 4];
    struct field *found = fields_find_name(&world.exchange.response.fields, span_of(name));

    value[0] = 0;
    if (found)
        snprintf(value, sizeof(values[0]), "%.*s", SPAN_ARG(found->value));
    return value;
}

/* The output decoded, as far as it goes. */
static size_t unzip(char *out, size_t room)
{
    z_stream stream = {.next_in = (unsigned char *)world.output.memory + world.output.start,
                       .avail_in = (uInt)world.output.size,
                       .next_out = (unsigned char *)out,
                       .avail_out = (uInt)room};

    assert_int_equal(inflateInit2(&stream, 31), Z_OK);
    (void)inflate(&stream, Z_SYNC_FLUSH);
    inflateEnd(&stream);
    return stream.total_out;
}

static char *make_text(size_t size)
{
    char *text = malloc(size);
    uint32_t random = 1;

    for (size_t i = 0; i < size; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = (char)('a' + (random >> 24) % 16);
    }
    return text;
}

static void answer(const char *type, size_t size)
{
    char *text = make_text(size);

    head(type, (int64_t)size);
    exchange_write(&world.exchange, span_make(text, size));
    exchange_end(&world.exchange, false);
    run();
    free(text);
}

static void a_text_is_coded_with_its_length_left_out_and_its_tag_weak(void **state)
{
    struct exchange *exchange = begin_request("gzip");
    char *text = make_text(LARGE), *plain = malloc(LARGE);
    (void)state;

    add("etag", "\"abc\"");
    add("set-cookie", "a=b");
    add("accept-ranges", "bytes");
    add("vary", "Cookie");
    head("text/html; charset=utf-8", LARGE);
    assert_int_equal(exchange->response.length, -1);
    exchange_write(exchange, span_make(text, LARGE));
    exchange_end(exchange, false);
    run();
    assert_string_equal(field("content-encoding"), "gzip");
    assert_string_equal(field("etag"), "W/\"abc\"");
    assert_string_equal(field("vary"), "Cookie, accept-encoding");
    assert_string_equal(field("accept-ranges"), "none");
    assert_false(exchange->response.cut);
    assert_true(world.output.size < LARGE);
    assert_int_equal(unzip(plain, LARGE), LARGE);
    assert_memory_equal(plain, text, LARGE);
    free(plain);
    free(text);
}

static void a_client_that_wants_no_coding_is_told_that_others_do(void **state)
{
    (void)state;
    begin_request(NULL);
    add("etag", "\"abc\"");
    answer("text/css", 5000);
    assert_string_equal(field("content-encoding"), "");
    assert_string_equal(field("vary"), "accept-encoding");
    assert_string_equal(field("etag"), "\"abc\"");
    assert_int_equal(world.exchange.response.length, 5000);
    assert_int_equal(world.output.size, 5000);
}

/* Sends 5000 bytes of a type with one more field and returns the coding. */
static const char *coding_with(const char *type, const char *name, const char *value)
{
    begin_request("gzip");
    if (name)
        add(name, value);
    answer(type, 5000);
    return field("content-encoding");
}

static void what_is_no_text_or_must_not_change_stays_as_it_is(void **state)
{
    (void)state;
    assert_string_equal(coding_with("application/json", NULL, NULL), "gzip");
    assert_string_equal(coding_with("image/png", NULL, NULL), "");
    assert_string_equal(field("vary"), "");
    assert_string_equal(coding_with("text/event-stream", NULL, NULL), "");
    assert_string_equal(coding_with("text/html", "cache-control", "private, no-transform"), "");
    assert_string_equal(coding_with("text/html", "content-encoding", "br"), "br");
    assert_string_equal(coding_with("text/html", "content-encoding", "identity"), "identity");
    assert_string_equal(coding_with("text/html", "content-range", "bytes 0-4999/9000"), "");
    assert_string_equal(coding_with("text/html", "repr-digest", "sha-256=:x=:"), "");
    begin_request("gzip");
    fields_add_id(&world.exchange.request.fields, FIELD_ID_CACHE_CONTROL, span_of("no-transform"));
    answer("text/html", 5000);
    assert_string_equal(field("content-encoding"), "");
}

static void tiny_bodies_stay_as_they_are_unless_identity_is_refused(void **state)
{
    (void)state;
    begin_request("gzip");
    answer("text/html", WORTH - 1);
    assert_string_equal(field("content-encoding"), "");
    assert_string_equal(field("vary"), "");
    begin_request("gzip");
    answer("text/html", WORTH);
    assert_string_equal(field("content-encoding"), "gzip");
    begin_request("gzip, identity;q=0");
    answer("text/html", 10);
    assert_string_equal(field("content-encoding"), "gzip");
}

static void an_unknown_length_that_is_over_at_once_is_a_known_one(void **state)
{
    struct exchange *exchange = begin_request("gzip");
    (void)state;

    head("text/html", -1);
    exchange_write(exchange, span_of("tiny "));
    exchange_write(exchange, span_of("body"));
    exchange_end(exchange, false);
    run();
    assert_string_equal(field("content-encoding"), "");
    assert_string_equal(field("vary"), "accept-encoding");
    assert_int_equal(exchange->response.written, 9);
    assert_int_equal(world.output.size, 9);
}

static void parts_of_a_stream_can_be_decoded_when_they_are_flushed(void **state)
{
    struct exchange *exchange = begin_request("gzip");
    char plain[64];
    (void)state;

    head("text/html", -1);
    exchange_write(exchange, span_of("one "));
    exchange_flush(exchange);
    pull();
    assert_int_equal(unzip(plain, sizeof(plain)), 4);
    assert_string_equal(field("content-encoding"), "gzip");
    exchange_write(exchange, span_of("two "));
    exchange_flush(exchange);
    pull();
    assert_int_equal(unzip(plain, sizeof(plain)), 8);
    assert_int_equal(world.resumed, 2);
    exchange_write(exchange, span_of("three"));
    exchange_end(exchange, false);
    run();
    assert_int_equal(unzip(plain, sizeof(plain)), 13);
    assert_memory_equal(plain, "one two three", 13);
}

static void the_head_of_a_head_request_is_that_of_get(void **state)
{
    struct exchange *exchange = begin_request("gzip");
    (void)state;

    exchange->request.method = METHOD_HEAD;
    add("etag", "\"abc\"");
    head("text/html", 5000);
    exchange_end(exchange, false);
    run();
    assert_string_equal(field("content-encoding"), "gzip");
    assert_string_equal(field("etag"), "W/\"abc\"");
    assert_int_equal(exchange->response.length, -1);
    exchange = begin_request("gzip");
    exchange->request.method = METHOD_HEAD;
    head("text/html", -1);
    exchange_end(exchange, false);
    assert_string_equal(field("content-encoding"), "");
    assert_string_equal(field("vary"), "accept-encoding");
}

static void a_wrong_length_is_visible(void **state)
{
    struct exchange *exchange = begin_request("gzip");
    char plain[5000], text[5000];
    (void)state;

    memset(text, 'x', sizeof(text));
    head("text/html", 6000);
    exchange_write(exchange, span_make(text, sizeof(text)));
    exchange_end(exchange, false);
    run();
    assert_true(exchange->response.cut);
    assert_int_equal(unzip(plain, sizeof(plain)), 5000); /* what there was */
    exchange = begin_request("gzip");
    head("text/html", 4000);
    exchange_write(exchange, span_make(text, sizeof(text)));
    exchange_end(exchange, false);
    run();
    assert_true(exchange->response.cut);
    assert_int_equal(unzip(plain, sizeof(plain)), 4000);
}

/* A spooled answer: bytes, a file, bytes that came while it was waiting. */
static void a_file_is_coded_as_the_client_takes_it(void **state)
{
    struct exchange *exchange = begin_request("gzip");
    char *text = make_text(LARGE), *plain = malloc(LARGE + 100);
    int fd = fd_temporary("/tmp");
    (void)state;

    assert_int_equal(fd_write_all(fd, span_make(text, LARGE)), 0);
    head("text/plain", -1);
    exchange_write(exchange, span_of("before"));
    exchange_write_file(exchange, fd, true, 0, LARGE);
    exchange_write(exchange, span_of("behind"));
    assert_int_equal(exchange->response.memory, exchange->response.pending + 6);
    exchange_end(exchange, false);
    assert_false(exchange->response.ended);
    assert_null(exchange->handler);
    while (!exchange->response.ended) {
        assert_true(exchange->response.pending <= 2 * EXCHANGE_LOW);
        pull();
    }
    run();
    assert_false(exchange->response.cut);
    assert_int_equal(unzip(plain, LARGE + 100), LARGE + 12);
    assert_memory_equal(plain, "before", 6);
    assert_memory_equal(plain + 6, text, LARGE);
    assert_memory_equal(plain + 6 + LARGE, "behind", 6);
    free(plain);
    free(text);
}

static void a_file_that_shrank_cuts_the_answer(void **state)
{
    struct exchange *exchange = begin_request("gzip");
    int fd = fd_temporary("/tmp");
    (void)state;

    assert_int_equal(fd_write_all(fd, span_of("short")), 0);
    head("text/plain", -1);
    exchange_write_file(exchange, fd, true, 0, LARGE);
    exchange_end(exchange, false);
    run();
    assert_true(exchange->response.cut);
}

static void the_client_may_leave_at_any_time(void **state)
{
    struct exchange *exchange = begin_request("br");
    int fd = fd_temporary("/tmp");
    char *text = make_text(LARGE);
    (void)state;

    assert_int_equal(fd_write_all(fd, span_make(text, LARGE)), 0);
    head("text/plain", -1);
    exchange_write_file(exchange, fd, true, 0, LARGE);
    exchange_write(exchange, span_of("behind"));
    exchange_reset(exchange);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    free(text);
}

static void without_an_encoder_the_answer_goes_out_as_it_is(void **state)
{
    (void)state;
    begin_request("gzip");
    world.store.live = ENCODER_LIVE;
    answer("text/html", 5000);
    assert_string_equal(field("content-encoding"), "");
    assert_int_equal(world.exchange.response.length, 5000);
    assert_int_equal(world.output.size, 5000);
    begin_request("gzip");
    head("text/html", -1);
    exchange_write(&world.exchange, span_of("some "));
    exchange_flush(&world.exchange);
    pull();
    exchange_write(&world.exchange, span_of("bytes"));
    exchange_end(&world.exchange, false);
    run();
    assert_int_equal(world.output.size, 10);
    world.store.live = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_is_coded_with_its_length_left_out_and_its_tag_weak,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_that_wants_no_coding_is_told_that_others_do, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_no_text_or_must_not_change_stays_as_it_is, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(tiny_bodies_stay_as_they_are_unless_identity_is_refused,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_unknown_length_that_is_over_at_once_is_a_known_one,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_a_stream_can_be_decoded_when_they_are_flushed,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_head_of_a_head_request_is_that_of_get, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_length_is_visible, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_is_coded_as_the_client_takes_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_shrank_cuts_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(the_client_may_leave_at_any_time, setup, teardown),
        cmocka_unit_test_setup_teardown(without_an_encoder_the_answer_goes_out_as_it_is, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/encoder.c"

#include "base/buf.h"

#include <brotli/decode.h>

enum { LARGE = 3 * 1000 * 1000 };

static void collect(void *data, struct span bytes)
{
    assert_int_equal(buf_append(data, bytes), 0);
}

static void run(struct encoder *encoder, struct span input, enum encoder_step step, struct buf *out)
{
    assert_true(encoder_run(encoder, input, step, collect, out));
}

/* ---- Decoders; each gives what can be seen of a stream so far ---- */

static size_t unzip(struct span coded, char *out, size_t room)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)coded.data,
                       .avail_in = (uInt)coded.size,
                       .next_out = (unsigned char *)out,
                       .avail_out = (uInt)room};

    assert_int_equal(inflateInit2(&stream, GZIP_WINDOW), Z_OK);
    (void)inflate(&stream, Z_SYNC_FLUSH);
    inflateEnd(&stream);
    return stream.total_out;
}

static size_t unzstd(struct span coded, char *out, size_t room)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ZSTD_inBuffer in = {coded.data, coded.size, 0};
    ZSTD_outBuffer result = {out, room, 0};
    size_t before;

    do {
        before = result.pos + in.pos;
        assert_false(ZSTD_isError(ZSTD_decompressStream(context, &result, &in)));
    } while (result.pos + in.pos > before);
    ZSTD_freeDCtx(context);
    return result.pos;
}

static size_t unbrotli(struct span coded, char *out, size_t room)
{
    BrotliDecoderState *decoder = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const uint8_t *in = (const uint8_t *)coded.data;
    uint8_t *next = (uint8_t *)out;
    size_t left = coded.size, space = room;

    assert_int_not_equal(BrotliDecoderDecompressStream(decoder, &left, &in, &space, &next, NULL),
                         BROTLI_DECODER_RESULT_ERROR);
    BrotliDecoderDestroyInstance(decoder);
    return room - space;
}

static size_t (*const decoders[])(struct span coded, char *out, size_t room) = {
    [CODING_BR] = unbrotli, [CODING_ZSTD] = unzstd, [CODING_GZIP] = unzip};

static char *make_text(size_t size)
{
    char *text = malloc(size);
    uint32_t random = 1;

    for (size_t i = 0; i < size; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = i % 7 ? (char)('a' + (random >> 24) % 26) : ' ';
    }
    return text;
}

/* ---- */

static void what_was_coded_can_be_decoded_also_in_a_second_use(void **state)
{
    struct encoder_store store = {0};
    char *text = make_text(LARGE), *plain = malloc(LARGE);
    (void)state;

    for (enum coding coding = CODING_BR; coding < CODING_COUNT; coding++)
        for (int use = 0; use < 2; use++) {
            struct encoder *encoder = encoder_take(&store, coding);
            struct buf out = {0};

            assert_non_null(encoder);
            for (size_t at = 0; at < LARGE; at += LARGE / 100)
                run(encoder, span_make(text + at, LARGE / 100), ENCODER_MORE, &out);
            run(encoder, (struct span){0}, ENCODER_END, &out);
            assert_true(out.size < LARGE);
            assert_int_equal(decoders[coding](buf_span(&out), plain, LARGE), LARGE);
            assert_memory_equal(plain, text, LARGE);
            encoder_give(&store, encoder);
            buf_done(&out);
        }
    encoder_store_done(&store);
    free(plain);
    free(text);
}

static void a_flush_shows_all_that_was_given(void **state)
{
    struct encoder_store store = {0};
    char plain[64];
    (void)state;

    for (enum coding coding = CODING_BR; coding < CODING_COUNT; coding++) {
        struct encoder *encoder = encoder_take(&store, coding);
        struct buf out = {0};

        run(encoder, (struct span){0}, ENCODER_FLUSH, &out);
        run(encoder, span_of("one "), ENCODER_FLUSH, &out);
        assert_int_equal(decoders[coding](buf_span(&out), plain, sizeof(plain)), 4);
        run(encoder, (struct span){0}, ENCODER_FLUSH, &out);
        run(encoder, span_of("two"), ENCODER_FLUSH, &out);
        assert_int_equal(decoders[coding](buf_span(&out), plain, sizeof(plain)), 7);
        assert_memory_equal(plain, "one two", 7);
        encoder_give(&store, encoder);
        buf_done(&out);
    }
    encoder_store_done(&store);
}

static void one_of_each_kind_is_kept_and_their_number_is_bounded(void **state)
{
    struct encoder_store store = {0};
    struct encoder *taken[ENCODER_LIVE];
    (void)state;

    for (size_t i = 0; i < ENCODER_LIVE; i++)
        assert_non_null(taken[i] = encoder_take(&store, CODING_GZIP));
    assert_null(encoder_take(&store, CODING_ZSTD));
    for (size_t i = 0; i < ENCODER_LIVE; i++)
        encoder_give(&store, taken[i]);
    assert_int_equal(store.live, 0);
    assert_ptr_equal(encoder_take(&store, CODING_GZIP), taken[0]);
    encoder_give(&store, taken[0]);
    encoder_give(&store, NULL);
    encoder_store_done(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_coded_can_be_decoded_also_in_a_second_use),
        cmocka_unit_test(a_flush_shows_all_that_was_given),
        cmocka_unit_test(one_of_each_kind_is_kept_and_their_number_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

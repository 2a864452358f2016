/* SPDX-License-Identifier: MIT */
#include "front/encoder.h"

#include "base/base.h"

#include <brotli/encode.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* Measured on pages and JSON of 10 and 100 kB: of each library the level behind which a few per cent fewer
 * bytes cost half of the speed. */
enum {
    BROTLI_LEVEL = 2,
    BROTLI_WINDOW = 16, /* bits */
    ZSTD_LEVEL = 1,
    ZSTD_WINDOW = 17,
    GZIP_LEVEL = 2,
    GZIP_WINDOW = 15 + 16, /* 16 stands for the gzip wrapper */
    GZIP_MEMORY = 8,
    PART = 16 * 1024 /* handed to the sink at most */
};

struct encoder {
    enum coding coding;
    union {
        BrotliEncoderState *brotli;
        ZSTD_CCtx *zstd;
        z_stream gzip;
    };
};

/* ---- brotli ---- */

/* There is no way to begin anew with one that was used. */
static bool brotli_begin(struct encoder *encoder)
{
    if (encoder->brotli)
        BrotliEncoderDestroyInstance(encoder->brotli);
    encoder->brotli = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    return encoder->brotli &&
           BrotliEncoderSetParameter(encoder->brotli, BROTLI_PARAM_QUALITY, BROTLI_LEVEL) &&
           BrotliEncoderSetParameter(encoder->brotli, BROTLI_PARAM_LGWIN, BROTLI_WINDOW);
}

static void brotli_end(struct encoder *encoder)
{
    if (encoder->brotli)
        BrotliEncoderDestroyInstance(encoder->brotli);
}

static bool brotli_run(struct encoder *encoder, struct span input, enum encoder_step step,
                       void (*sink)(void *, struct span), void *data)
{
    static const BrotliEncoderOperation operations[] = {
        [ENCODER_MORE] = BROTLI_OPERATION_PROCESS,
        [ENCODER_FLUSH] = BROTLI_OPERATION_FLUSH,
        [ENCODER_END] = BROTLI_OPERATION_FINISH,
    };
    const uint8_t *next = (const uint8_t *)input.data;
    size_t left = input.size;

    do {
        size_t no_room = 0, size = 0;
        const uint8_t *out;

        if (!BrotliEncoderCompressStream(encoder->brotli, operations[step], &left, &next, &no_room,
                                         NULL, NULL))
            return false;
        out = BrotliEncoderTakeOutput(encoder->brotli, &size);
        if (size)
            sink(data, span_make((const char *)out, size));
    } while (left || BrotliEncoderHasMoreOutput(encoder->brotli) ||
             (step == ENCODER_END && !BrotliEncoderIsFinished(encoder->brotli)));
    return true;
}

/* ---- Zstandard ---- */

static bool zstd_begin(struct encoder *encoder)
{
    if (!encoder->zstd)
        encoder->zstd = ZSTD_createCCtx();
    return encoder->zstd &&
           !ZSTD_isError(ZSTD_CCtx_reset(encoder->zstd, ZSTD_reset_session_and_parameters)) &&
           !ZSTD_isError(
               ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_windowLog, ZSTD_WINDOW));
}

static void zstd_end(struct encoder *encoder)
{
    (void)ZSTD_freeCCtx(encoder->zstd);
}

static bool zstd_run(struct encoder *encoder, struct span input, enum encoder_step step,
                     void (*sink)(void *, struct span), void *data)
{
    static const ZSTD_EndDirective directives[] = {
        [ENCODER_MORE] = ZSTD_e_continue,
        [ENCODER_FLUSH] = ZSTD_e_flush,
        [ENCODER_END] = ZSTD_e_end,
    };
    ZSTD_inBuffer in = {.src = input.data, .size = input.size};
    char part[PART];
    bool is_done;

    do {
        ZSTD_outBuffer out = {.dst = part, .size = sizeof(part)};
        size_t rest = ZSTD_compressStream2(encoder->zstd, &out, &in, directives[step]);

        if (ZSTD_isError(rest))
            return false;
        if (out.pos)
            sink(data, span_make(part, out.pos));
        is_done = step == ENCODER_MORE ? in.pos == in.size : rest == 0;
    } while (!is_done);
    return true;
}

/* ---- gzip ---- */

static bool gzip_begin(struct encoder *encoder)
{
    if (encoder->gzip.state)
        return deflateReset(&encoder->gzip) == Z_OK;
    return deflateInit2(&encoder->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                        Z_DEFAULT_STRATEGY) == Z_OK;
}

static void gzip_end(struct encoder *encoder)
{
    (void)deflateEnd(&encoder->gzip);
}

/* Counts of zlib have 32 bits. What it gives nothing for (Z_BUF_ERROR) was flushed already. */
static bool gzip_run(struct encoder *encoder, struct span input, enum encoder_step step,
                     void (*sink)(void *, struct span), void *data)
{
    static const int flushes[] = {
        [ENCODER_MORE] = Z_NO_FLUSH,
        [ENCODER_FLUSH] = Z_SYNC_FLUSH,
        [ENCODER_END] = Z_FINISH,
    };
    z_stream *stream = &encoder->gzip;
    unsigned char part[PART];

    CHECK(input.size <= UINT32_MAX);
    stream->next_in = (unsigned char *)(uintptr_t)input.data;
    stream->avail_in = (uInt)input.size;
    do {
        int result;

        stream->next_out = part;
        stream->avail_out = sizeof(part);
        result = deflate(stream, flushes[step]);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return false;
        if (stream->avail_out < sizeof(part))
            sink(data, span_make((const char *)part, sizeof(part) - stream->avail_out));
    } while (stream->avail_out == 0);
    return true;
}

/* ---- The one face ---- */

static const struct {
    bool (*begin)(struct encoder *encoder);
    void (*end)(struct encoder *encoder);
    bool (*run)(struct encoder *encoder, struct span input, enum encoder_step step,
                void (*sink)(void *, struct span), void *data);
} kinds[] = {
    [CODING_BR] = {brotli_begin, brotli_end, brotli_run},
    [CODING_ZSTD] = {zstd_begin, zstd_end, zstd_run},
    [CODING_GZIP] = {gzip_begin, gzip_end, gzip_run},
};

static void free_encoder(struct encoder *encoder)
{
    kinds[encoder->coding].end(encoder);
    free(encoder);
}

struct encoder *encoder_take(struct encoder_store *store, enum coding coding)
{
    struct encoder *encoder = store->spares[coding];

    if (store->live == ENCODER_LIVE)
        return NULL;
    store->spares[coding] = NULL;
    if (!encoder) {
        encoder = calloc(1, sizeof(*encoder));
        if (!encoder)
            return NULL;
        encoder->coding = coding;
    }
    if (!kinds[coding].begin(encoder)) {
        free_encoder(encoder);
        return NULL;
    }
    store->live++;
    return encoder;
}

void encoder_give(struct encoder_store *store, struct encoder *encoder)
{
    if (!encoder)
        return;
    store->live--;
    if (store->spares[encoder->coding])
        free_encoder(encoder);
    else
        store->spares[encoder->coding] = encoder;
}

void encoder_store_done(struct encoder_store *store)
{
    for (size_t i = 0; i < CODING_COUNT; i++) {
        if (store->spares[i])
            free_encoder(store->spares[i]);
        store->spares[i] = NULL;
    }
}

bool encoder_run(struct encoder *encoder, struct span input, enum encoder_step step,
                 void (*sink)(void *data, struct span bytes), void *data)
{
    return kinds[encoder->coding].run(encoder, input, step, sink, data);
}

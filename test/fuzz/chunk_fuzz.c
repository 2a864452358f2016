/* SPDX-License-Identifier: MIT */
/*
 * Chunked bodies: the same payload and end whole, byte by byte and cut anywhere; and what is taken is what a
 * plain reader makes of it.
 */
#include "base/base.h"
#include "base/buf.h"
#include "http/h1_chunk.h"

#include "chunk_plain.h"

/* step 0: pieces whose lengths the bytes themselves choose. */
static enum h1_chunk_result read_in_steps(struct span bytes, size_t step, struct buf *payload,
                                          size_t *ret_used)
{
    enum h1_chunk_result result = H1_CHUNK_MORE;
    struct h1_chunk chunk;

    h1_chunk_init(&chunk, 256);
    for (*ret_used = 0; *ret_used < bytes.size && result <= H1_CHUNK_PAYLOAD;) {
        struct span part = span_skip(bytes, *ret_used);
        size_t used;

        part = span_first(part, step ? step : 1u + (unsigned char)part.data[0] % 13);
        result = h1_chunk_read(&chunk, part, &used);
        part = span_first(span_skip(part, used), chunk.left);
        CHECK(buf_append(payload, part) == 0);
        h1_chunk_took(&chunk, part.size);
        *ret_used += used + part.size;
        if (result == H1_CHUNK_PAYLOAD && !chunk.left)
            result = H1_CHUNK_MORE;
    }
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_make((const char *)data, size);
    struct buf payload = {0}, cut = {0};
    size_t used, cut_used;
    enum h1_chunk_result result = read_in_steps(bytes, size + 1, &payload, &used);

    for (size_t step = 0; step <= 2; step++, buf_done(&cut)) {
        CHECK(read_in_steps(bytes, step, &cut, &cut_used) == result);
        CHECK(span_equal(buf_span(&cut), buf_span(&payload)));
        CHECK(cut_used == used || result == H1_CHUNK_REFUSED);
    }
    if (result == H1_CHUNK_END)
        CHECK(read_plainly(bytes, buf_span(&payload)).size == size - used);
    return buf_done(&payload), 0;
}

/* SPDX-License-Identifier: MIT */
#include "http/h1_chunk.h"

#include "base/ascii.h"
#include "base/base.h"

/* A client that hides next to nothing in much framing is refused: a size line may have LINE_BYTES, and
 * all lines together EXCESS_BYTES more than FREE_BYTES for each of them and twice their payload. */
enum { LINE_BYTES = 4096, FREE_BYTES = 16, EXCESS_BYTES = 16 * 1024 };

%%{
    machine h1_chunk;
    include h1_grammar "h1_grammar.rl";

    action line_byte {
        if (++chunk->line_bytes > LINE_BYTES) { chunk->refusal = REFUSAL_CHUNK; fbreak; }
    }
    action trailer_byte {
        if (++chunk->trailer_bytes > chunk->trailer_limit) {
            chunk->refusal = REFUSAL_FIELDS_LARGE;
            fbreak;
        }
    }
    action size_digit {
        if (!add_digit(chunk, (char)fc)) { chunk->refusal = REFUSAL_CHUNK; fbreak; }
    }
    action end_line {
        if (!end_line(chunk)) { chunk->refusal = REFUSAL_CHUNK; fbreak; }
        if (chunk->left) { fnext payload_end; fbreak; }
        fgoto trailer;
    }
    action next_line {
        fgoto main;
    }
    action done {
        done = true;
        fbreak;
    }

    payload_end := crlf @next_line;
    trailer := (field_name ":" field_value crlf)* $trailer_byte crlf @done;
    main := (chunk_size $size_digit chunk_extension) $line_byte crlf @end_line;
}%%

%% write data noentry;

static bool add_digit(struct h1_chunk *chunk, char digit)
{
    if (chunk->size >> 59) /* the next digit would reach 2^63 */
        return false;
    chunk->size = chunk->size << 4 | (uint64_t)ascii_hex(digit);
    return true;
}

static bool end_line(struct h1_chunk *chunk)
{
    uint64_t excused = FREE_BYTES + 2 * chunk->size;

    if (chunk->line_bytes > excused)
        chunk->excess_bytes += chunk->line_bytes - (size_t)excused;
    chunk->left = chunk->size;
    chunk->size = chunk->line_bytes = 0;
    return chunk->excess_bytes <= EXCESS_BYTES;
}

/* The machine itself; true when the last line was read. */
static bool run(struct h1_chunk *chunk, const char *bytes, size_t size, size_t *ret_used)
{
    const unsigned char *p = (const unsigned char *)bytes;
    const unsigned char *start = p, *pe = p + size;
    bool done = false;
    int cs = chunk->state;

    %% write exec;

    chunk->state = cs;
    *ret_used = (size_t)(p - start);
    if (cs == h1_chunk_error && chunk->refusal == REFUSAL_NONE)
        chunk->refusal = REFUSAL_CHUNK;
    return done;
}

void h1_chunk_init(struct h1_chunk *chunk, size_t trailer_limit)
{
    *chunk = (struct h1_chunk){.state = h1_chunk_start, .trailer_limit = trailer_limit};
}

enum h1_chunk_result h1_chunk_read(struct h1_chunk *chunk, struct span bytes, size_t *ret_used)
{
    bool done = false;

    *ret_used = 0;
    if (chunk->refusal != REFUSAL_NONE)
        return H1_CHUNK_REFUSED;
    if (!chunk->left && bytes.size)
        done = run(chunk, bytes.data, bytes.size, ret_used);
    if (chunk->refusal != REFUSAL_NONE)
        return H1_CHUNK_REFUSED;
    if (done)
        return H1_CHUNK_END;
    return chunk->left ? H1_CHUNK_PAYLOAD : H1_CHUNK_MORE;
}

void h1_chunk_took(struct h1_chunk *chunk, uint64_t count)
{
    CHECK(count <= chunk->left);
    chunk->left -= count;
}

/* SPDX-License-Identifier: MIT */
#include "http/h1_body.h"

#include "base/fd.h"

void h1_body_start(struct h1_body_reader *reader, const struct h1_framing *framing,
                   size_t trailer_limit)
{
    *reader = (struct h1_body_reader){.kind = framing->body};
    if (framing->body == H1_BODY_LENGTH)
        reader->left = (uint64_t)framing->length;
    if (framing->body == H1_BODY_CHUNKED)
        h1_chunk_init(&reader->chunk, trailer_limit);
}

void h1_body_done(struct h1_body_reader *reader, const struct h1_spool *spool)
{
    *spool->used -= reader->spooled_bytes;
    reader->spooled_bytes = 0;
}

/* Every failure to store a body is one of room: a full disk, no descriptor, the spool's own limit. */
static enum refusal write_file(struct h1_body_reader *reader, struct body *body,
                               const struct h1_spool *spool, struct span bytes)
{
    if (bytes.size > spool->limit || *spool->used > spool->limit - bytes.size)
        return REFUSAL_SPOOL;
    if (fd_write_all(body->fd, bytes))
        return REFUSAL_SPOOL;
    *spool->used += bytes.size;
    reader->spooled_bytes += bytes.size;
    return REFUSAL_NONE;
}

/* The file holds all of the body, so what is in memory goes first. */
static enum refusal open_file(struct h1_body_reader *reader, struct body *body,
                              const struct h1_spool *spool)
{
    enum refusal refusal;
    int fd = fd_temporary(spool->folder);

    if (fd < 0)
        return REFUSAL_SPOOL;
    body->fd = fd;
    if (!body->memory.size)
        return REFUSAL_NONE;
    refusal = write_file(reader, body, spool, buf_span(&body->memory));
    buf_done(&body->memory);
    return refusal;
}

static bool fits_memory(const struct h1_body_reader *reader, const struct body *body,
                        const struct h1_spool *spool, size_t size)
{
    uint64_t coming = reader->kind == H1_BODY_LENGTH ? reader->left : size;

    return body->size + coming <= spool->memory_bytes;
}

static enum refusal store(struct h1_body_reader *reader, struct request *request,
                          const struct h1_spool *spool, struct span bytes)
{
    struct body *body = &request->body;
    enum refusal refusal = REFUSAL_NONE;

    /* Chunks tell their sizes one by one: the limit holds in the middle, too. */
    if (bytes.size > request->body_limit || body->size > request->body_limit - bytes.size)
        return REFUSAL_TOO_LARGE;
    if (reader->dropped) {
        body->size += bytes.size;
        return REFUSAL_NONE;
    }
    if (body->fd == -1 && !fits_memory(reader, body, spool, bytes.size))
        refusal = open_file(reader, body, spool);
    if (refusal != REFUSAL_NONE)
        return refusal;
    if (body->fd != -1)
        refusal = write_file(reader, body, spool, bytes);
    else if (buf_append(&body->memory, bytes))
        refusal = REFUSAL_SPOOL;
    if (refusal == REFUSAL_NONE)
        body->size += bytes.size;
    return refusal;
}

static enum h1_body_result read_length(struct h1_body_reader *reader, struct request *request,
                                       const struct h1_spool *spool, struct span bytes,
                                       size_t *ret_used, enum refusal *ret_refusal)
{
    struct span part = span_first(bytes, reader->left);

    *ret_refusal = store(reader, request, spool, part);
    if (*ret_refusal != REFUSAL_NONE)
        return H1_BODY_REFUSED;
    reader->left -= part.size;
    *ret_used = part.size;
    return reader->left ? H1_BODY_MORE : H1_BODY_END;
}

static enum h1_body_result read_chunked(struct h1_body_reader *reader, struct request *request,
                                        const struct h1_spool *spool, struct span bytes,
                                        size_t *ret_used, enum refusal *ret_refusal)
{
    struct h1_chunk *chunk = &reader->chunk;

    for (;;) {
        size_t used;
        enum h1_chunk_result result = h1_chunk_read(chunk, bytes, &used);
        struct span part;

        *ret_used += used;
        bytes = span_skip(bytes, used);
        if (result == H1_CHUNK_END)
            return H1_BODY_END;
        *ret_refusal = result == H1_CHUNK_REFUSED ? chunk->refusal : REFUSAL_NONE;
        /* A chunk that is too large is refused at its size line, before it has come. */
        if (result == H1_CHUNK_PAYLOAD && chunk->left > request->body_limit - request->body.size)
            *ret_refusal = REFUSAL_TOO_LARGE;
        if (*ret_refusal != REFUSAL_NONE)
            return H1_BODY_REFUSED;
        if (result == H1_CHUNK_MORE || !bytes.size)
            return H1_BODY_MORE;
        part = span_first(bytes, chunk->left);
        *ret_refusal = store(reader, request, spool, part);
        if (*ret_refusal != REFUSAL_NONE)
            return H1_BODY_REFUSED;
        h1_chunk_took(chunk, part.size);
        *ret_used += part.size;
        bytes = span_skip(bytes, part.size);
    }
}

enum h1_body_result h1_body_read(struct h1_body_reader *reader, struct request *request,
                                 const struct h1_spool *spool, struct span bytes, size_t *ret_used,
                                 enum refusal *ret_refusal)
{
    *ret_used = 0;
    *ret_refusal = REFUSAL_NONE;
    if (reader->kind == H1_BODY_NONE)
        return H1_BODY_END;
    if (!bytes.size)
        return H1_BODY_MORE;
    if (reader->kind == H1_BODY_LENGTH)
        return read_length(reader, request, spool, bytes, ret_used, ret_refusal);
    return read_chunked(reader, request, spool, bytes, ret_used, ret_refusal);
}

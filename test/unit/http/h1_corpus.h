/* SPDX-License-Identifier: MIT */
/*
 * Reads a connection's bytes as http/h1_receive does, without a socket, cut in any way: what the corpus
 * test and the fuzzer share. Limits are small, so that files can be.
 */
#pragma once

#include "http/h1_body.h"
#include "http/h1_request.h"

#include <stdio.h>
#include <stdlib.h>

enum { CORPUS_BODY_LIMIT = 1024 };

struct corpus_reader {
    struct exchange exchange;
    struct h1_parser parser;
    struct h1_framing framing;
    struct h1_body_reader body;
    struct buf input;
    bool in_body;
    bool begun;
    bool refused;
    struct buf told; /* "POST /x 5|! framing" */
};

static const struct h1_limits corpus_limits = {
    .target_bytes = 1024, .field_bytes = 1024, .header_bytes = 3072, .field_count = 16};
static uint64_t corpus_spool_used;
static const struct h1_spool corpus_spool = {
    .memory_bytes = 1 << 20, .folder = "/tmp", .used = &corpus_spool_used, .limit = 1 << 20};

static void corpus_tell(struct corpus_reader *reader, const char *format, struct span a,
                        struct span b, unsigned long number)
{
    if (reader->told.size)
        (void)buf_append_byte(&reader->told, '|');
    (void)buf_printf(&reader->told, format, SPAN_ARG(a), SPAN_ARG(b), number);
}

static bool corpus_refuse(struct corpus_reader *reader, enum refusal refusal)
{
    struct span word = span_of(http_refusal_word(refusal));

    if (reader->told.size)
        (void)buf_append_byte(&reader->told, '|');
    (void)buf_printf(&reader->told, "! %.*s", SPAN_ARG(word));
    reader->refused = true;
    return false;
}

static bool corpus_end(struct corpus_reader *reader)
{
    const struct request *request = &reader->exchange.request;

    corpus_tell(reader, "%.*s %.*s %lu", request->method_text, request->path,
                (unsigned long)request->body.size);
    exchange_reset(&reader->exchange);
    reader->begun = reader->in_body = false;
    return true;
}

static bool corpus_body(struct corpus_reader *reader)
{
    enum refusal refusal;
    size_t used;
    enum h1_body_result result =
        h1_body_read(&reader->body, &reader->exchange.request, &corpus_spool,
                     buf_span(&reader->input), &used, &refusal);

    buf_consume(&reader->input, used);
    if (result == H1_BODY_REFUSED)
        return corpus_refuse(reader, refusal);
    return result == H1_BODY_END && corpus_end(reader);
}

static bool corpus_head(struct corpus_reader *reader)
{
    struct request *request = &reader->exchange.request;
    enum refusal refusal;

    if (!reader->input.size)
        return false;
    if (!reader->begun) {
        exchange_init(&reader->exchange, NULL, NULL, NULL, NULL);
        h1_parser_init(&reader->parser, &corpus_limits, &reader->exchange.arena);
        request->body_limit = CORPUS_BODY_LIMIT;
        reader->begun = true;
    }
    switch (h1_parser_read(&reader->parser, buf_span(&reader->input))) {
    case H1_MORE:
        return false;
    case H1_REFUSED:
        return corpus_refuse(reader, reader->parser.refusal);
    case H1_DONE:
        break;
    }
    refusal = h1_request_read(request, &reader->exchange.arena, &reader->parser,
                              buf_span(&reader->input), &reader->framing);
    buf_consume(&reader->input, reader->parser.at);
    if (refusal != REFUSAL_NONE)
        return corpus_refuse(reader, refusal);
    h1_body_start(&reader->body, &reader->framing, corpus_limits.header_bytes);
    reader->in_body = true;
    return true;
}

/* Gives the reader the next bytes. */
static void corpus_feed(struct corpus_reader *reader, struct span bytes)
{
    if (!bytes.size || reader->refused)
        return;
    (void)buf_append(&reader->input, bytes);
    while (!reader->refused && (reader->in_body ? corpus_body(reader) : corpus_head(reader)))
        continue;
}

/* What the reader made of all bytes; "more" is added when it waits inside a request. Frees it. */
static char *corpus_done(struct corpus_reader *reader)
{
    char *told;

    if (!reader->refused && reader->begun)
        (void)buf_printf(&reader->told, "%smore", reader->told.size ? "|" : "");
    told = strndup(reader->told.size ? buf_span(&reader->told).data : "", reader->told.size);
    exchange_done(&reader->exchange);
    buf_done(&reader->input);
    buf_done(&reader->told);
    return told;
}

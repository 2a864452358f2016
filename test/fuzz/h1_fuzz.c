/* SPDX-License-Identifier: MIT */
/*
 * Request heads, framing and bodies: never a crash, the same result whole, byte by byte and cut anywhere,
 * and of a head that is taken no field with a line end in it.
 */
#include "base/ascii.h"

#include "../unit/http/h1_corpus.h"

/* step 0: pieces whose lengths the bytes themselves choose. */
static char *read_in_steps(struct span bytes, size_t step)
{
    struct corpus_reader reader = {0};

    for (size_t at = 0, next; at < bytes.size; at += next) {
        next = step ? step : 1 + (unsigned char)bytes.data[at] * (at + 7) % 61;
        corpus_feed(&reader, span_first(span_skip(bytes, at), next));
    }
    return corpus_done(&reader);
}

static void check_request(const struct request *request, const struct h1_framing *framing)
{
    CHECK(ascii_all(request->method_text, ASCII_TOKEN) && request->method_text.size);
    CHECK(framing->body != H1_BODY_CHUNKED || request->minor == 1);
    CHECK(fields_count(&request->fields, FIELD_ID_CONTENT_LENGTH) <= 1);
    CHECK(request->path.size && (request->host.size || request->minor == 0));
    fields_for_each (field, &request->fields) {
        CHECK(field->name.size && ascii_all(field->name, ASCII_TOKEN));
        CHECK(!field->value.size || ascii_all(field->value, ASCII_VALUE));
        CHECK(span_trim(field->value).size == field->value.size);
    }
}

/* The first head alone. */
static void check_head(struct span bytes)
{
    struct exchange exchange = {0};
    struct h1_parser parser;
    struct h1_framing framing;

    exchange_init(&exchange, NULL, NULL, NULL, NULL);
    h1_parser_init(&parser, &corpus_limits, &exchange.arena);
    if (h1_parser_read(&parser, bytes) == H1_DONE &&
        h1_request_read(&exchange.request, &exchange.arena, &parser, bytes, &framing) == 0)
        check_request(&exchange.request, &framing);
    exchange_done(&exchange);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_make((const char *)data, size);
    char *whole = read_in_steps(bytes, size ? size : 1), *bytewise = read_in_steps(bytes, 1),
         *cut = read_in_steps(bytes, 0);

    CHECK(strcmp(whole, bytewise) == 0 && strcmp(whole, cut) == 0);
    check_head(bytes);
    return free(whole), free(bytewise), free(cut), 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Request heads, framing and bodies of one connection: never a crash, and the same result whole and byte
 * by byte.
 */
#include "../unit/http/h1_corpus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *read_in_steps(struct span bytes, size_t step)
{
    struct corpus_reader reader = {0};

    for (size_t at = 0; at < bytes.size; at += step)
        corpus_feed(&reader, span_first(span_skip(bytes, at), step));
    return corpus_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_make((const char *)data, size);
    char *whole = read_in_steps(bytes, size ? size : 1);
    char *bytewise = read_in_steps(bytes, 1);

    CHECK(strcmp(whole, bytewise) == 0);
    free(whole);
    free(bytewise);
    return 0;
}

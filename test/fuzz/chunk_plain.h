/* SPDX-License-Identifier: MIT */
/* A plain reader of chunked bodies, one that looks for line ends and nothing else, for bodies that are
 * known to be whole. */
#pragma once

#include "base/base.h"
#include "base/num.h"
#include "base/span.h"

static struct span cut_line(struct span *rest)
{
    const char *end = memmem(rest->data, rest->size, "\r\n", 2);
    struct span line = span_first(*rest, (size_t)(end - rest->data));

    *rest = span_skip(*rest, line.size + 2);
    return line;
}

/* The rest behind a whole body, whose payload must be that. */
static struct span read_plainly(struct span rest, struct span payload)
{
    for (uint64_t size = 1; size;) {
        struct span line = cut_line(&rest);

        CHECK(num_hex(span_first(line, strspn(line.data, "0123456789abcdefABCDEF")), &size));
        CHECK(span_equal(span_first(rest, size), span_first(payload, size)));
        payload = span_skip(payload, size);
        rest = span_skip(rest, size);
        CHECK(!size || cut_line(&rest).size == 0);
    }
    CHECK(!payload.size);
    while (cut_line(&rest).size)
        continue;
    return rest;
}

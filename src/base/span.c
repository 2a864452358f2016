/* SPDX-License-Identifier: MIT */
#include "base/span.h"

size_t span_find(struct span span, char byte)
{
    const char *found = span.size ? memchr(span.data, byte, span.size) : NULL;

    return found ? (size_t)(found - span.data) : span.size;
}

size_t span_find_last(struct span span, char byte)
{
    const char *found = span.size ? memrchr(span.data, byte, span.size) : NULL;

    return found ? (size_t)(found - span.data) : span.size;
}

struct span span_skip(struct span span, size_t count)
{
    size_t skipped = count < span.size ? count : span.size;

    return skipped ? span_make(span.data + skipped, span.size - skipped) : span;
}

struct span span_first(struct span span, size_t count)
{
    return span_make(span.data, count < span.size ? count : span.size);
}

struct span span_split(struct span *rest, char separator)
{
    size_t at = span_find(*rest, separator);
    struct span part = span_first(*rest, at);

    *rest = at < rest->size ? span_skip(*rest, at + 1) : (struct span){NULL, 0};
    return part;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

struct span span_trim(struct span span)
{
    size_t start = 0;
    size_t end = span.size;

    while (start < end && is_blank(span.data[start]))
        start++;
    while (end > start && is_blank(span.data[end - 1]))
        end--;
    return span_first(span_skip(span, start), end - start);
}

int span_compare(struct span a, struct span b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common ? memcmp(a.data, b.data, common) : 0;

    return order ? order : (a.size > b.size) - (a.size < b.size);
}

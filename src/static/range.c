/* SPDX-License-Identifier: MIT */
#include "static/range.h"

#include "base/ascii.h"
#include "base/num.h"

enum spec { SPEC_BAD, SPEC_OUTSIDE, SPEC_INSIDE };

/* A number too large for 64 bits lies behind the end of every file, so it stands for the largest. */
static bool read_position(struct span text, uint64_t *ret_position)
{
    if (num_decimal(text, ret_position))
        return true;
    if (!ascii_all(text, ASCII_DIGIT))
        return false;
    *ret_position = UINT64_MAX;
    return true;
}

/* "-500": the last bytes, all of them when there are fewer (RFC 9110 14.1.2). */
static enum spec read_suffix(struct span text, uint64_t length, struct range *ret_range)
{
    uint64_t size;

    if (!read_position(text, &size))
        return SPEC_BAD;
    if (size == 0)
        return SPEC_OUTSIDE;
    if (length == 0) /* all of nothing: no Content-Range can say that */
        return SPEC_BAD;
    size = size < length ? size : length;
    *ret_range = (struct range){.first = length - size, .size = size};
    return SPEC_INSIDE;
}

static enum spec read_spec(struct span text, uint64_t length, struct range *ret_range)
{
    size_t dash = span_find(text, '-');
    struct span end = span_skip(text, dash + 1);
    uint64_t first, last = UINT64_MAX;

    if (dash == text.size)
        return SPEC_BAD;
    if (dash == 0)
        return read_suffix(end, length, ret_range);
    if (!read_position(span_first(text, dash), &first))
        return SPEC_BAD;
    if (end.size && (!read_position(end, &last) || last < first))
        return SPEC_BAD;
    if (first >= length)
        return SPEC_OUTSIDE;
    last = last < length ? last : length - 1;
    *ret_range = (struct range){.first = first, .size = last - first + 1};
    return SPEC_INSIDE;
}

static bool skip_unit(struct span *value)
{
    static const struct span unit = SPAN("bytes=");

    /* Names of range units are case-insensitive (RFC 9110 14.1). */
    if (!ascii_equal_fold(span_first(*value, unit.size), unit))
        return false;
    *value = span_skip(*value, unit.size);
    return true;
}

enum range_answer range_parse(struct span value, uint64_t length,
                              struct range ret_parts[static RANGE_MAX], unsigned *ret_count)
{
    struct range parts[RANGE_MAX];
    unsigned count = 0, specs = 0;
    uint64_t left = length;

    if (!skip_unit(&value))
        return RANGE_WHOLE;
    while (value.data) {
        struct span text = span_trim(span_split(&value, ','));
        struct range part;
        enum spec spec;

        if (!text.size) /* an empty list element counts for nothing (RFC 9110 5.6.1.2) */
            continue;
        specs++;
        spec = read_spec(text, length, &part);
        if (spec == SPEC_BAD)
            return RANGE_WHOLE;
        if (spec == SPEC_OUTSIDE)
            continue;
        if (count == RANGE_MAX || part.size > left)
            return RANGE_WHOLE;
        parts[count++] = part;
        left -= part.size;
    }
    if (!specs)
        return RANGE_WHOLE;
    if (!count)
        return RANGE_NONE;
    memcpy(ret_parts, parts, count * sizeof(*parts));
    *ret_count = count;
    return RANGE_PARTS;
}

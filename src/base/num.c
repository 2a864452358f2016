/* SPDX-License-Identifier: MIT */
#include "base/num.h"

#include "base/ascii.h"
#include "base/base.h"

/* Digits of a base up to 16, at most limit. */
static bool digits(struct span text, unsigned radix, uint64_t limit, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text.size == 0)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        int digit = ascii_hex(text.data[i]);

        if (digit < 0 || (unsigned)digit >= radix)
            return false;
        if (value > limit / radix || value * radix > limit - (unsigned)digit)
            return false;
        value = value * radix + (unsigned)digit;
    }
    *ret_value = value;
    return true;
}

bool num_decimal(struct span text, uint64_t *ret_value)
{
    return digits(text, 10, UINT64_MAX, ret_value);
}

bool num_hex(struct span text, uint64_t *ret_value)
{
    return digits(text, 16, UINT64_MAX, ret_value);
}

struct unit {
    const char *word; /* in lower case */
    uint64_t factor;
};

/* A decimal number in front of one of the units; those with a longer word come first. */
static bool with_unit(struct span text, const struct unit *units, size_t count, uint64_t *ret_value)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(units[i].word);
        uint64_t value;

        if (text.size < length ||
            !ascii_equal_fold(span_skip(text, text.size - length), span_of(units[i].word)))
            continue;
        if (!digits(span_first(text, text.size - length), 10, UINT64_MAX / units[i].factor, &value))
            return false;
        *ret_value = value * units[i].factor;
        return true;
    }
    return false;
}

bool num_size(struct span text, uint64_t *ret_bytes)
{
    static const struct unit units[] = {{"k", 1u << 10}, {"m", 1u << 20}, {"g", 1u << 30}, {"", 1}};

    return with_unit(text, units, ARRAY_LEN(units), ret_bytes);
}

bool num_time(struct span text, uint64_t *ret_ms)
{
    static const struct unit units[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 60 * 60 * 1000}, {"", 1000}};

    return with_unit(text, units, ARRAY_LEN(units), ret_ms);
}

bool num_range(struct span text, uint32_t *ret_low, uint32_t *ret_high)
{
    size_t dots = span_find(text, '.');
    uint64_t low, high;

    if (!digits(span_first(text, dots), 10, UINT32_MAX, &low))
        return false;
    high = low;
    if (dots < text.size) {
        struct span rest = span_skip(text, dots);

        if (!span_starts_with(rest, span_of("..")) ||
            !digits(span_skip(rest, 2), 10, UINT32_MAX, &high) || high < low)
            return false;
    }
    *ret_low = (uint32_t)low;
    *ret_high = (uint32_t)high;
    return true;
}

bool num_mode(struct span text, uint32_t *ret_mode)
{
    uint64_t mode;

    if (!digits(text, 8, 07777, &mode))
        return false;
    *ret_mode = (uint32_t)mode;
    return true;
}

size_t num_format(uint64_t value, char *out)
{
    char reversed[20];
    size_t size = 0;

    do
        reversed[size++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    for (size_t i = 0; i < size; i++)
        out[i] = reversed[size - 1 - i];
    return size;
}

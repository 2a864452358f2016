/* SPDX-License-Identifier: MIT */
#include "pool/scale.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    if (value > high)
        value = high;
    return value < low ? low : value;
}

uint32_t scale_wanted(const struct scale *scale)
{
    int64_t least = scale->min || scale->demanded;
    int64_t base = clamp(scale->min, least, scale->fits);

    return (uint32_t)clamp(base + scale->adjust, least, scale->entries / 2);
}

/* SPDX-License-Identifier: MIT */
#include "pool/scale.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    if (value > high)
        value = high;
    return value < low ? low : value;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The fewest that there may ever be. */
static int64_t bottom(const struct scale *scale)
{
    return scale->min || scale->demanded;
}

static uint32_t bound(const struct scale *scale, uint32_t configured)
{
    int64_t fitting = clamp(configured, bottom(scale), scale->fits);

    return (uint32_t)clamp(fitting + scale->adjust, bottom(scale), scale->entries / 2);
}

uint32_t scale_least(const struct scale *scale)
{
    return bound(scale, scale->min);
}

uint32_t scale_most(const struct scale *scale)
{
    uint32_t most = bound(scale, scale->max);
    uint32_t least = scale_least(scale);

    return most > least ? most : least;
}

uint64_t scale_wait_ms(const struct scale *scale, uint32_t workers)
{
    uint64_t threads = (uint64_t)workers * scale->threads;

    if (scale->queued == 0)
        return 0;
    if (threads == 0)
        return UINT64_MAX;
    /* A free thread is on its way to the queue. */
    if (scale->busy < threads && workers <= scale->serving)
        return 0;
    return scale->queued * scale->service_us / threads / 1000;
}

/* Whether the queue stands still longer than a start takes, although nobody is on the way any more. */
static bool is_stuck(const struct scale *scale, uint32_t wanted)
{
    return scale->queued > 0 && scale->serving >= wanted && scale->oldest_ms > scale->start_ms;
}

/* Idle workers that are not among those too many already, which are about to go. */
static uint32_t newly_expired(const struct scale *scale, uint32_t wanted)
{
    uint32_t surplus = scale->serving > wanted ? scale->serving - wanted : 0;

    return scale->expired > surplus ? scale->expired - surplus : 0;
}

uint32_t scale_wanted(const struct scale *scale)
{
    uint32_t least = scale_least(scale);
    uint32_t most = scale_most(scale);
    uint32_t wanted = (uint32_t)clamp(scale->wanted, least, most);
    uint32_t before = wanted;

    /* Nobody has asked, or whoever did has gone. */
    if (scale->min == 0 && !scale->demanded)
        return least;
    if (scale->queued == 0)
        return wanted - smaller(newly_expired(scale, wanted), wanted - least);
    while (wanted < most && scale_wait_ms(scale, wanted) > scale->start_ms)
        wanted++;
    if (wanted == before && wanted < most && is_stuck(scale, wanted))
        wanted++;
    return wanted;
}

uint32_t scale_start(const struct scale_starts *starts)
{
    uint32_t free = starts->cpus > starts->starting ? starts->cpus - starts->starting : 0;

    return smaller(starts->missing, smaller(free, starts->room));
}

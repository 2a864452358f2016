/* SPDX-License-Identifier: MIT */
#include "upstream/rack_forecast.h"

#include <string.h>

/* Rates are counted in this many nanoseconds, so that one answer a day is more than none, and all threads
 * of a board at the least service time do not overflow. */
#define FORECAST_PERIOD (UINT64_C(1000000) * 1000000000)

enum { SERVICE_MIN_NS = 1000 };

void forecast_note(struct forecast_recent *recent, uint64_t service_us)
{
    recent->service_us[recent->seen++ % FORECAST_RECENT] = service_us;
}

static void sort(uint64_t *values, uint32_t size)
{
    for (uint32_t i = 1; i < size; i++) {
        uint64_t value = values[i];
        uint32_t place = i;

        for (; place > 0 && values[place - 1] > value; place--)
            values[place] = values[place - 1];
        values[place] = value;
    }
}

uint64_t forecast_usual_us(const struct forecast_recent *recent)
{
    uint32_t size = recent->seen < FORECAST_RECENT ? (uint32_t)recent->seen : FORECAST_RECENT;
    uint64_t sorted[FORECAST_RECENT];
    uint64_t sum = 0, mean, median;

    if (size < FORECAST_ENOUGH)
        return 0;
    memcpy(sorted, recent->service_us, size * sizeof(*sorted));
    sort(sorted, size);
    for (uint32_t i = 0; i < size - 1; i++)
        sum += sorted[i];
    mean = sum / (size - 1);
    median = sorted[(size - 1) / 2];
    if (mean > 2 * median)
        mean = 2 * median;
    return mean ? mean : 1;
}

static uint64_t rate_of(uint64_t threads, uint64_t service_ns)
{
    return threads *
           (FORECAST_PERIOD / (service_ns > SERVICE_MIN_NS ? service_ns : SERVICE_MIN_NS));
}

void forecast_add_worker(struct forecast_crew *crew, uint64_t service_ns, bool ready)
{
    uint64_t rate;

    crew->workers++;
    crew->has_ready |= ready;
    if (!service_ns) {
        crew->unknown++;
        return;
    }
    rate = rate_of(crew->threads, service_ns);
    crew->rate += rate;
    if (rate > crew->fastest)
        crew->fastest = rate;
}

void forecast_add_growth(struct forecast_crew *crew, uint32_t max, uint64_t oldest_us)
{
    if (crew->workers >= max || oldest_us >= FORECAST_GROWTH_US)
        return;
    crew->unknown += max - crew->workers;
    crew->workers = max;
}

uint64_t forecast_step_ns(const struct forecast_crew *crew, uint64_t usual_us)
{
    /* Those that have not answered yet are taken to be as good as the best. */
    uint64_t published = crew->rate + crew->unknown * crew->fastest;
    uint64_t seen;

    if (!crew->has_ready || !usual_us)
        return 0;
    seen = rate_of((uint64_t)crew->threads * crew->workers, usual_us * 1000);
    if (published > seen)
        seen = published;
    return seen ? FORECAST_PERIOD / seen : 0;
}

uint64_t forecast_wait_us(uint64_t step_ns, uint32_t waiting)
{
    return step_ns / 1000 * waiting + step_ns % 1000 * waiting / 1000;
}

unsigned forecast_retry_s(uint64_t wait_us, unsigned otherwise_s)
{
    uint64_t seconds = (wait_us + 999999) / 1000000;

    if (!seconds)
        return otherwise_s;
    return seconds < FORECAST_RETRY_MAX ? (unsigned)seconds : FORECAST_RETRY_MAX;
}

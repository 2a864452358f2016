/* SPDX-License-Identifier: MIT */
/*
 * How long a request that is queued now will wait: what waits before it, times the time between two
 * departures from the queue. Two opinions are asked about that time, and the shorter one counts, because
 * a request that is sent away although it would have been served is worse than one that waits in vain
 * (queue.timeout ends that): the running means that workers publish, and what this loop saw of its own
 * last answers. Either may be led astray by a few very slow requests among fast ones, for a while; both at
 * once hardly are. Nothing known means no forecast. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    FORECAST_RECENT = 32,         /* answers that are remembered */
    FORECAST_ENOUGH = 4,          /* fewer say nothing */
    FORECAST_GROWTH_US = 2000000, /* by then a pool has started whom it can */
    FORECAST_RETRY_MAX = 600      /* seconds; nobody plans further ahead */
};

/* Service times of the last answers that one loop saw. Zeros are valid: none yet. */
struct forecast_recent {
    uint64_t service_us[FORECAST_RECENT];
    uint64_t seen; /* answers so far */
};

/* The workers that take from one queue. Zeros are valid: nobody. */
struct forecast_crew {
    uint32_t threads; /* of one worker; set by the owner */
    uint32_t workers; /* that serve or are about to */
    uint32_t unknown; /* of them, those that have not answered yet */
    uint64_t rate;    /* departures in FORECAST_PERIOD of those that have; rack_forecast.c */
    uint64_t fastest; /* of one worker */
    bool has_ready;   /* one of them serves */
};

/* Remembers an answer's time from taken to its end. */
void forecast_note(struct forecast_recent *recent, uint64_t service_us);

/* What a usual answer takes: the mean without the longest, but no more than twice the median, which slow
 * ones do not move. 0 = too few were seen. */
uint64_t forecast_usual_us(const struct forecast_recent *recent);

/* Counts a worker in: service_ns is its running mean, 0 = none yet; ready: it serves already. */
void forecast_add_worker(struct forecast_crew *crew, uint64_t service_ns, bool ready);

/* Counts in those that a pool of at most max may still start, as long as the oldest has not waited so long
 * that it would have started them if it could. */
void forecast_add_growth(struct forecast_crew *crew, uint32_t max, uint64_t oldest_us);

/* Nanoseconds between two departures while requests wait; 0 = nothing can be said. */
uint64_t forecast_step_ns(const struct forecast_crew *crew, uint64_t usual_us);

/* The wait behind so many requests; 0 when nothing can be said. */
uint64_t forecast_wait_us(uint64_t step_ns, uint32_t waiting);

/* Whole seconds until a queue of that wait is empty, for Retry-After: at least 1; otherwise when nothing
 * is known. */
unsigned forecast_retry_s(uint64_t wait_us, unsigned otherwise_s);

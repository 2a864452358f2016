/* SPDX-License-Identifier: MIT */
#include "front/counters.h"

const uint64_t front_bucket_us[FRONT_BUCKETS - 1] = {1000,    2500,    5000,    10000,  25000,
                                                     50000,   100000,  250000,  500000, 1000000,
                                                     2500000, 5000000, 10000000};

void front_observe(struct front_histogram *histogram, uint64_t duration_us)
{
    unsigned bucket = 0;

    while (bucket < FRONT_BUCKETS - 1 && duration_us > front_bucket_us[bucket])
        bucket++;
    front_count(&histogram->buckets[bucket], 1);
    front_count(&histogram->sum_us, duration_us);
}

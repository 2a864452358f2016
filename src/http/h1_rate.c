/* SPDX-License-Identifier: MIT */
#include "http/h1_rate.h"

void h1_rate_start(struct h1_rate *rate, uint64_t total)
{
    *rate = (struct h1_rate){.totals = {total}};
}

bool h1_rate_is_slow(struct h1_rate *rate, uint64_t total, uint64_t bytes_per_second)
{
    unsigned place = ++rate->ticks % H1_RATE_TICKS;
    uint64_t before = rate->totals[place]; /* ten ticks ago, once there were that many */

    rate->totals[place] = total;
    if (rate->ticks < H1_RATE_TICKS)
        return false;
    return total - before < bytes_per_second * H1_RATE_TICKS * H1_RATE_TICK_MS / 1000;
}

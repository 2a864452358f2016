/* SPDX-License-Identifier: MIT */
/*
 * Tells a slow peer from a steady one: bytes per second over any ten seconds, looked at once a second.
 * Pure, it is told the time; embedded in its connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { H1_RATE_TICK_MS = 1000, H1_RATE_TICKS = 10 };

struct h1_rate {
    uint64_t totals[H1_RATE_TICKS]; /* bytes moved until each of the last ticks, a ring */
    unsigned ticks;                 /* since the start */
};

/* Starts with total bytes moved so far. */
void h1_rate_start(struct h1_rate *rate, uint64_t total);

/* One tick later: whether the last ten seconds brought less than the rate asks for. Never before ten
 * ticks have passed. */
bool h1_rate_is_slow(struct h1_rate *rate, uint64_t total, uint64_t bytes_per_second);

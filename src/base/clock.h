/* SPDX-License-Identifier: MIT */
/*
 * Monotonic time for deadlines, wall time for what people read. Wall time is never used to decide.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>
#include <time.h>

/* Monotonic milliseconds (microseconds) since an arbitrary start; the same for all processes of a
 * machine, and stopped while it is suspended (CLOCK_MONOTONIC). */
uint64_t clock_ms(void);
uint64_t clock_us(void);

/* Wall-clock milliseconds since 1970. */
uint64_t clock_wall_ms(void);

/* Splits a time in seconds since 1970 into date and time of day, UTC (tm_yday stays 0). Takes no lock
 * and reads no time zone, unlike gmtime_r. */
void clock_utc(time_t seconds, struct tm *ret_utc);

/* An HTTP date takes this many bytes (IMF-fixdate, RFC 9110 5.6.7). */
enum { CLOCK_HTTP_DATE = 29 };

/* Writes the IMF-fixdate of a time in seconds since 1970 to out, without a NUL. */
void clock_http_date(time_t seconds, char out[CLOCK_HTTP_DATE]);

/* The IMF-fixdate of now, made once a second per thread; valid until the thread's next call. */
struct span clock_http_now(void);

/* Reads an HTTP date in any of the three forms of RFC 9110 5.6.7; false when it is none. */
bool clock_parse_http_date(struct span text, time_t *ret_seconds);

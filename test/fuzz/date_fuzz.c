/* SPDX-License-Identifier: MIT */
/* Dates of clients in all three forms: one that is taken is written as a date that reads the same. */
#include "base/base.h"
#include "base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[CLOCK_HTTP_DATE];
    time_t seconds, again;
    struct tm utc;

    if (!clock_parse_http_date(span_make((const char *)data, size), &seconds))
        return 0;
    clock_utc(seconds, &utc);
    CHECK(utc.tm_year >= -1900 && utc.tm_year <= 8100);
    if (utc.tm_year == 8100) /* a leap second behind the last year that can be written */
        return 0;
    clock_http_date(seconds, text);
    CHECK(clock_parse_http_date(span_make(text, sizeof(text)), &again) && again == seconds);
    return 0;
}

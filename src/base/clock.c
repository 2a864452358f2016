/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include "base/ascii.h"
#include "base/base.h"

static const char day_names[7][10] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static struct timespec read_clock(clockid_t id)
{
    struct timespec now;

    CHECK(clock_gettime(id, &now) == 0);
    return now;
}

uint64_t clock_ms(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);

    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t clock_us(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);

    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_wall_ms(void)
{
    struct timespec now = read_clock(CLOCK_REALTIME);

    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A calendar that begins in March has its leap day at the end of the year, and its months follow a
 * pattern of 153 days in five; an era is the 400 years after which the calendar repeats. */
enum { DAYS_PER_ERA = 146097, DAYS_BEFORE_1970 = 719468 /* since 1 March of the year 0 */ };

static int64_t divide_down(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

void clock_utc(time_t seconds, struct tm *ret_utc)
{
    int64_t days = divide_down(seconds, 86400);
    int64_t rest = seconds - days * 86400;
    int64_t era = divide_down(days + DAYS_BEFORE_1970, DAYS_PER_ERA);
    int64_t in_era = days + DAYS_BEFORE_1970 - era * DAYS_PER_ERA;
    int64_t years = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * years + years / 4 - years / 100);
    int64_t month = (5 * in_year + 2) / 153;
    bool is_after_december = month >= 10;

    *ret_utc = (struct tm){
        .tm_year = (int)(era * 400 + years + is_after_december - 1900),
        .tm_mon = (int)(is_after_december ? month - 10 : month + 2),
        .tm_mday = (int)(in_year - (153 * month + 2) / 5 + 1),
        .tm_hour = (int)(rest / 3600),
        .tm_min = (int)(rest / 60 % 60),
        .tm_sec = (int)(rest % 60),
        .tm_wday = (int)(days + 4 - 7 * divide_down(days + 4, 7)),
    };
}

static int64_t days_since_1970(const struct tm *date)
{
    int64_t year = (int64_t)date->tm_year + 1900 - (date->tm_mon < 2);
    int64_t month = date->tm_mon < 2 ? date->tm_mon + 10 : date->tm_mon - 2;
    int64_t era = divide_down(year, 400);
    int64_t in_era = year - era * 400;
    int64_t in_year = (153 * month + 2) / 5 + date->tm_mday - 1;

    return era * DAYS_PER_ERA + in_era * 365 + in_era / 4 - in_era / 100 + in_year -
           DAYS_BEFORE_1970;
}

static char *put(char *out, const char *bytes, size_t size)
{
    memcpy(out, bytes, size);
    return out + size;
}

static char *put_two(char *out, int value, char behind)
{
    *out++ = (char)('0' + value / 10 % 10);
    *out++ = (char)('0' + value % 10);
    *out++ = behind;
    return out;
}

void clock_http_date(time_t seconds, char out[CLOCK_HTTP_DATE])
{
    struct tm utc;

    clock_utc(seconds, &utc);
    out = put(out, day_names[utc.tm_wday], 3);
    out = put(out, ", ", 2);
    out = put_two(out, utc.tm_mday, ' ');
    out = put(out, month_names[utc.tm_mon], 3);
    *out++ = ' ';
    *out++ = (char)('0' + (utc.tm_year + 1900) / 1000 % 10);
    *out++ = (char)('0' + (utc.tm_year + 1900) / 100 % 10);
    out = put_two(out, (utc.tm_year + 1900) % 100, ' ');
    out = put_two(out, utc.tm_hour, ':');
    out = put_two(out, utc.tm_min, ':');
    out = put_two(out, utc.tm_sec, ' ');
    put(out, "GMT", 3);
}

struct span clock_http_now(void)
{
    /* Per thread, so that no lock is needed and a caller's span cannot change under it. */
    static _Thread_local char text[CLOCK_HTTP_DATE];
    static _Thread_local time_t made_for = -1;
    /* The coarse clock is a plain read of what the last tick left: no more precision is needed. */
    time_t now = read_clock(CLOCK_REALTIME_COARSE).tv_sec;

    if (now != made_for) {
        clock_http_date(now, text);
        made_for = now;
    }
    return span_make(text, sizeof(text));
}

static bool take_byte(struct span *rest, char byte)
{
    if (rest->size == 0 || rest->data[0] != byte)
        return false;
    *rest = span_skip(*rest, 1);
    return true;
}

static bool take_number(struct span *rest, size_t digits, int low, int high, int *ret_value)
{
    int value = 0;

    if (rest->size < digits || !ascii_all(span_first(*rest, digits), ASCII_DIGIT))
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (rest->data[i] - '0');
    if (value < low || value > high)
        return false;
    *rest = span_skip(*rest, digits);
    *ret_value = value;
    return true;
}

static bool take_month(struct span *rest, int *ret_month)
{
    for (int i = 0; i < (int)ARRAY_LEN(month_names); i++)
        if (span_starts_with(*rest, span_of(month_names[i]))) {
            *rest = span_skip(*rest, 3);
            *ret_month = i;
            return true;
        }
    return false;
}

/* The day of the week must be one, but need not be the right one: it adds nothing. */
static bool take_day_name(struct span *rest, bool is_long)
{
    for (size_t i = 0; i < ARRAY_LEN(day_names); i++) {
        struct span name = span_of(day_names[i]);

        name = is_long ? name : span_first(name, 3);
        if (span_starts_with(*rest, name)) {
            *rest = span_skip(*rest, name.size);
            return true;
        }
    }
    return false;
}

/* A year of two digits that seems to lie more than 50 years ahead is the latest one in the past that
 * ends so (RFC 9110 5.6.7). */
static bool take_short_year(struct span *rest, int this_year, int *ret_year)
{
    int year;

    if (!take_number(rest, 2, 0, 99, &year))
        return false;
    year += this_year / 100 * 100;
    *ret_year = (year > this_year + 50 ? year - 100 : year) - 1900;
    return true;
}

static bool take_long_year(struct span *rest, int *ret_year)
{
    int year;

    if (!take_number(rest, 4, 0, 9999, &year))
        return false;
    *ret_year = year - 1900;
    return true;
}

/* Matches one conversion of the patterns below, which are named as in strftime. */
static bool take_part(struct span *rest, char conversion, int this_year, struct tm *date)
{
    switch (conversion) {
    case 'a':
        return take_day_name(rest, false);
    case 'A':
        return take_day_name(rest, true);
    case 'd':
        return take_number(rest, 2, 1, 31, &date->tm_mday);
    case 'e':
        return take_number(rest, take_byte(rest, ' ') ? 1 : 2, 1, 31, &date->tm_mday);
    case 'b':
        return take_month(rest, &date->tm_mon);
    case 'Y':
        return take_long_year(rest, &date->tm_year);
    case 'y':
        return take_short_year(rest, this_year, &date->tm_year);
    case 'H':
        return take_number(rest, 2, 0, 23, &date->tm_hour);
    case 'M':
        return take_number(rest, 2, 0, 59, &date->tm_min);
    default:
        return take_number(rest, 2, 0, 60, &date->tm_sec); /* 60 is a leap second */
    }
}

static bool match(struct span text, const char *pattern, int this_year, struct tm *date)
{
    for (; *pattern; pattern++) {
        bool is_matched = *pattern == '%' ? take_part(&text, *++pattern, this_year, date)
                                          : take_byte(&text, *pattern);
        if (!is_matched)
            return false;
    }
    return text.size == 0;
}

static bool is_real_day(const struct tm *date)
{
    struct tm same;

    clock_utc((time_t)(days_since_1970(date) * 86400), &same);
    return same.tm_mday == date->tm_mday;
}

/* The same with the year given that two-digit years are read by. */
static bool parse_http_date(struct span text, int this_year, time_t *ret_seconds)
{
    static const char patterns[][32] = {
        "%a, %d %b %Y %H:%M:%S GMT", /* IMF-fixdate */
        "%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
        "%a %b %e %H:%M:%S %Y",      /* asctime */
    };

    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        struct tm date = {0};

        if (match(text, patterns[i], this_year, &date) && is_real_day(&date)) {
            *ret_seconds = (time_t)(days_since_1970(&date) * 86400 + date.tm_hour * 3600 +
                                    date.tm_min * 60 + date.tm_sec);
            return true;
        }
    }
    return false;
}

bool clock_parse_http_date(struct span text, time_t *ret_seconds)
{
    struct tm now;

    clock_utc(read_clock(CLOCK_REALTIME_COARSE).tv_sec, &now);
    return parse_http_date(text, now.tm_year + 1900, ret_seconds);
}

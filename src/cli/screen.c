/* SPDX-License-Identifier: MIT */
#include "cli/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 32 };

/* The lines as they come about. */
struct screen {
    const struct screen_look *look;
    struct buf *out;
    unsigned used; /* lines */
};

/* Bytes of the text that fit into the columns; a character of UTF-8 counts once. */
static size_t fitting(const char *text, unsigned columns)
{
    size_t size = 0;
    unsigned used = 0;

    for (; text[size]; size++) {
        bool begins = ((unsigned char)text[size] & 0xc0) != 0x80;
        if (columns && begins && used == columns)
            break;
        used += begins;
    }
    return size;
}

/* The JSON has clients' bytes escaped; as text they are themselves again. */
static void make_harmless(char *text)
{
    for (unsigned char *byte = (unsigned char *)text; *byte; byte++) {
        if (*byte < ' ' || *byte == 0x7f)
            *byte = '?';
        else if (*byte == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0)
            byte[0] = byte[1] = '?';
    }
}

static void put_line(struct screen *screen, bool is_heading, const char *text)
{
    const struct screen_look *look = screen->look;
    bool styled = is_heading && look->styled;

    if (look->rows && screen->used == look->rows)
        return;
    screen->used++;
    CHECK(buf_printf(screen->out, "%s%.*s%s\n", styled ? "\x1b[7m" : "",
                     (int)fitting(text, look->columns), text, styled ? "\x1b[0m" : "") == 0);
}

PRINTF_LIKE(2, 3) static void put(struct screen *screen, const char *format, ...)
{
    va_list arguments;
    char *text;
    int size;

    va_start(arguments, format);
    size = vasprintf(&text, format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    make_harmless(text);
    put_line(screen, false, text);
    free(text);
}

/* How fast a counter of two maps grows: "12.3/s", or "-" when that cannot be said. */
static const char *rate(const struct screen_look *look, const struct yaml *now,
                        const struct yaml *before, const char *key, char out[WORD])
{
    uint64_t last = reading_number(now, key);
    uint64_t first = reading_number(before, key);
    uint64_t tenths;

    if (!before || !look->elapsed_ms || last < first)
        return "-";
    tenths = ((last - first) * 10000 + look->elapsed_ms / 2) / look->elapsed_ms;
    (void)snprintf(out, WORD, "%" PRIu64 ".%" PRIu64 "/s", tenths / 10, tenths % 10);
    return out;
}

static const char *age(uint64_t seconds, char out[WORD])
{
    if (seconds >= 86400)
        (void)snprintf(out, WORD, "%" PRIu64 "d%02" PRIu64 "h", seconds / 86400,
                       seconds % 86400 / 3600);
    else if (seconds >= 3600)
        (void)snprintf(out, WORD, "%" PRIu64 "h%02" PRIu64 "m", seconds / 3600,
                       seconds % 3600 / 60);
    else if (seconds >= 60)
        (void)snprintf(out, WORD, "%" PRIu64 "m%02" PRIu64 "s", seconds / 60, seconds % 60);
    else
        (void)snprintf(out, WORD, "%" PRIu64 "s", seconds);
    return out;
}

static void put_server(struct screen *screen)
{
    const struct screen_look *look = screen->look;
    const struct yaml *now = reading_find(look->now, "requests");
    const struct yaml *before = reading_find(look->before, "requests");
    const struct yaml *connections = reading_find(look->now, "connections");
    char words[6][WORD];

    put(screen, "leat %s, PID %" PRIu64 ", %s, up %s", reading_text(look->now, "version"),
        reading_number(look->now, "pid"), reading_text(look->now, "environment"),
        age(reading_number(look->now, "uptime_s"), words[0]));
    put(screen, "requests     %s  (2xx %s, 3xx %s, 4xx %s, 5xx %s)  aborted %" PRIu64,
        rate(look, now, before, "total", words[0]), rate(look, now, before, "2xx", words[1]),
        rate(look, now, before, "3xx", words[2]), rate(look, now, before, "4xx", words[3]),
        rate(look, now, before, "5xx", words[4]), reading_number(now, "aborted"));
    put(screen, "connections  %" PRIu64 " open, %" PRIu64 " idle, %s new",
        reading_number(connections, "open"), reading_number(connections, "idle"),
        rate(look, connections, reading_find(look->before, "connections"), "accepted", words[5]));
}

/* The item of a list whose value of the key is the same as this one's. */
static const struct yaml *find_same(const struct yaml *list, const struct yaml *node,
                                    const char *key)
{
    for (size_t i = 0; i < reading_size(list); i++)
        if (strcmp(reading_text(list->items[i], key), reading_text(node, key)) == 0)
            return list->items[i];
    return NULL;
}

static uint64_t megabytes(const struct yaml *worker, const char *key)
{
    return reading_number(worker, key) >> 20;
}

/* What it does now: the oldest of its requests, and how many more. */
static void describe_current(const struct yaml *worker, char *out, size_t room)
{
    const struct yaml *list = reading_find(worker, "current");
    const struct yaml *oldest = reading_item(list, 0);
    int size;

    *out = '\0';
    for (size_t i = 1; i < reading_size(list); i++)
        if (reading_number(list->items[i], "age_ms") > reading_number(oldest, "age_ms"))
            oldest = list->items[i];
    if (!oldest)
        return;
    size = snprintf(out, room, "%" PRIu64 " ms %s %s", reading_number(oldest, "age_ms"),
                    reading_text(oldest, "method"), reading_text(oldest, "path"));
    if (reading_size(list) > 1 && (size_t)size < room)
        (void)snprintf(out + size, room - (size_t)size, " and %zu more", reading_size(list) - 1);
}

static void put_worker(struct screen *screen, const struct yaml *worker, const struct yaml *before)
{
    char current[2304];
    char words[2][WORD];
    char threads[WORD];

    describe_current(worker, current, sizeof current);
    (void)snprintf(threads, sizeof threads, "%" PRIu64 "/%" PRIu64, reading_number(worker, "busy"),
                   reading_number(worker, "threads"));
    put(screen,
        "  %8" PRIu64 " %-9s %4" PRIu64 " %7s %9" PRIu64 " %9s %7" PRIu64 "M %6" PRIu64
        "M %6" PRIu64 "M %7s  %s",
        reading_number(worker, "pid"), reading_text(worker, "state"),
        reading_number(worker, "generation"), threads, reading_number(worker, "requests"),
        rate(screen->look, worker, before, "requests", words[0]),
        megabytes(worker, "private_dirty_bytes"), megabytes(worker, "pss_bytes"),
        megabytes(worker, "rss_bytes"), age(reading_number(worker, "age_s"), words[1]), current);
}

static void put_pool(struct screen *screen, const struct yaml *pool, const struct yaml *before)
{
    const struct yaml *queue = reading_find(pool, "queue");
    const struct yaml *slots = reading_find(pool, "slots");
    const struct yaml *workers = reading_find(pool, "workers");
    const char *error = reading_text(pool, "error");

    put_line(screen, false, "");
    put(screen, "pool %s: %s%s%s  %s", reading_text(pool, "name"), reading_text(pool, "state"),
        *error ? ": " : "", error, reading_text(pool, "release"));
    put(screen,
        "  slots %" PRIu64 " of %" PRIu64 " busy  queue %" PRIu64 " of %" PRIu64 " (oldest %" PRIu64
        " ms)  shed %" PRIu64 "  expired %" PRIu64 "  abandoned %" PRIu64 "  streams %" PRIu64
        "  workers %zu (%" PRIu64 "..%" PRIu64 ")",
        reading_number(slots, "busy"), reading_number(slots, "total"),
        reading_number(queue, "length"), reading_number(queue, "limit"),
        reading_number(queue, "oldest_ms"), reading_number(queue, "shed"),
        reading_number(queue, "expired"), reading_number(queue, "abandoned"),
        reading_number(pool, "streams"), reading_size(workers), reading_number(pool, "min"),
        reading_number(pool, "max"));
    put_line(screen, true,
             "       PID STATE      GEN THREADS  REQUESTS      RATE  PRIVATE     PSS     RSS      "
             "UP  NOW");
    for (size_t i = 0; i < reading_size(workers); i++)
        put_worker(screen, workers->items[i],
                   find_same(reading_find(before, "workers"), workers->items[i], "pid"));
}

/* Counters of another process say nothing about this one. */
static bool is_same_server(const struct screen_look *look)
{
    return look->before &&
           reading_number(look->before, "pid") == reading_number(look->now, "pid") &&
           reading_number(look->before, "uptime_s") <= reading_number(look->now, "uptime_s");
}

void screen_write(const struct screen_look *look, struct buf *out)
{
    struct screen_look own = *look;
    struct screen screen = {.look = &own, .out = out};
    const struct yaml *pools = reading_find(look->now, "pools");

    if (!is_same_server(look))
        own.before = NULL;
    put_server(&screen);
    for (size_t i = 0; i < reading_size(pools); i++)
        put_pool(&screen, pools->items[i],
                 find_same(reading_find(own.before, "pools"), pools->items[i], "name"));
}

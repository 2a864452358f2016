/* SPDX-License-Identifier: MIT */
#include "cli/memory_table.h"

#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 36 }; /* columns of the first one */

/* A sum, and how many it is of. */
struct total {
    struct memory_use use;
    unsigned count;
};

/* "Pss:    123 kB" when the line has that name. */
static bool read_line(struct span line, const char *name, uint64_t *total_bytes)
{
    uint64_t kilobytes;

    if (!span_starts_with(line, span_of(name)))
        return false;
    line = span_trim(span_skip(line, strlen(name)));
    if (!num_decimal(span_first(line, span_find(line, ' ')), &kilobytes))
        return false;
    *total_bytes += kilobytes * 1024;
    return true;
}

bool memory_parse_rollup(struct span text, struct memory_use *ret_use)
{
    struct memory_use use = {.is_whole = true};
    unsigned found = 0;

    while (text.data) {
        struct span line = span_split(&text, '\n');
        found += read_line(line, "Rss:", &use.rss_bytes);
        found += read_line(line, "Pss:", &use.pss_bytes);
        found += read_line(line, "Private_Dirty:", &use.private_bytes);
        (void)read_line(line, "Private_Hugetlb:", &use.private_bytes);
    }
    if (found == 3)
        *ret_use = use;
    return found == 3;
}

bool memory_parse_statm(struct span text, uint64_t *ret_pages)
{
    (void)span_split(&text, ' ');
    return text.data && num_decimal(span_split(&text, ' '), ret_pages);
}

static bool is_same_pool(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void add(struct total *total, const struct memory_use *use)
{
    total->use.private_bytes += use->private_bytes;
    total->use.pss_bytes += use->pss_bytes;
    total->use.rss_bytes += use->rss_bytes;
    total->count++;
}

static struct total sum(const struct memory_table *table, const char *pool, bool all)
{
    struct total total = {.use = {.is_whole = true}};

    for (size_t i = 0; i < table->size; i++)
        if (all || is_same_pool(table->items[i].pool, pool))
            add(&total, &table->items[i].use);
    return total;
}

/* ---- For people ---- */

/* In megabytes with one digit behind the point. */
static int add_size(struct buf *out, uint64_t bytes, bool is_known)
{
    uint64_t tenths = (bytes * 10 + (1u << 19)) >> 20;
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRIu64 ".%" PRIu64 " M", tenths / 10, tenths % 10);
    return buf_printf(out, " %10s", is_known ? text : "-");
}

static int add_row(struct buf *out, const char *name, const char *second,
                   const struct memory_use *use)
{
    int result = buf_printf(out, "%-*s %8s", NAME, name, second);

    result |= add_size(out, use->private_bytes, use->is_whole);
    result |= add_size(out, use->pss_bytes, use->is_whole);
    result |= add_size(out, use->rss_bytes, true);
    return result | buf_append_byte(out, '\n');
}

static int add_process(struct buf *out, const struct memory_process *process)
{
    char name[256];
    char pid[16];
    int size = snprintf(name, sizeof name, "%s%s", process->pool ? "  " : "", process->role);

    if (process->generation && (size_t)size < sizeof name)
        size += snprintf(name + size, sizeof name - (size_t)size, " @%" PRIu64 " (%s)",
                         process->generation, process->release);
    if (*process->state && (size_t)size < sizeof name)
        (void)snprintf(name + size, sizeof name - (size_t)size, " %s", process->state);
    (void)snprintf(pid, sizeof pid, "%d", process->pid);
    return add_row(out, name, pid, &process->use);
}

static int add_total(struct buf *out, const char *name, const struct total *total)
{
    char count[32];

    (void)snprintf(count, sizeof count, "%u", total->count);
    return add_row(out, name, count, &total->use);
}

int memory_text(const struct memory_table *table, struct buf *out)
{
    struct total all = sum(table, NULL, true);
    bool is_whole = true;
    int result = buf_printf(out, "%-*s %8s %10s %10s %10s\n", NAME, "process", "PID", "private",
                            "PSS", "RSS");

    for (size_t i = 0; i < table->size && result == 0; i++) {
        const struct memory_process *process = &table->items[i];
        const char *next = i + 1 < table->size ? table->items[i + 1].pool : NULL;
        if (process->pool && (i == 0 || !is_same_pool(table->items[i - 1].pool, process->pool)))
            result |= buf_printf(out, "pool %s\n", process->pool);
        result |= add_process(out, process);
        is_whole &= process->use.is_whole;
        if (process->pool && !is_same_pool(process->pool, next)) {
            struct total total = sum(table, process->pool, false);
            result |= add_total(out, "  together", &total);
        }
    }
    result |= add_total(out, "all processes", &all);
    if (!is_whole)
        result |=
            buf_append(out, span_of("-: this user may not read it; the sums are without it\n"));
    return result ? -ENOMEM : 0;
}

/* ---- For programs ---- */

/* Names of pools and folders: what JSON would not take as it is, is escaped. */
static int add_string(struct buf *out, const char *text)
{
    int result = buf_append_byte(out, '"');

    for (; *text && result == 0; text++) {
        if ((unsigned char)*text < 0x20)
            result |= buf_printf(out, "\\u%04x", (unsigned char)*text);
        else if (*text == '"' || *text == '\\')
            result |= buf_printf(out, "\\%c", *text);
        else
            result |= buf_append_byte(out, *text);
    }
    return result | buf_append_byte(out, '"');
}

static int add_key(struct buf *out, const char *key, const char *text)
{
    int result = buf_printf(out, "\"%s\":", key);

    result |= text && *text ? add_string(out, text) : buf_append(out, span_of("null"));
    return result | buf_append_byte(out, ',');
}

static int add_use(struct buf *out, const struct memory_use *use)
{
    if (!use->is_whole)
        return buf_printf(
            out, "\"private_dirty_bytes\":null,\"pss_bytes\":null,\"rss_bytes\":%" PRIu64 "}",
            use->rss_bytes);
    return buf_printf(out,
                      "\"private_dirty_bytes\":%" PRIu64 ",\"pss_bytes\":%" PRIu64
                      ",\"rss_bytes\":%" PRIu64 "}",
                      use->private_bytes, use->pss_bytes, use->rss_bytes);
}

static int add_json_process(struct buf *out, const struct memory_process *process)
{
    int result = buf_printf(out, "{\"pid\":%d,", process->pid);

    result |= add_key(out, "role", process->role);
    result |= add_key(out, "pool", process->pool);
    result |= add_key(out, "state", process->state);
    if (process->generation)
        result |= buf_printf(out, "\"generation\":%" PRIu64 ",", process->generation);
    else
        result |= buf_append(out, span_of("\"generation\":null,"));
    return result | add_use(out, &process->use);
}

static int add_json_total(struct buf *out, const struct total *total)
{
    int result = buf_printf(out, "\"processes\":%u,", total->count);

    return result | add_use(out, &total->use);
}

static int add_json_pools(const struct memory_table *table, struct buf *out)
{
    bool is_first = true;
    int result = 0;

    for (size_t i = 0; i < table->size; i++) {
        const char *pool = table->items[i].pool;
        struct total total;
        if (!pool || (i && is_same_pool(table->items[i - 1].pool, pool)))
            continue;
        total = sum(table, pool, false);
        result |= buf_append(out, is_first ? span_of("{") : span_of(",{"));
        result |= add_key(out, "name", pool);
        result |= add_json_total(out, &total);
        is_first = false;
    }
    return result;
}

int memory_json(const struct memory_table *table, struct buf *out)
{
    struct total all = sum(table, NULL, true);
    int result = buf_append(out, span_of("{\"processes\":["));

    for (size_t i = 0; i < table->size && result == 0; i++) {
        result |= i ? buf_append_byte(out, ',') : 0;
        result |= add_json_process(out, &table->items[i]);
    }
    result |= buf_append(out, span_of("],\"pools\":["));
    result |= add_json_pools(table, out);
    result |= buf_append(out, span_of("],\"total\":{"));
    result |= add_json_total(out, &all);
    result |= buf_append(out, span_of("}\n"));
    return result ? -ENOMEM : 0;
}

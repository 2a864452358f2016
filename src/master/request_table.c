/* SPDX-License-Identifier: MIT */
#include "master/request_table.h"

#include "control/text.h"
#include "upstream/rack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_words[RACK_STAGES] = {
    [RACK_QUEUED] = "queued",
    [RACK_RUNNING] = "running",
    [RACK_STREAMING] = "streaming",
    [RACK_LEFT] = "left",
};

void request_table_add(struct request_table *table, struct span listing)
{
    struct listing_entry entry;

    while (listing_next(&listing, &entry)) {
        if (entry.stage >= RACK_STAGES)
            continue;
        if (table->size == table->room) {
            uint32_t room = table->room ? 2 * table->room : 64;
            struct listing_entry *entries = must_alloc(room, sizeof(*entries));

            if (table->size)
                memcpy(entries, table->entries, table->size * sizeof(*entries));
            free(table->entries);
            table->entries = entries;
            table->room = room;
        }
        table->entries[table->size++] = entry;
    }
}

static int compare(const void *left, const void *right)
{
    const struct listing_entry *a = left, *b = right;

    return (a->age_us < b->age_us) - (a->age_us > b->age_us);
}

void request_table_sort(struct request_table *table)
{
    if (table->size)
        qsort(table->entries, table->size, sizeof(*table->entries), compare);
}

/* The text and room up to the next column. */
static int add_column(struct buf *out, struct span text, size_t width)
{
    int result = text_add_plain(out, text.size ? text : span_of("-"));

    for (size_t size = text.size ? text.size : 1; size < width + 2 && result == 0; size++)
        result = buf_append_byte(out, ' ');
    return result;
}

static int add_seconds(struct buf *out, uint64_t us)
{
    uint64_t tenths = us / 100000;

    return buf_printf(out, "%6" PRIu64 ".%" PRIu64 "s  ", tenths / 10, tenths % 10);
}

static size_t max_size(size_t least, size_t size)
{
    return size > least ? size : least;
}

struct widths {
    size_t pool, client, id;
};

static struct widths measure(const struct request_table *table)
{
    struct widths widths = {4, 6, 2};

    for (uint32_t i = 0; i < table->size; i++) {
        const struct listing_entry *entry = &table->entries[i];

        widths.pool = max_size(widths.pool, entry->pool.size);
        widths.client = max_size(widths.client, entry->client.size);
        widths.id = max_size(widths.id, entry->id.size);
    }
    return widths;
}

static int add_line(struct buf *out, const struct listing_entry *entry, struct widths widths)
{
    int result = add_seconds(out, entry->age_us);

    result |= add_column(out, span_of(stage_words[entry->stage]), 9);
    result |= add_column(out, entry->pool, widths.pool);
    result |=
        entry->pid ? buf_printf(out, "%-7u  ", entry->pid) : buf_append(out, span_of("-        "));
    result |= add_column(out, entry->client, widths.client);
    result |= add_column(out, entry->id, widths.id);
    result |= add_column(out, entry->method, 6);
    result |= text_add_plain(out, entry->path);
    return result | buf_append_byte(out, '\n');
}

static int add_gaps(struct buf *out, const struct request_table *table)
{
    int result = 0;

    if (table->left_out)
        result |= buf_printf(out, "%" PRIu64 " more are not shown\n", table->left_out);
    for (uint32_t i = 0; i < table->silent_size; i++)
        result |= buf_printf(out, "front %d does not answer: what it has is not shown\n",
                             table->silent[i]);
    return result;
}

int request_table_text(const struct request_table *table, struct buf *out)
{
    struct widths widths = measure(table);
    int result;

    if (!table->size) {
        result = buf_append(out, span_of("no request waits or runs\n"));
        return result | add_gaps(out, table);
    }
    result = buf_printf(out, "%8s  %-9s  %-*s  %-7s  %-*s  %-*s  %-6s  %s\n", "AGE", "STATE",
                        (int)widths.pool, "POOL", "WORKER", (int)widths.client, "CLIENT",
                        (int)widths.id, "ID", "METHOD", "PATH");
    for (uint32_t i = 0; i < table->size && result == 0; i++)
        result = add_line(out, &table->entries[i], widths);
    return result | add_gaps(out, table);
}

static int add_member(struct buf *out, const char *name, struct span value)
{
    int result = buf_printf(out, ",\"%s\":", name);

    return result | text_add_json(out, value);
}

static int add_object(struct buf *out, const struct listing_entry *entry)
{
    uint64_t queue_us = entry->age_us > entry->run_us ? entry->age_us - entry->run_us : 0;
    int result = buf_append(out, span_of("{\"id\":"));

    result |= text_add_json(out, entry->id);
    result |= add_member(out, "pool", entry->pool);
    result |= add_member(out, "state", span_of(stage_words[entry->stage]));
    result |= buf_printf(
        out, ",\"age_ms\":%" PRIu64 ",\"queue_ms\":%" PRIu64 ",\"app_ms\":%" PRIu64 ",\"worker\":",
        entry->age_us / 1000, queue_us / 1000, entry->run_us / 1000);
    result |= entry->pid ? buf_printf(out, "%u", entry->pid) : buf_append(out, span_of("null"));
    result |= add_member(out, "method", entry->method);
    result |= add_member(out, "path", entry->path);
    result |= add_member(out, "client", entry->client);
    return result | buf_append_byte(out, '}');
}

int request_table_json(const struct request_table *table, struct buf *out)
{
    int result = buf_append(out, span_of("{\"requests\":["));

    for (uint32_t i = 0; i < table->size && result == 0; i++) {
        result |= i ? buf_append_byte(out, ',') : 0;
        result |= add_object(out, &table->entries[i]);
    }
    result |= buf_printf(out, "],\"left_out\":%" PRIu64 ",\"silent_fronts\":[", table->left_out);
    for (uint32_t i = 0; i < table->silent_size && result == 0; i++)
        result |= buf_printf(out, i ? ",%d" : "%d", table->silent[i]);
    return result | buf_append(out, span_of("]}\n"));
}

int request_table_ended(const struct request_table *table, struct buf *out)
{
    int result = 0;

    for (uint32_t i = 0; i < table->size && result == 0; i++) {
        const struct listing_entry *entry = &table->entries[i];

        result |= buf_append(out, span_of("ended: "));
        result |= text_add_plain(out, entry->method);
        result |= buf_append_byte(out, ' ');
        result |= text_add_plain(out, entry->path);
        result |= buf_printf(out, " pool=%.*s was %s for %.1f s", SPAN_ARG(entry->pool),
                             stage_words[entry->stage],
                             (double)(entry->run_us ? entry->run_us : entry->age_us) / 1000000);
        result |= entry->pid ? buf_printf(out, "; worker %u is replaced\n", entry->pid)
                             : buf_append_byte(out, '\n');
    }
    return result | add_gaps(out, table);
}

void request_table_done(struct request_table *table)
{
    free(table->entries);
    *table = (struct request_table){.size = 0};
}

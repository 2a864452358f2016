/* SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/memory_table.h"
#include "cli/reading.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 65536 };

static bool read_proc(uint64_t pid, const char *name, char **ret_text, size_t *ret_size)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return fd_read_file(path, FILE_MAX, ret_text, ret_size) == 0;
}

static bool read_rollup(uint64_t pid, struct memory_use *ret_use)
{
    char *text;
    size_t size;
    bool is_read = read_proc(pid, "smaps_rollup", &text, &size);

    if (!is_read)
        return false;
    is_read = memory_parse_rollup(span_make(text, size), ret_use);
    free(text);
    return is_read;
}

static uint64_t read_rss(uint64_t pid)
{
    uint64_t pages = 0;
    char *text;
    size_t size;

    if (!read_proc(pid, "statm", &text, &size))
        return 0;
    (void)memory_parse_statm(span_make(text, size), &pages);
    free(text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The file of another user's process may be closed to us; workers have measured themselves, the rest
 * shows its RSS to everybody. */
static void measure(const struct yaml *node, struct memory_use *ret_use)
{
    uint64_t pid = reading_number(node, "pid");

    if (read_rollup(pid, ret_use))
        return;
    *ret_use = (struct memory_use){.private_bytes = reading_number(node, "private_dirty_bytes"),
                                   .pss_bytes = reading_number(node, "pss_bytes"),
                                   .rss_bytes = reading_number(node, "rss_bytes")};
    ret_use->is_whole = ret_use->pss_bytes > 0;
    if (!ret_use->is_whole)
        ret_use->rss_bytes = read_rss(pid);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void add(struct memory_table *table, const struct yaml *node, const char *role,
                const char *pool, const char *release)
{
    struct memory_process *process;
    const char *own = reading_text(node, "release");

    table->items = must_resize(table->items, (table->size + 1) * sizeof *table->items);
    process = &table->items[table->size++];
    *process = (struct memory_process){.pid = (int)reading_number(node, "pid"),
                                       .role = role,
                                       .pool = pool,
                                       .state = reading_text(node, "state"),
                                       .release = last_part(*own ? own : release),
                                       .generation = pool ? reading_number(node, "generation") : 0};
    measure(node, &process->use);
}

static void add_list(struct memory_table *table, const struct yaml *list, const char *role,
                     const char *pool, const char *release)
{
    for (size_t i = 0; i < reading_size(list); i++)
        add(table, reading_item(list, i), role, pool, release);
}

static void collect(const struct yaml *status, struct memory_table *table)
{
    const struct yaml *pools = reading_find(status, "pools");

    add(table, status, "master", NULL, "");
    add_list(table, reading_find(status, "fronts"), "front", NULL, "");
    for (size_t i = 0; i < reading_size(pools); i++) {
        const struct yaml *pool = reading_item(pools, i);
        const char *name = reading_text(pool, "name");
        const char *release = reading_text(pool, "release");
        add_list(table, reading_find(pool, "molds"), "mold", name, release);
        add_list(table, reading_find(pool, "workers"), "worker", name, release);
    }
}

int cli_memory(const struct cli_call *call)
{
    struct reading reading;
    struct memory_table table = {.size = 0};
    struct buf out = {.size = 0};
    enum server_outcome outcome = reading_ask(call, &reading);
    int status = CLI_NOT_RUNNING;

    if (outcome == SERVER_OK) {
        collect(reading.root, &table);
        if ((call->json ? memory_json(&table, &out) : memory_text(&table, &out)) == 0)
            server_print(STDOUT_FILENO, &out);
        status = CLI_OK;
    }
    free(table.items);
    buf_done(&out);
    reading_done(&reading);
    return status;
}

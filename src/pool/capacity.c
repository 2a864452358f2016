/* SPDX-License-Identifier: MIT */
#include "pool/capacity.h"

#include "base/fd.h"
#include "base/num.h"
#include "base/span.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESERVE_BYTES = 64 << 20, FILE_LIMIT = 1 << 16 };

/* A limit this large is version 1's way to say that there is none. */
#define NO_LIMIT_BYTES (UINT64_C(1) << 60)

static char *read_text(const char *root, const char *path)
{
    char full[PATH_MAX];
    char *text;
    size_t size;

    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full)
        return NULL;
    return fd_read_file(full, FILE_LIMIT, &text, &size) == 0 ? text : NULL;
}

static bool read_number(const char *root, const char *folder, const char *file, uint64_t *ret_value)
{
    char path[PATH_MAX];
    char *text;
    bool found;

    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
        return false;
    text = read_text(root, path);
    found =
        text && num_decimal(span_first(span_of(text), span_find(span_of(text), '\n')), ret_value);
    free(text);
    return found;
}

/* The number behind "name " at the start of a line; units behind it are left to the caller. */
static bool find_line(struct span text, const char *name, uint64_t *ret_value)
{
    while (text.data) {
        struct span line = span_split(&text, '\n');
        if (!span_starts_with(line, span_of(name)))
            continue;
        line = span_trim(span_skip(line, strlen(name)));
        return num_decimal(span_first(line, span_find(line, ' ')), ret_value);
    }
    return false;
}

/* The path of this process's group for a controller of version 1, or of version 2 ("" as name), from
 * lines like "4:cpu,cpuacct:/path". The caller frees it. */
static char *group_path(const char *root, const char *controller)
{
    char *text = read_text(root, "/proc/self/cgroup");
    struct span rest = span_of(text);
    char *path = NULL;

    while (rest.data && !path) {
        struct span line = span_split(&rest, '\n');
        struct span names;
        (void)span_split(&line, ':');
        names = span_split(&line, ':');
        while (line.data && names.data && !path)
            if (span_is(span_split(&names, ','), controller) && line.size)
                path = strndup(line.data, line.size);
    }
    free(text);
    return path;
}

typedef void visit_group(const char *root, const char *folder, struct capacity *capacity,
                         double *quota);

/* Visits the group and all above it: a limit anywhere on the way counts. In a container the group's
 * path is often that of the host; then only the top is there. */
static void walk_up(const char *root, const char *mount, const char *controller, visit_group *visit,
                    struct capacity *capacity, double *quota)
{
    char *path = group_path(root, controller);
    char folder[PATH_MAX];

    while (path && *path) {
        char *cut = strrchr(path, '/');
        if (strcmp(path, "/") != 0 &&
            snprintf(folder, sizeof folder, "%s%s", mount, path) < (int)sizeof folder)
            visit(root, folder, capacity, quota);
        if (!cut)
            break;
        *cut = '\0';
    }
    if (path)
        visit(root, mount, capacity, quota);
    free(path);
}

static void lower_quota(double *quota, uint64_t time_us, uint64_t period_us)
{
    double cpus = period_us ? (double)time_us / (double)period_us : 0;

    if (cpus > 0 && (*quota == 0 || cpus < *quota))
        *quota = cpus;
}

static void visit_cpu_v1(const char *root, const char *folder, struct capacity *capacity,
                         double *quota)
{
    uint64_t time_us;
    uint64_t period_us;

    (void)capacity;
    /* "-1" is no decimal number and means no quota. */
    if (read_number(root, folder, "cpu.cfs_quota_us", &time_us) &&
        read_number(root, folder, "cpu.cfs_period_us", &period_us))
        lower_quota(quota, time_us, period_us);
}

static void lower_memory(struct capacity *capacity, uint64_t limit, uint64_t used)
{
    uint64_t left = limit > used ? limit - used : 0;

    if (limit >= NO_LIMIT_BYTES)
        return;
    if (capacity->memory_limit == 0 || limit < capacity->memory_limit)
        capacity->memory_limit = limit;
    if (left < capacity->memory_headroom)
        capacity->memory_headroom = left;
}

/* The text of a file in a group's folder; the caller frees it. */
static char *read_in(const char *root, const char *folder, const char *file)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
        return NULL;
    return read_text(root, path);
}

/* Usage counts the page cache; what of it is inactive goes away when it is needed. */
static uint64_t without_cache(const char *root, const char *folder, const char *name, uint64_t used)
{
    char *text = read_in(root, folder, "memory.stat");
    uint64_t cache = 0;

    (void)find_line(span_of(text), name, &cache);
    free(text);
    return used > cache ? used - cache : 0;
}

static void visit_memory_v1(const char *root, const char *folder, struct capacity *capacity,
                            double *quota)
{
    uint64_t limit;
    uint64_t used = 0;

    (void)quota;
    if (!read_number(root, folder, "memory.limit_in_bytes", &limit))
        return;
    (void)read_number(root, folder, "memory.usage_in_bytes", &used);
    lower_memory(capacity, limit, without_cache(root, folder, "total_inactive_file ", used));
}

static void raise_pressure(struct capacity *capacity, char *text)
{
    uint32_t pressure = capacity_parse_pressure(span_of(text));

    if (pressure > capacity->pressure)
        capacity->pressure = pressure;
    free(text);
}

static void visit_cpu_v2(const char *root, const char *folder, double *quota)
{
    char *text = read_in(root, folder, "cpu.max");
    struct span rest = span_trim(span_first(span_of(text), span_find(span_of(text), '\n')));
    struct span time = span_split(&rest, ' ');
    uint64_t time_us;
    uint64_t period_us;

    if (num_decimal(time, &time_us) && num_decimal(rest, &period_us))
        lower_quota(quota, time_us, period_us);
    free(text);
}

static void visit_v2(const char *root, const char *folder, struct capacity *capacity, double *quota)
{
    uint64_t limit;
    uint64_t used = 0;

    visit_cpu_v2(root, folder, quota);
    raise_pressure(capacity, read_in(root, folder, "memory.pressure"));
    if (!read_number(root, folder, "memory.max", &limit))
        return;
    (void)read_number(root, folder, "memory.current", &used);
    lower_memory(capacity, limit, without_cache(root, folder, "inactive_file ", used));
}

void capacity_read(const char *root, uint32_t affinity, struct capacity *ret_capacity)
{
    struct capacity capacity = {.affinity = affinity, .memory_headroom = UINT64_MAX};
    char *meminfo = read_text(root, "/proc/meminfo");
    double quota = 0;
    uint64_t size_kb;

    if (find_line(span_of(meminfo), "MemAvailable:", &size_kb))
        capacity.memory_headroom = size_kb * 1024;
    if (find_line(span_of(meminfo), "MemTotal:", &size_kb))
        capacity.memory_total = size_kb * 1024;
    free(meminfo);
    raise_pressure(&capacity, read_text(root, "/proc/pressure/memory"));
    walk_up(root, "/sys/fs/cgroup/cpu", "cpu", visit_cpu_v1, &capacity, &quota);
    walk_up(root, "/sys/fs/cgroup/cpu,cpuacct", "cpu", visit_cpu_v1, &capacity, &quota);
    walk_up(root, "/sys/fs/cgroup/memory", "memory", visit_memory_v1, &capacity, &quota);
    walk_up(root, "/sys/fs/cgroup", "", visit_v2, &capacity, &quota);
    walk_up(root, "/sys/fs/cgroup/unified", "", visit_v2, &capacity, &quota);
    capacity.quota = quota;
    capacity.cpus = affinity ? affinity : 1;
    if (quota > 0 && quota < capacity.cpus)
        capacity.cpus = (uint32_t)quota + (quota > (uint32_t)quota);
    *ret_capacity = capacity;
}

uint64_t capacity_memory(const struct capacity *capacity)
{
    if (capacity->memory_total == 0)
        return capacity->memory_limit;
    if (capacity->memory_limit && capacity->memory_limit < capacity->memory_total)
        return capacity->memory_limit;
    return capacity->memory_total;
}

char *capacity_explain_cpus(const struct capacity *capacity, char *out, size_t room)
{
    if (capacity->quota > 0)
        (void)snprintf(out, room, "affinity %u, quota %.2f", capacity->affinity, capacity->quota);
    else
        (void)snprintf(out, room, "affinity %u, no quota", capacity->affinity);
    return out;
}

/* "some avg10=12.34 avg60=..." */
uint32_t capacity_parse_pressure(struct span text)
{
    uint64_t whole;
    uint64_t hundredths = 0;
    struct span number;

    while (text.data && !span_starts_with(text, span_of("some avg10=")))
        (void)span_split(&text, '\n');
    if (!text.data)
        return 0;
    number = span_skip(text, strlen("some avg10="));
    number = span_first(number, span_find(number, ' '));
    if (!num_decimal(span_split(&number, '.'), &whole) || whole > 100)
        return 0;
    if (number.size != 2 || !num_decimal(number, &hundredths))
        hundredths = 0;
    return (uint32_t)(whole * 100 + hundredths);
}

uint32_t capacity_affinity(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

uint32_t capacity_fits(uint64_t headroom, uint64_t private_bytes)
{
    uint64_t count;

    if (private_bytes == 0 || headroom == UINT64_MAX)
        return UINT32_MAX;
    if (headroom <= RESERVE_BYTES)
        return 1;
    count = (headroom - RESERVE_BYTES) / private_bytes;
    if (count > UINT32_MAX)
        return UINT32_MAX;
    return count ? (uint32_t)count : 1;
}

uint64_t capacity_oom_kills(const char *root)
{
    char *text = read_text(root, "/proc/vmstat");
    uint64_t kills = 0;

    (void)find_line(span_of(text), "oom_kill ", &kills);
    free(text);
    return kills;
}

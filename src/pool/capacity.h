/* SPDX-License-Identifier: MIT */
/*
 * What this process may use of the machine: processors by affinity and cgroup quota, memory by cgroup
 * limit and MemAvailable, and how hard the memory is to get now (pressure stall information). Reads files
 * below a given root, so that it can be tried on a tree of files; decides purely.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct capacity {
    uint32_t affinity;        /* processors this process may run on */
    uint32_t cpus;            /* affinity bounded by the quota, rounded up, at least 1 */
    double quota;             /* processors by cgroup, 0 = no quota */
    uint64_t memory_total;    /* of the machine, 0 = unknown */
    uint64_t memory_limit;    /* of the cgroup, 0 = none */
    uint64_t memory_headroom; /* bytes that may still be taken: limit - usage, or MemAvailable */
    uint32_t
        pressure; /* hundredths of a percent of the last 10 s in which somebody waited for memory */
};

/* A pressure from which on the machine, or our group, is short of memory: a tenth of the time. */
enum { CAPACITY_PRESSURE_HIGH = 1000 };

/* Reads below root ("" in real life): proc/self/cgroup, proc/meminfo, proc/pressure/memory and
 * sys/fs/cgroup, version 1 and 2, from the process's own group up to the top. What cannot be read is no
 * limit. affinity is brought by the caller. */
void capacity_read(const char *root, uint32_t affinity, struct capacity *ret_capacity);

/* The processors that sched_getaffinity allows. */
uint32_t capacity_affinity(void);

/* The smaller of the machine's memory and the group's limit, 0 = unknown. */
uint64_t capacity_memory(const struct capacity *capacity);

/* "affinity 4, quota 1.5" and what follows from it, for the log; returns out. */
char *capacity_explain_cpus(const struct capacity *capacity, char *out, size_t room);

/* The `some avg10` of a pressure file in hundredths of a percent; 0 when there is none. */
uint32_t capacity_parse_pressure(struct span text);

/* How many workers of private_bytes each fit beside the mold and 64 MB, at least 1. headroom is what was
 * left after the mold had loaded, so that the mold is in it already. private_bytes 0: no bound. */
uint32_t capacity_fits(uint64_t headroom, uint64_t private_bytes);

/* Processes that the kernel has killed for want of memory so far (proc/vmstat). */
uint64_t capacity_oom_kills(const char *root);

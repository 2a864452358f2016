/* SPDX-License-Identifier: MIT */
/*
 * What this process may use of the machine: processors by affinity and cgroup quota, memory by cgroup
 * limit and MemAvailable. Reads files below a given root, so that it can be tried on a tree of files;
 * decides purely.
 */
#pragma once

#include <stdint.h>

struct capacity {
    uint32_t affinity;        /* processors this process may run on */
    uint32_t cpus;            /* affinity bounded by the quota, rounded up, at least 1 */
    uint64_t memory_limit;    /* of the cgroup, 0 = none */
    uint64_t memory_headroom; /* bytes that may still be taken: limit - usage, or MemAvailable */
};

/* Reads below root ("" in real life): proc/self/cgroup, proc/meminfo and sys/fs/cgroup, version 1 and 2,
 * from the process's own group up to the top. What cannot be read is no limit. affinity is brought by
 * the caller. */
void capacity_read(const char *root, uint32_t affinity, struct capacity *ret_capacity);

/* The processors that sched_getaffinity allows. */
uint32_t capacity_affinity(void);

/* How many workers of private_bytes each fit beside the mold and 64 MB, at least 1. headroom is what was
 * left after the mold had loaded, so that the mold is in it already. private_bytes 0: no bound. */
uint32_t capacity_fits(uint64_t headroom, uint64_t private_bytes);

/* Processes that the kernel has killed for want of memory so far (proc/vmstat). */
uint64_t capacity_oom_kills(const char *root);

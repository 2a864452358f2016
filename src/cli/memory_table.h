/* SPDX-License-Identifier: MIT */
/*
 * What the processes of a server take of the memory, as a table for people and for programs. Pure.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* What one process takes. PSS divides shared pages among those who share them, so that its sum means
 * something; private dirty pages are what would come back if this process ended. */
struct memory_use {
    uint64_t private_bytes, pss_bytes, rss_bytes;
    bool is_whole; /* false: RSS alone could be found out */
};

struct memory_process {
    int pid;
    const char *role;    /* "master", "front", "mold", "worker" */
    const char *pool;    /* NULL: of no pool */
    const char *state;   /* or "" */
    const char *release; /* the last part of its folder, or "" */
    uint64_t generation; /* 0 = none */
    struct memory_use use;
};

/* In the order of printing: those of no pool, then pool by pool. */
struct memory_table {
    struct memory_process *items; /* owned by the caller */
    size_t size;
};

/* Reads the text of /proc/PID/smaps_rollup; false when it is none. */
bool memory_parse_rollup(struct span text, struct memory_use *ret_use);

/* The RSS in the text of /proc/PID/statm, in pages; false when it is none. */
bool memory_parse_statm(struct span text, uint64_t *ret_pages);

/* Appends the table. 0 or -ENOMEM. */
int memory_text(const struct memory_table *table, struct buf *out);
int memory_json(const struct memory_table *table, struct buf *out);

/* SPDX-License-Identifier: MIT */
/*
 * The status of the whole server at one moment, and its two forms: JSON for programs, whose names are
 * fixed, and text for people. Filled by master, rendered here; pure.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct snapshot_listener {
    const char *address;
    bool tls;
};

/* A request that a worker answers now. */
struct snapshot_request {
    struct span id, method, path; /* from the board: any bytes */
    uint64_t age_ms;
};

struct snapshot_worker {
    int pid;
    const char *state;
    uint32_t generation;
    const char *release; /* the folder its application was loaded from, or NULL */
    uint64_t requests;
    uint32_t busy, threads;
    double age_s;
    uint64_t rss_bytes, pss_bytes, private_bytes;
    struct snapshot_request *current;
    uint32_t current_size;
};

/* A process that serves no requests itself: a front, or a mold of a pool. */
struct snapshot_helper {
    int pid;
    const char *state;
    uint32_t generation; /* of a mold */
    const char *release; /* of a mold, or NULL */
};

/* How many workers ended for a reason. */
struct snapshot_exits {
    const char *reason;
    uint64_t count;
};

struct snapshot_pool {
    const char *name;
    const char *kind;
    const char *state;
    const char *error; /* or NULL */
    const char *release;
    const char *ruby; /* "/usr/bin/ruby 3.1.2" */
    uint32_t min, max;
    struct {
        uint64_t length, oldest_ms, limit, shed, expired, abandoned;
    } queue;
    uint32_t busy, total; /* slots */
    uint64_t streams;
    const struct snapshot_helper *molds;
    uint32_t mold_size;
    struct snapshot_worker *workers;
    uint32_t worker_size;
    const struct snapshot_exits *exits;
    uint32_t exit_size;
};

struct snapshot {
    const char *version;
    int pid;
    double uptime_s;
    const char *environment;
    uint32_t generation;
    const struct snapshot_listener *listeners;
    uint32_t listener_size;
    const struct snapshot_helper *fronts;
    uint32_t front_size;
    uint64_t open, idle, accepted; /* connections */
    uint64_t requests, statuses[6], aborted;
    const struct snapshot_pool *pools;
    uint32_t pool_size;
};

/* Appends the JSON, on one line with its end. 0 or -ENOMEM. */
int snapshot_json(const struct snapshot *snapshot, struct buf *out);

/* Appends the text. 0 or -ENOMEM. */
int snapshot_text(const struct snapshot *snapshot, struct buf *out);

/* SPDX-License-Identifier: MIT */
/*
 * How many workers a pool should have. Pure: what is wanted now follows from what was wanted before and
 * from the situation.
 *
 * One worker more is wanted when whoever waits would wait longer than a worker takes to start; one less
 * when a worker was idle for longer than `idle`. Memory says how many of those that are missing may be
 * started: what does not fit stays wanted, and is started when there is room.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scale {
    /* limits */
    uint32_t min;
    uint32_t max;
    uint32_t fits;    /* workers that fit into memory when their number is automatic, at least 1 */
    bool demanded;    /* requests have come for a pool that starts on demand (min 0) */
    int32_t adjust;   /* workers more or less by TTIN and TTOU */
    uint32_t entries; /* of the board's worker table */

    /* the situation */
    uint32_t wanted;     /* so far */
    uint32_t serving;    /* workers that take requests */
    uint32_t expired;    /* of these, idle for longer than `idle` */
    uint32_t threads;    /* of one worker */
    uint32_t busy;       /* threads that answer */
    uint32_t queued;     /* requests that wait, */
    uint64_t oldest_ms;  /* and the first of them since when */
    uint64_t service_us; /* that one request takes, 0 = not known yet */
    uint64_t start_ms;   /* that a worker takes to start */
};

/* The fewest and the most workers that may be wanted: the range of the configuration, bounded by memory
 * when it is automatic and moved by TTIN and TTOU. At least 1, save for a pool on demand that nobody has
 * asked for, and at most half of the worker table: the other half is for those that retire. */
uint32_t scale_least(const struct scale *scale);
uint32_t scale_most(const struct scale *scale);

/* Milliseconds that the last request in the queue will wait for one of so many workers. */
uint64_t scale_wait_ms(const struct scale *scale, uint32_t workers);

/* The wanted number of workers. */
uint32_t scale_wanted(const struct scale *scale);

/* What may be started at once. */
struct scale_starts {
    uint32_t missing;  /* workers */
    uint32_t starting; /* those under way, of all pools: every one keeps a processor busy */
    uint32_t cpus;
    uint32_t room; /* workers that fit into memory, UINT32_MAX = no bound */
};

/* How many workers to start now. */
uint32_t scale_start(const struct scale_starts *starts);

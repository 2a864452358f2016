/* SPDX-License-Identifier: MIT */
/*
 * Counters in memory shared by master and its fronts (an anonymous shared mapping made before the first
 * fork), so that totals outlive a front. Fronts add with relaxed order; gauges are kept per front entry,
 * so that master can drop those of a dead one.
 */
#pragma once

#include "board/board.h"
#include "http/http.h"

enum {
    FRONT_COUNTED_POOLS = 256,
    FRONT_COUNTED_SITES = 64, /* the last one stands for all further sites */
    FRONT_BUCKETS = 14,
    FRONT_EXITS = 8 /* room for the reasons why a worker ends; master knows their words */
};

struct front_gauges {
    _Atomic uint64_t open; /* connections */
    _Atomic uint64_t idle;
    _Atomic uint64_t streams[FRONT_COUNTED_POOLS];
    _Atomic uint64_t answers; /* of the streams, those whose end would cut an answer */
};

/* Upper bounds of a histogram's buckets in microseconds; the last bucket has none. */
extern const uint64_t front_bucket_us[FRONT_BUCKETS - 1];

struct front_histogram {
    _Atomic uint64_t buckets[FRONT_BUCKETS];
    _Atomic uint64_t sum_us;
};

enum front_stage { FRONT_QUEUE, FRONT_APP, FRONT_TOTAL, FRONT_STAGES };

struct front_pool_counters {
    _Atomic uint64_t shed, expired, abandoned; /* how requests left the queue without Ruby */
    _Atomic uint64_t requests;
    _Atomic uint64_t reruns;             /* run again after a worker died */
    _Atomic uint64_t exits[FRONT_EXITS]; /* of workers, by reason; master's to count */
    struct front_histogram seconds[FRONT_STAGES];
};

struct front_site_counters {
    _Atomic uint64_t statuses[6];
};

struct front_counters {
    struct front_gauges gauges[BOARD_FRONTS];
    _Atomic uint64_t accepted;
    _Atomic uint64_t requests;
    _Atomic uint64_t statuses[6]; /* [1] = 1xx .. [5] = 5xx */
    _Atomic uint64_t aborted;
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t underscore_dropped;
    _Atomic uint64_t log_dropped;
    _Atomic uint64_t refusals[REFUSAL_COUNT];
    struct front_site_counters sites[FRONT_COUNTED_SITES];
    struct front_pool_counters pools[FRONT_COUNTED_POOLS];
};

static inline void front_count(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static inline void front_uncount(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_sub_explicit(counter, amount, memory_order_relaxed);
}

/* Adds one observation. */
void front_observe(struct front_histogram *histogram, uint64_t duration_us);

/* SPDX-License-Identifier: MIT */
/*
 * What the files of front/ share: the process and its loop threads. Everything in struct front is made
 * before the threads start and read-only afterwards, save the atomics; a struct front_loop belongs to its
 * thread, and others reach it through its post box.
 */
#pragma once

#include "front/access_log.h"
#include "front/encoder.h"
#include "front/error_page.h"
#include "front/former.h"
#include "front/front.h"
#include "front/message.h"
#include "front/request_id.h"
#include "front/site.h"
#include "front/trim.h"
#include "http/forwarded.h"
#include "http/h1_conn.h"
#include "loop/offload.h"
#include "loop/timer.h"
#include "static/static.h"
#include "upstream/rack.h"
#include "upstream/rack_descriptor.h"

struct accept_listener;
struct admin;
struct channel;
struct rack_link;

/* What master has said about a pool; written by loop 0, read by all (relaxed: a hint). */
struct front_pool_view {
    _Atomic uint32_t state; /* enum front_pool_state */
    _Atomic uint32_t next_try_s;
};

struct front {
    const struct front_options *options;
    struct forwarded_trust trust;
    bool trust_named; /* somebody set trusted_proxies: then it counts for PROXY headers too */
    struct site_table sites;
    struct front_pool_view *pools; /* [pool] */
    struct offload *offload;
    struct access_log *access_log; /* NULL: off */
    struct front_loop **loops;
    struct post **posts;                   /* [loop], for those who know only numbers */
    struct rack ***racks;                  /* [pool][loop] */
    struct rack_descriptors **descriptors; /* [pool], on loop 0 */
    _Atomic uint64_t open;                 /* connections of all loops */
    _Atomic uint32_t loops_running;
    _Atomic uint32_t loops_accepting; /* the last to stop closes the listeners */
    bool *
        given_up; /* [listener]: to be emptied when it retires; loop 0, before the loops are told */
    bool retiring;           /* another front accepts; likewise */
    _Atomic uint64_t cut;    /* requests that the drain's end broke off */
    struct channel *channel; /* loop 0 */
};

struct front_loop {
    struct front *front;
    uint32_t number;
    struct loop *loop;
    struct post *post;
    struct static_cache *cache;
    struct former *formers;  /* [site] */
    struct rack **racks;     /* [pool], NULL entries for other kinds */
    struct rack_link *links; /* [pool] */
    struct error_pages *pages;
    struct encoder_store encoders;
    struct request_ids ids;
    struct h1_options h1;
    struct h1_options admin_h1; /* loop 0 only */
    struct admin *admin;        /* loop 0 only, or NULL */
    uint64_t spool_used;
    struct accept_listener *listeners; /* [options.listener_size] */
    struct list connections;           /* in order of their last use */
    _Atomic uint32_t open;             /* of this loop; read by others who look for the emptiest */
    struct trim trim;
    struct timer accept_timer; /* accepting is paused */
    int reserve_fd;            /* given up for a moment to refuse somebody when none is left */
    struct access_log_buffer lines;
    struct timer drain_timer, drain_cut_timer;
    bool leaving; /* a stop comes soon: it accepts, is not ready, and keeps no connection alive */
    bool draining;
    bool done;
};

/* Sends a message to master, from any loop; kept for later when master is slow. */
void front_tell(struct front *front, const struct front_message *message);

/* The same with a descriptor, which is closed when it is on its way; -1 = none. */
void front_tell_file(struct front *front, const struct front_message *message, int fd);

/* The loop's gauges. */
static inline struct front_gauges *front_gauges(const struct front *front)
{
    return &front->options->counters->gauges[front->options->entry];
}

/* The place of a pool among the counted ones; the last one stands for those beyond. */
static inline uint32_t front_pool_place(const struct front *front, uint32_t pool)
{
    uint32_t place = front->options->pools[pool].place;

    return place < FRONT_COUNTED_POOLS ? place : FRONT_COUNTED_POOLS - 1;
}

/* The gauge of a pool's streams. */
static inline _Atomic uint64_t *front_streams(const struct front *front, uint32_t pool)
{
    return &front_gauges(front)->streams[front_pool_place(front, pool)];
}

/* The counters of a pool, and of a site by its number in the configuration. */
static inline struct front_pool_counters *front_pool_counters(const struct front *front,
                                                              uint32_t pool)
{
    return &front->options->counters->pools[front_pool_place(front, pool)];
}

static inline struct front_site_counters *front_site_counters(const struct front *front,
                                                              uint32_t site)
{
    const uint32_t *places = front->options->site_places;
    uint32_t place = places ? places[site] : site;

    return &front->options->counters
                ->sites[place < FRONT_COUNTED_SITES ? place : FRONT_COUNTED_SITES - 1];
}

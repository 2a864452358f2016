/* SPDX-License-Identifier: MIT */
/*
 * An edition: one loaded configuration with the sockets, pools and log files that serve it. Never changed
 * once a front runs on it. Counted: master holds the current one, a reload the one that it prepares, and
 * each front the one that it was forked with; whatever no edition has any more is given up with the last
 * reference.
 *
 * Invariants: pools[i] and front_pools[i] belong to config->pools[i]; listeners[i] to front_listeners[i].
 */
#pragma once

#include "master/state.h"

/* A configuration, counted apart from its edition: a pool that retires still reads its settings. */
struct edition_config {
    unsigned refs;
    struct config *config; /* owned */
};

struct edition {
    struct master *master;
    unsigned refs;
    uint32_t number; /* `generation` of the status */
    struct edition_config *held;
    const struct config *config;            /* the held one */
    uint32_t loops;                         /* of a front */
    int log_fd;                             /* owned, or -1 */
    int access_log_fd;                      /* owned, or -1 */
    struct master_listener **listeners;     /* owned list of counted references */
    struct front_listener *front_listeners; /* what fronts inherit, owned */
    uint32_t listener_size;
    int admin_listener; /* index, or -1 */
    struct config_listener admin_config;
    struct master_pool **pools;     /* owned list of counted references */
    struct front_pool *front_pools; /* owned */
    uint32_t pool_size;
    uint32_t *site_places; /* of config->sites in the counters, owned */
};

/* An edition of this configuration, which it owns from now on, without sockets, pools and files. */
struct edition *edition_new(struct master *master, struct config *config);

/* One for a front that another program has forked: it knows the pools and sockets that are added;
 * its configuration stands in for one that is gone. */
struct edition *edition_new_former(const struct edition *present);

/* Adds a counted pool to it, or a socket, which it counts. */
void edition_add_pool(struct edition *edition, struct master_pool *pool);
void edition_add_listener(struct edition *edition, struct master_listener *listener);

struct edition *edition_ref(struct edition *edition);

/* NULL is harmless. */
void edition_unref(struct edition *edition);

struct edition_config *edition_hold_config(struct edition_config *held);
void edition_release_config(struct edition_config *held);

/* Makes it the current one. */
void edition_set(struct master *master, struct edition *edition);

/* Fills the lists for fronts from what was opened. */
void edition_finish(struct edition *edition);

/* Frees a list of counted names. */
void edition_forget_names(struct master_names *names);

/* The number that the pool has in the edition, or -1. */
int64_t edition_find_pool(const struct edition *edition, const struct master_pool *pool);

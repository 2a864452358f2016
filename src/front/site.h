/* SPDX-License-Identifier: MIT */
/*
 * Host name -> site: exact, then the longest wildcard, then the site without host; the order of the
 * configuration never matters. Made once per edition, then only read; any thread.
 */
#pragma once

#include "base/map.h"
#include "config/config.h"
#include "static/static.h"

enum { SITE_NO_POOL = UINT32_MAX };

/* Files that only the application can have sent. */
struct site_internal {
    struct span prefix; /* with a slash at both ends */
    struct static_root root;
};

/* What answers below a path: files, a pool, or both. */
struct site_place {
    struct span path; /* of the route, or empty: the whole site */
    const struct config_pool *config;
    uint32_t pool; /* in front_options.pools, or SITE_NO_POOL */
    struct static_root root;
    bool has_root;
};

/* A site as the front uses it. */
struct site {
    const struct config_site *config;
    uint32_t number; /* in config.sites */
    struct site_place whole;
    struct site_place *routes; /* the longest path first */
    uint32_t route_size;
    struct span pulse; /* its path; empty: none */
    struct site_internal *internal;
    uint32_t internal_size;
};

struct site_table {
    struct site *sites;
    uint32_t size;
    struct map exact;
    struct map wildcards; /* key: ".example.com" of "*.example.com" */
    const struct site *fallback;
};

/* Builds the table; find_pool tells a pool's number. */
void site_table_init(struct site_table *table, const struct config *config,
                     uint32_t (*find_pool)(void *data, const struct config_pool *pool), void *data);
void site_table_done(struct site_table *table);

/* The site of a host (lower case, without port), or NULL. */
const struct site *site_find(const struct site_table *table, struct span host);

/* The place of a path as received, and how many of its bytes are the place's own; the whole site when no
 * route has it. Only whole names count, escaped or not. */
const struct site_place *site_find_place(const struct site *site, struct span path,
                                         size_t *ret_size);

/* The site's internal root that a decoded path without leading slash lies below, by the longest prefix,
 * and the name there; or NULL. */
const struct site_internal *site_find_internal(const struct site *site, struct span path,
                                               struct span *ret_name);

/* A site whose pulse is that path, whatever its host: `first` (may be NULL) before all others; or NULL. */
const struct site *site_find_pulse(const struct site_table *table, const struct site *first,
                                   struct span path);

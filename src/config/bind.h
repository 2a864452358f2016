/* SPDX-License-Identifier: MIT */
/*
 * From the tree of a file to the structs of an edition, by the table of directives. Every fault is
 * collected; a value that is wrong leaves its default in place. One thread.
 */
#pragma once

#include "config/config.h"
#include "config/listener.h"
#include "config/type.h"
#include "config/yaml.h"

/* One binding. config->folder and config->development are known already. */
struct bind {
    struct config *config;
    struct faults *faults;
    const char *file; /* as faults shall name it; NULL = no file */
    struct type_context types;
    struct listener_entries entries; /* out: `listen` as written */
    struct config_pool *defaults;    /* out: a pool of the defaults and `pool_defaults` */
    bool has_pools;                  /* out: pools are named, none is implied */
    bool has_sites;                  /* out: sites are listed, none is implied */
};

/* Fills config from the tree (NULL = nothing written). Without `pools` config->pools holds the one
 * that the top level describes, without a name; without `sites` config->sites holds one. */
void bind_file(struct bind *bind, const struct yaml *root);

/* Sets every directive of a section in the object to its default. */
void bind_defaults(const struct bind *bind, enum section section, void *object);

/* The key path of a pool's (site's) directive, as origins and faults name it: "workers" at the top
 * level, "pools.shop.workers" below pools. */
const char *bind_pool_key(const struct bind *bind, const struct config_pool *pool,
                          const char *name);
const char *bind_site_key(const struct bind *bind, uint32_t index, const char *name);

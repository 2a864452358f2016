/* SPDX-License-Identifier: MIT */
#include "front/site.h"

#include "base/ascii.h"
#include "base/base.h"

#include <stdlib.h>

/* How a pool's number is found. */
struct site_pools {
    const struct config *config;
    uint32_t (*find)(void *data, const struct config_pool *pool);
    void *data;
};

static const char **copy_strings(const struct config_strings *strings)
{
    const char **list;

    if (!strings->size)
        return NULL;
    list = must_alloc(strings->size + 1, sizeof(*list));
    for (uint32_t i = 0; i < strings->size; i++)
        list[i] = strings->items[i];
    return list;
}

/* What a place is made of, of a site or of one of its routes. */
struct place_config {
    const char *path;
    const char *root;
    const struct config_pool *pool;
    const struct config_strings *links, *serve;
};

static void init_place(struct site_place *place, const struct place_config *from,
                       const struct site *site, const struct site_pools *pools)
{
    *place = (struct site_place){
        .path = span_of(from->path),
        .config = from->pool,
        .pool = from->pool ? pools->find(pools->data, from->pool) : SITE_NO_POOL,
        .has_root = from->root != NULL,
    };
    place->root = (struct static_root){
        .folder = from->root,
        .app = from->pool ? from->pool->app : NULL,
        .links = copy_strings(from->links),
        .serve = copy_strings(from->serve),
        .never = pools->config->file,
        .directories = !from->pool,
        .page_query = site->config->page_cache_query,
    };
}

static void done_place(struct site_place *place)
{
    free(place->root.links);
    free(place->root.serve);
}

static int longer_first(const void *a, const void *b)
{
    size_t left = ((const struct site_place *)a)->path.size;
    size_t right = ((const struct site_place *)b)->path.size;

    return (left < right) - (left > right);
}

static void init_places(struct site *site, const struct site_pools *pools)
{
    const struct config_site *config = site->config;
    const struct place_config whole = {"", config->root, config->pool, &config->links,
                                       &config->serve};

    init_place(&site->whole, &whole, site, pools);
    site->route_size = config->route_size;
    site->routes = must_alloc(config->route_size + 1, sizeof(*site->routes));
    for (uint32_t i = 0; i < config->route_size; i++) {
        const struct config_route *route = &config->routes[i];
        const struct place_config from = {route->path, route->root, route->pool, &route->links,
                                          &route->serve};

        init_place(&site->routes[i], &from, site, pools);
    }
    qsort(site->routes, site->route_size, sizeof(*site->routes), longer_first);
}

static void init_internal(struct site *site, const struct config *config)
{
    const struct config_site *from = site->config;

    site->internal_size = from->internal_size;
    site->internal = must_alloc(from->internal_size + 1, sizeof(*site->internal));
    for (uint32_t i = 0; i < from->internal_size; i++) {
        site->internal[i].prefix = span_of(from->internal[i].prefix);
        site->internal[i].root = (struct static_root){
            .folder = from->internal[i].folder,
            .links = site->whole.root.links,
            .never = config->file,
            .any_name = true,
        };
    }
}

static void add_hosts(struct site_table *table, struct site *site)
{
    const struct config_strings *hosts = &site->config->hosts;

    if (!hosts->size && !table->fallback)
        table->fallback = site;
    for (uint32_t i = 0; i < hosts->size; i++) {
        struct span host = span_of(hosts->items[i]);

        if (span_starts_with(host, span_of("*.")))
            map_set(&table->wildcards, span_skip(host, 1), site);
        else
            map_set(&table->exact, host, site);
    }
}

void site_table_init(struct site_table *table, const struct config *config,
                     uint32_t (*find_pool)(void *data, const struct config_pool *pool), void *data)
{
    const struct site_pools pools = {config, find_pool, data};

    *table = (struct site_table){.size = config->site_size};
    table->sites = must_alloc(config->site_size + 1, sizeof(*table->sites));
    for (uint32_t i = 0; i < config->site_size; i++) {
        struct site *site = &table->sites[i];
        const char *pulse = config->sites[i].pulse ? config->sites[i].pulse : config->pulse;

        site->config = &config->sites[i];
        site->number = i;
        init_places(site, &pools);
        /* Without a pool there is nothing that it could tell. */
        if (site->whole.pool != SITE_NO_POOL)
            site->pulse = span_of(pulse);
        init_internal(site, config);
        add_hosts(table, site);
    }
}

void site_table_done(struct site_table *table)
{
    for (uint32_t i = 0; i < table->size; i++) {
        struct site *site = &table->sites[i];

        done_place(&site->whole);
        for (uint32_t j = 0; j < site->route_size; j++)
            done_place(&site->routes[j]);
        free(site->routes);
        free(site->internal);
    }
    free(table->sites);
    map_done(&table->exact);
    map_done(&table->wildcards);
    *table = (struct site_table){0};
}

/* Walks ".b.example.com", ".example.com", ".com": the longest wildcard wins. */
static const struct site *find_wildcard(const struct site_table *table, struct span host)
{
    while (host.size) {
        struct site *site;

        host = span_skip(host, span_find(host, '.'));
        site = host.size ? map_find(&table->wildcards, host) : NULL;
        if (site)
            return site;
        host = span_skip(host, 1);
    }
    return NULL;
}

const struct site *site_find(const struct site_table *table, struct span host)
{
    const struct site *site;

    /* A fully qualified name may end in a dot (RFC 3986 3.2.2). */
    if (host.size && host.data[host.size - 1] == '.')
        host.size--;
    site = host.size && table->exact.size ? map_find(&table->exact, host) : NULL;
    if (!site && table->wildcards.size)
        site = find_wildcard(table, host);
    return site ? site : table->fallback;
}

/* How many bytes of a path as received make up a place's path; 0 when they do not. */
static size_t match(struct span path, struct span place)
{
    size_t at = 0;

    for (size_t i = 0; i < place.size; i++) {
        int byte = at < path.size ? (unsigned char)path.data[at] : -1;

        if (byte == '%' && at + 2 < path.size) {
            byte = ascii_hex(path.data[at + 1]) * 16 + ascii_hex(path.data[at + 2]);
            at += 2;
            if (byte == '/') /* a part of a name, not between two */
                return 0;
        }
        if (byte != (unsigned char)place.data[i])
            return 0;
        at++;
    }
    if (at < path.size && path.data[at] != '/')
        return 0;
    return at;
}

const struct site_place *site_find_place(const struct site *site, struct span path,
                                         size_t *ret_size)
{
    for (uint32_t i = 0; i < site->route_size; i++) {
        *ret_size = match(path, site->routes[i].path);
        if (*ret_size)
            return &site->routes[i];
    }
    *ret_size = 0;
    return &site->whole;
}

const struct site_internal *site_find_internal(const struct site *site, struct span path,
                                               struct span *ret_name)
{
    const struct site_internal *best = NULL;

    for (uint32_t i = 0; i < site->internal_size; i++) {
        const struct site_internal *internal = &site->internal[i];

        if (span_starts_with(path, span_skip(internal->prefix, 1)) &&
            (!best || internal->prefix.size > best->prefix.size))
            best = internal;
    }
    if (best)
        *ret_name = span_skip(path, best->prefix.size - 1);
    return best;
}

const struct site *site_find_pulse(const struct site_table *table, const struct site *first,
                                   struct span path)
{
    if (first && first->pulse.size && span_equal(first->pulse, path))
        return first;
    for (uint32_t i = 0; i < table->size; i++)
        if (table->sites[i].pulse.size && span_equal(table->sites[i].pulse, path))
            return &table->sites[i];
    return NULL;
}

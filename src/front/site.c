/* SPDX-License-Identifier: MIT */
#include "front/site.h"

#include "base/base.h"

#include <stdlib.h>

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

static void init_root(struct site *site, const struct config *config)
{
    const struct config_site *from = site->config;

    site->has_root = from->root != NULL;
    site->root = (struct static_root){
        .folder = from->root,
        .app = from->pool ? from->pool->app : NULL,
        .links = copy_strings(&from->links),
        .serve = copy_strings(&from->serve),
        .never = config->file,
        .directories = !from->pool,
        .page_query = from->page_cache_query,
    };
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
            .links = site->root.links,
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
    *table = (struct site_table){.size = config->site_size};
    table->sites = must_alloc(config->site_size + 1, sizeof(*table->sites));
    for (uint32_t i = 0; i < config->site_size; i++) {
        struct site *site = &table->sites[i];
        const char *pulse = config->sites[i].pulse ? config->sites[i].pulse : config->pulse;

        site->config = &config->sites[i];
        site->number = i;
        site->pool = site->config->pool ? find_pool(data, site->config->pool) : SITE_NO_POOL;
        /* Without a pool there is nothing that it could tell. */
        site->pulse = site->pool == SITE_NO_POOL ? (struct span){0} : span_of(pulse);
        init_root(site, config);
        init_internal(site, config);
        add_hosts(table, site);
    }
}

void site_table_done(struct site_table *table)
{
    for (uint32_t i = 0; i < table->size; i++) {
        free(table->sites[i].root.links);
        free(table->sites[i].root.serve);
        free(table->sites[i].internal);
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

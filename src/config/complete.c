/* SPDX-License-Identifier: MIT */
#include "config/complete.h"

#include "base/ascii.h"
#include "config/keep.h"
#include "config/origin.h"

static bool is_given(const struct config *config, const char *key)
{
    return origin_find(config, key);
}

/* Pools */

const char *complete_name(struct arena *arena, const char *app)
{
    struct span path = span_of(app), name;
    char *safe;

    if (span_ends_with(path, span_of("/current")))
        path = span_first(path, path.size - strlen("/current"));
    name = span_first(span_skip(path, span_find_last(path, '/') + 1), 32);
    if (!name.size || (path.size == 1 && path.data[0] == '/'))
        return "app";
    safe = keep_zero(arena, name.size + 1);
    for (size_t i = 0; i < name.size; i++)
        safe[i] = ascii_is(name.data[i], ASCII_ALPHA | ASCII_DIGIT) || strchr("-_.", name.data[i])
                      ? name.data[i]
                      : '_';
    return safe;
}

/* The file named on the command line wins over everything. */
static void take_named_rackup(struct bind *bind, const struct folder *folder)
{
    struct config_pool *pool = bind->config->pools[0];
    bool is_inside = strcmp(pool->app, folder->path) == 0;

    pool->rackup = is_inside
                       ? folder->rackup
                       : keep_printf(bind->types.arena, "%s/%s", folder->path, folder->rackup);
    origin_note_source(bind->config, bind_pool_key(bind, pool, "rackup"), "the command line");
}

static void complete_pool(struct bind *bind, struct config_pool *pool)
{
    if (!pool->name)
        pool->name = complete_name(bind->types.arena, pool->app);
    if (!pool->rackup && pool->kind == CONFIG_RACK)
        pool->rackup = folder_find_rackup(pool->app);
    if (!pool->user)
        pool->user = bind->config->user;
    if (!pool->group && pool->user == bind->config->user)
        pool->group = bind->config->group;
}

/* The pool that nobody described exists only when its folder holds an application. */
static bool is_imagined(const struct bind *bind)
{
    return !bind->has_pools && !bind->config->pools[0]->rackup && !is_given(bind->config, "app");
}

static void complete_pools(struct bind *bind, const struct folder *folder)
{
    struct config *config = bind->config;

    if (folder->rackup && config->pool_size == 1)
        take_named_rackup(bind, folder);
    else if (folder->rackup && config->pool_size > 1)
        faults_add(&config->warnings, NULL, 0, 0, NULL,
                   "%s has no effect: there are several pools, each with its own rackup file",
                   folder->rackup);
    for (uint32_t i = 0; i < config->pool_size; i++)
        complete_pool(bind, config->pools[i]);
    if (is_imagined(bind))
        config->pool_size = 0;
}

/* Sites */

static bool has_route_to(const struct config_site *site, const struct config_pool *pool)
{
    for (uint32_t i = 0; i < site->route_size; i++)
        if (site->routes[i].pool == pool)
            return true;
    return false;
}

/* Only a site with a root of its own can do without a pool, and only when others use the pool; or one
 * that says at which path the pool is found. */
static bool wants_the_pool(const struct bind *bind, const struct config_site *site, uint32_t index)
{
    const struct config *config = bind->config;

    if (site->pool || site->redirect || config->pool_size != 1 ||
        is_given(config, bind_site_key(bind, index, "pool")) ||
        has_route_to(site, config->pools[0]))
        return false;
    return !bind->has_sites || !site->root || (!bind->has_pools && config->site_size == 1);
}

static void complete_limits(const struct bind *bind, struct config_site *site, uint32_t index)
{
    uint64_t body = site->limits.body;
    bool own = bind->has_sites && is_given(bind->config, bind_site_key(bind, index, "limits.body"));

    site->limits = bind->config->limits;
    if (own)
        site->limits.body = body;
}

static const char *route_key(const struct bind *bind, uint32_t site, uint32_t route,
                             const char *name)
{
    return bind_site_key(bind, site, keep_printf(bind->types.arena, "routes[%u].%s", route, name));
}

static void complete_routes(struct bind *bind, struct config_site *site, uint32_t index)
{
    for (uint32_t i = 0; i < site->route_size; i++) {
        struct config_route *route = &site->routes[i];

        if (!route->root && route->pool &&
            !is_given(bind->config, route_key(bind, index, i, "root")))
            route->root = keep_printf(bind->types.arena, "%s/public", route->pool->app);
    }
}

static void complete_site(struct bind *bind, struct config_site *site, uint32_t index)
{
    if (wants_the_pool(bind, site, index))
        site->pool = bind->config->pools[0];
    if (!site->root && site->pool && !is_given(bind->config, bind_site_key(bind, index, "root")))
        site->root = keep_printf(bind->types.arena, "%s/public", site->pool->app);
    if (!site->pulse)
        site->pulse = bind->config->pulse;
    complete_routes(bind, site, index);
    complete_limits(bind, site, index);
    if (!bind->has_sites || !is_given(bind->config, bind_site_key(bind, index, "compress")))
        site->compress = bind->config->compress;
}

/* Where a pool is found: how many sites have it as a whole, and at which paths. */
struct places {
    uint32_t sites;
    bool has_several_paths;
    const char *path; /* or NULL */
};

static void add_path(struct places *places, const char *path)
{
    if (places->path && strcmp(places->path, path) != 0)
        places->has_several_paths = true;
    places->path = path;
}

static struct places find_places(const struct config *config, const struct config_pool *pool)
{
    struct places places = {0};

    for (uint32_t i = 0; i < config->site_size; i++) {
        const struct config_site *site = &config->sites[i];

        places.sites += site->pool == pool;
        for (uint32_t j = 0; j < site->route_size; j++)
            if (site->routes[j].pool == pool)
                add_path(&places, site->routes[j].path);
    }
    return places;
}

static bool is_used(const struct config *config, const struct config_pool *pool)
{
    struct places places = find_places(config, pool);

    return places.sites || places.path;
}

/* An application that is always below the same path may know it from the beginning. */
static void complete_mounts(const struct config *config)
{
    for (uint32_t i = 0; i < config->pool_size; i++) {
        struct places places = find_places(config, config->pools[i]);

        if (!places.sites && !places.has_several_paths)
            config->pools[i]->mount = places.path;
    }
}

/* A pool that nobody named and no site uses was only imagined, too. */
static void drop_unused_pools(struct bind *bind)
{
    struct config *config = bind->config;

    if (!bind->has_pools && config->pool_size && !is_used(config, config->pools[0]))
        config->pool_size = 0;
    for (uint32_t i = 0; i < config->pool_size; i++)
        if (!is_used(config, config->pools[i]))
            faults_add(&config->warnings, NULL, 0, 0, "pools", "no site uses the pool %s",
                       config->pools[i]->name);
}

static void complain_of_nothing(struct bind *bind, const struct folder *folder)
{
    if (!folder_has_folder(folder->path, "."))
        faults_add(bind->faults, NULL, 0, 0, NULL, "there is no folder %s", folder->path);
    else
        faults_add(bind->faults, NULL, 0, 0, NULL,
                   "nothing to serve in %s: looked for config.ru, config/environment.rb, public/, "
                   "and index.html without Gemfile, Rakefile and config/",
                   folder->path);
}

void complete_edition(struct bind *bind, const struct folder *folder)
{
    struct config *config = bind->config;

    complete_pools(bind, folder);
    for (uint32_t i = 0; i < config->site_size; i++)
        complete_site(bind, &config->sites[i], i);
    complete_mounts(config);
    if (bind->has_sites) {
        drop_unused_pools(bind);
        return;
    }
    if (!config->pool_size && !config->sites[0].root)
        config->sites[0].root = folder_find_static(bind->types.arena, folder->path);
    if (config->pool_size || config->sites[0].root)
        return;
    if (!bind->has_pools || !bind->faults->size) /* pools that are wrong are said already */
        complain_of_nothing(bind, folder);
}

/* SPDX-License-Identifier: MIT */
#include "config/verify.h"

#include "base/ascii.h"
#include "base/num.h"
#include "config/allocator.h"
#include "config/folder.h"
#include "config/keep.h"
#include "config/origin.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Workers * threads that a board can number. */
enum { SLOT_OWNERS_MAX = 16384 };

#define COMPLAIN(bind, key, ...) origin_fault((bind)->config, (bind)->faults, key, __VA_ARGS__)

static bool is_number(const char *text)
{
    return ascii_all(span_of(text), ASCII_DIGIT);
}

static void verify_user(const struct bind *bind, const char *key, const char *user)
{
    if (user && !is_number(user) && !getpwnam(user))
        COMPLAIN(bind, key, "there is no user \"%s\"", user);
}

static void verify_group(const struct bind *bind, const char *key, const char *group)
{
    if (group && !is_number(group) && !getgrnam(group))
        COMPLAIN(bind, key, "there is no group \"%s\"", group);
}

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

/* Server */

static void verify_limits(const struct bind *bind)
{
    const struct config_limits *limits = &bind->config->limits;

    if (limits->target > limits->header)
        COMPLAIN(bind, "limits.target", "larger than limits.header, of which it is a part");
    if (limits->field > limits->header)
        COMPLAIN(bind, "limits.field", "larger than limits.header, of which it is a part");
    if (limits->spool && limits->body > limits->spool)
        COMPLAIN(bind, "limits.body", "larger than limits.spool, which must hold it");
}

static void verify_listeners(const struct bind *bind)
{
    const struct config *config = bind->config;

    for (uint32_t i = 0; i < config->listener_size; i++) {
        verify_user(bind, "listen", config->listeners[i].user);
        verify_group(bind, "listen", config->listeners[i].group);
        if (config->admin && strcmp(config->admin, config->listeners[i].address) == 0)
            COMPLAIN(bind, "admin", "%s is one of the addresses in listen", config->admin);
    }
}

static void verify_environment(const struct bind *bind)
{
    if (strchr(bind->config->environment, '/'))
        COMPLAIN(bind, "environment", "\"%s\" is no name", bind->config->environment);
}

/* Pools */

static void verify_files(const struct bind *bind, const struct config_pool *pool)
{
    const char *rackup = pool->rackup;

    if (!is_folder(pool->app)) {
        COMPLAIN(bind, bind_pool_key(bind, pool, "app"), "there is no folder %s", pool->app);
        return;
    }
    if (!rackup) {
        COMPLAIN(bind, bind_pool_key(bind, pool, "app"),
                 "no application in %s: looked for config.ru and config/environment.rb", pool->app);
        return;
    }
    if (rackup[0] != '/')
        rackup = keep_printf(bind->types.arena, "%s/%s", pool->app, rackup);
    if (!is_file(rackup))
        COMPLAIN(bind, bind_pool_key(bind, pool, "rackup"), "there is no file %s", rackup);
}

static void verify_ruby(const struct bind *bind, const struct config_pool *pool)
{
    const char *key = bind_pool_key(bind, pool, "ruby");

    if (pool->ruby && strchr(pool->ruby, '/') && access(pool->ruby, X_OK) == -1)
        COMPLAIN(bind, key, "cannot run %s: %s", pool->ruby, strerror(errno));
}

static void verify_size(const struct bind *bind, const struct config_pool *pool)
{
    if (pool->workers_max != CONFIG_AUTO &&
        (uint64_t)pool->workers_max * pool->threads > SLOT_OWNERS_MAX)
        COMPLAIN(bind, bind_pool_key(bind, pool, "threads"),
                 "%u workers of %u threads are more than %d threads", pool->workers_max,
                 pool->threads, SLOT_OWNERS_MAX);
    if (pool->memory && pool->memory_total && pool->memory > pool->memory_total)
        COMPLAIN(bind, bind_pool_key(bind, pool, "memory"),
                 "one worker may take more than memory_total allows the pool");
}

static void verify_malloc(const struct bind *bind, const struct config_pool *pool)
{
    const struct config_malloc *settings = &pool->malloc;

    if (settings->allocator != CONFIG_ALLOCATOR_JEMALLOC)
        return;
    if (settings->arenas)
        COMPLAIN(bind, bind_pool_key(bind, pool, "malloc"),
                 "jemalloc chooses its arenas itself; leave them out, or see MALLOC_CONF");
    else if (!allocator_find())
        COMPLAIN(bind, bind_pool_key(bind, pool, "malloc"), "%s", allocator_missing());
}

/* What is not there yet was named already; the gap that it leaves is no further mistake. */
static bool is_later_pool(const struct bind *bind, const struct config_pool *pool)
{
    return origin_find(bind->config, bind_pool_key(bind, pool, "fastcgi")) ||
           origin_find(bind->config, bind_pool_key(bind, pool, "http"));
}

static bool has_fault(const struct bind *bind, const char *key)
{
    for (size_t i = 0; i < bind->faults->size; i++)
        if (bind->faults->items[i].key && strcmp(bind->faults->items[i].key, key) == 0)
            return true;
    return false;
}

static bool is_explained_site(const struct bind *bind, uint32_t index)
{
    return has_fault(bind, bind_site_key(bind, index, "pool")) ||
           bind->config->sites[index].redirect || bind->config->sites[index].route_size ||
           has_fault(bind, bind_site_key(bind, index, "redirect")) ||
           has_fault(bind, bind_site_key(bind, index, "routes")) ||
           origin_find(bind->config, bind_site_key(bind, index, "apps"));
}

static void verify_pool(const struct bind *bind, const struct config_pool *pool)
{
    if (!is_later_pool(bind, pool))
        verify_files(bind, pool);
    verify_ruby(bind, pool);
    verify_size(bind, pool);
    verify_malloc(bind, pool);
    if (pool->env_file && access(pool->env_file, R_OK) == -1)
        COMPLAIN(bind, bind_pool_key(bind, pool, "env_file"), "cannot read %s: %s", pool->env_file,
                 strerror(errno));
    if (pool->user != bind->config->user)
        verify_user(bind, bind_pool_key(bind, pool, "user"), pool->user);
    if (pool->group != bind->config->group)
        verify_group(bind, bind_pool_key(bind, pool, "group"), pool->group);
}

/* Sites */

/* Which of several pools answers what is nothing to guess. */
static void verify_choice(const struct bind *bind)
{
    const struct config *config = bind->config;

    if (config->pool_size < 2 || bind->has_sites)
        return;
    COMPLAIN(bind, keep_printf(bind->types.arena, "pools.%s", config->pools[1]->name),
             "two or more pools need sites, which say what each of them answers");
}

static bool has_host(const struct config_site *site, const char *host)
{
    for (uint32_t i = 0; i < site->hosts.size; i++)
        if (strcmp(site->hosts.items[i], host) == 0)
            return true;
    return false;
}

/* A host that an earlier site has already would never reach this one. */
static void verify_hosts(const struct bind *bind, uint32_t index)
{
    const struct config *config = bind->config;
    const struct config_site *site = &config->sites[index];
    const char *key = bind_site_key(bind, index, "host");

    for (uint32_t i = 0; i < index; i++) {
        for (uint32_t j = 0; j < site->hosts.size; j++)
            if (has_host(&config->sites[i], site->hosts.items[j]))
                COMPLAIN(bind, key, "sites[%u] has the host %s already", i, site->hosts.items[j]);
        if (!site->hosts.size && !config->sites[i].hosts.size)
            COMPLAIN(bind, keep_printf(bind->types.arena, "sites[%u]", index),
                     "sites[%u] answers every other host already; this one needs a host", i);
    }
}

/* Whether the site's files are those of the application itself: its code, its keys, its database. */
static bool is_root_of_app(const struct config_site *site)
{
    struct stat root, app;

    return site->pool && site->pool->app && stat(site->root, &root) == 0 &&
           stat(site->pool->app, &app) == 0 && root.st_dev == app.st_dev &&
           root.st_ino == app.st_ino;
}

static void verify_site(const struct bind *bind, uint32_t index)
{
    const struct config_site *site = &bind->config->sites[index];
    const char *key = bind_site_key(bind, index, "root");

    verify_hosts(bind, index);
    if (bind->has_sites && !site->root && !site->pool && !is_explained_site(bind, index))
        COMPLAIN(bind, keep_printf(bind->types.arena, "sites[%u]", index),
                 "a site needs a root or a pool");
    if (site->root && origin_find(bind->config, key) && !is_folder(site->root))
        COMPLAIN(bind, key, "there is no folder %s", site->root);
    else if (site->root && is_root_of_app(site))
        COMPLAIN(bind, key,
                 "%s is the folder of the application itself, with its code and settings; "
                 "name the folder of its public files",
                 site->root);
}

static void verify_route(const struct bind *bind, uint32_t index, uint32_t number)
{
    const struct config_site *site = &bind->config->sites[index];
    const struct config_route *route = &site->routes[number];
    const char *key =
        bind_site_key(bind, index, keep_printf(bind->types.arena, "routes[%u]", number));
    const char *root = keep_printf(bind->types.arena, "%s.root", key);

    for (uint32_t i = 0; i < number; i++)
        if (strcmp(site->routes[i].path, route->path) == 0)
            COMPLAIN(bind, key, "routes[%u] has the path %s already", i, route->path);
    if (!route->root && !route->pool &&
        !has_fault(bind, keep_printf(bind->types.arena, "%s.pool", key)))
        COMPLAIN(bind, key, "a route needs a root or a pool");
    if (route->root && origin_find(bind->config, root) && !is_folder(route->root))
        COMPLAIN(bind, root, "there is no folder %s", route->root);
}

static void verify_routes(const struct bind *bind, uint32_t index)
{
    const struct config_site *site = &bind->config->sites[index];

    if (site->redirect && (site->pool || site->root || site->route_size))
        COMPLAIN(bind, bind_site_key(bind, index, "redirect"),
                 "everything is redirected, so that nothing else of this site is ever reached");
    for (uint32_t i = 0; i < site->route_size; i++)
        verify_route(bind, index, i);
}

static void verify_internal(const struct bind *bind, uint32_t index)
{
    const struct config_site *site = &bind->config->sites[index];

    for (uint32_t i = 0; i < site->internal_size; i++)
        if (!is_folder(site->internal[i].folder))
            COMPLAIN(bind, bind_site_key(bind, index, "internal"), "%s: there is no folder %s",
                     site->internal[i].prefix, site->internal[i].folder);
}

void verify_edition(const struct bind *bind)
{
    const struct config *config = bind->config;

    verify_environment(bind);
    verify_user(bind, "user", config->user);
    verify_group(bind, "group", config->group);
    verify_limits(bind);
    verify_listeners(bind);
    for (uint32_t i = 0; i < config->pool_size; i++)
        verify_pool(bind, config->pools[i]);
    verify_choice(bind);
    for (uint32_t i = 0; i < config->site_size; i++) {
        verify_site(bind, i);
        verify_routes(bind, i);
        verify_internal(bind, i);
    }
}

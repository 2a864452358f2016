/* SPDX-License-Identifier: MIT */
#include "config/shape.h"

#include "base/buf.h"
#include "config/keep.h"
#include "config/origin.h"

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

const char *shape_log(const struct config *config, const struct config_pool *pool)
{
    if (pool->log)
        return pool->log;
    return config->log && *config->log == '/' ? config->log : NULL;
}

static bool is_same_environment(const struct config_pool *a, const struct config_pool *b)
{
    if (a->env_size != b->env_size)
        return false;
    for (uint32_t i = 0; i < a->env_size; i++)
        if (!is_same_text(a->env[i].name, b->env[i].name) ||
            !is_same_text(a->env[i].value, b->env[i].value))
            return false;
    return is_same_text(a->env_file, b->env_file);
}

/* What all pools' processes are told, and what their boards are made from. */
static bool is_same_server(const struct config *a, const struct config *b)
{
    return a->development == b->development && a->verbose == b->verbose && a->loops == b->loops &&
           is_same_text(a->environment, b->environment) && a->limits.target == b->limits.target &&
           a->limits.header == b->limits.header && a->limits.headers == b->limits.headers &&
           a->timeouts.stream_drain_ms == b->timeouts.stream_drain_ms;
}

static bool is_same_program(const struct config_pool *a, const struct config_pool *b)
{
    return a->kind == b->kind && is_same_text(a->app, b->app) &&
           is_same_text(a->rackup, b->rackup) && is_same_text(a->ruby, b->ruby) &&
           is_same_text(a->user, b->user) && is_same_text(a->group, b->group) &&
           a->umask == b->umask && a->preload == b->preload &&
           a->malloc.allocator == b->malloc.allocator && a->malloc.arenas == b->malloc.arenas;
}

bool shape_is_same(const struct config *config, const struct config_pool *pool,
                   const struct config *other, const struct config_pool *other_pool)
{
    return is_same_server(config, other) && is_same_program(pool, other_pool) &&
           is_same_environment(pool, other_pool) &&
           is_same_text(shape_log(config, pool), shape_log(other, other_pool)) &&
           pool->workers_max == other_pool->workers_max && pool->threads == other_pool->threads &&
           pool->queue_length == other_pool->queue_length;
}

/* A text of the server that stays as it was. */
struct fixed {
    const char *key;
    const char **fresh;
    const char *former;
};

static bool is_meant(const struct config *fresh, const struct config *former, const char *key)
{
    return origin_find(fresh, key) || origin_find(former, key);
}

/* Pools that have the server's user follow it. */
static void rename_in_pools(struct config *fresh, const char *from_user, const char *from_group)
{
    for (uint32_t i = 0; i < fresh->pool_size; i++) {
        struct config_pool *pool = fresh->pools[i];

        if (pool->user != from_user)
            continue;
        pool->user = fresh->user;
        if (pool->group == from_group)
            pool->group = fresh->group;
    }
}

void shape_keep_fixed(struct config *fresh, const struct config *former)
{
    const char *user = fresh->user, *group = fresh->group;
    const struct fixed table[] = {
        {"user", &fresh->user, former->user},
        {"group", &fresh->group, former->group},
        {"pid", &fresh->pid, former->pid},
        {"control", &fresh->control, former->control},
    };
    const char *tried = NULL;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (is_same_text(*table[i].fresh, table[i].former))
            continue;
        if (is_meant(fresh, former, table[i].key))
            tried = keep_printf(&fresh->arena, "%s%s%s", tried ? tried : "", tried ? ", " : "",
                                table[i].key);
        *table[i].fresh =
            table[i].former ? keep_text(&fresh->arena, span_of(table[i].former)) : NULL;
    }
    rename_in_pools(fresh, user, group);
    fresh->pid_named = former->pid_named;
    if (tried)
        faults_add(&fresh->warnings, NULL, 0, 0, tried,
                   "a running server keeps it; stop and start it for that");
}

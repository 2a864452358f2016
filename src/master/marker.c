/* SPDX-License-Identifier: MIT */
#include "master/marker.h"

#include "base/log.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { LOOK_MS = 2000 };

/* Through the folder as given, so that a deploy's new release counts. */
static uint64_t read_marker(const struct master_pool *pool)
{
    char path[PATH_MAX];
    struct stat info;

    (void)snprintf(path, sizeof path, "%s/tmp/restart.txt", pool->pool->settings->app);
    if (stat(path, &info) == -1)
        return 0;
    return (uint64_t)info.st_mtim.tv_sec * 1000000000 + (uint64_t)info.st_mtim.tv_nsec;
}

static void look(struct master_pool *pool)
{
    uint64_t marker = read_marker(pool);

    if (marker == pool->marker)
        return;
    pool->marker = marker;
    if (marker == 0)
        return;
    log_info("pool=%s tmp/restart.txt was touched", pool->pool->settings->name);
    (void)pool_restart(pool->pool);
}

/* Once after the last requests; an idle server does nothing here. */
static void tidy(struct master *master)
{
    for (uint32_t i = 0; i < master->pool_size && !master->is_tidy; i++)
        pool_tidy(master->pools[i]->pool);
    master->is_tidy = true;
}

static void on_tick(struct timer *timer)
{
    struct master *master = CONTAINER_OF(timer, struct master, tick);
    uint64_t requests = atomic_load_explicit(&master->counters->requests, memory_order_relaxed);

    if (master->phase != MASTER_RUNNING && master->phase != MASTER_STARTING)
        return;
    timer_set(master->loop, &master->tick, LOOK_MS, on_tick);
    if (requests == master->ticked_requests) {
        tidy(master);
        return;
    }
    master->ticked_requests = requests;
    master->is_tidy = false;
    for (uint32_t i = 0; i < master->pool_size && master->phase == MASTER_RUNNING; i++)
        look(master->pools[i]);
}

void marker_note(struct master_pool *pool)
{
    pool->marker = read_marker(pool);
}

void marker_start(struct master *master)
{
    if (master->pool_size)
        timer_set(master->loop, &master->tick, LOOK_MS, on_tick);
}

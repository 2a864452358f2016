/* SPDX-License-Identifier: MIT */
/*
 * A master with one pool and one front that exist in words only: what it does to them is recorded.
 * Included after the source under test.
 */
#pragma once

#include "base/log.h"
#include "master/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
    struct master master;
    struct config config;
    struct config_pool settings;
    struct pool pool;
    struct master_pool master_pool;
    struct master_pool *pools[2];
};

static inline void world_open(struct world *world)
{
    struct board_shape shape = {8, 2, 1, 1, 8192};

    log_to(-1);
    memset(world, 0, sizeof *world);
    world->config.timeouts.drain_ms = 5000;
    world->config.folder = "/srv/shop";
    world->config.environment = "production";
    world->settings.name = "shop";
    world->pool.settings = &world->settings;
    world->pool.state = POOL_UP;
    assert_true((world->pool.instance.board_fd =
                     board_make(&shape, "/run/test/1-0", &world->pool.instance.board)) >= 0);
    world->master = (struct master){.config = &world->config,
                                    .loop = loop_new(),
                                    .phase = MASTER_RUNNING,
                                    .outcome_pipe = -1,
                                    .notify_fd = -1,
                                    .counters = must_alloc(1, sizeof *world->master.counters),
                                    .pools = world->pools,
                                    .pool_size = 1};
    world->master_pool = (struct master_pool){.master = &world->master, .pool = &world->pool};
    world->pools[0] = &world->master_pool;
    list_init(&world->master.instances);
    list_init(&world->master_pool.link);
    list_push_back(&world->master.instances, &world->master_pool.link);
    list_init(&world->master.waiters);
    list_init(&world->master.stop_calls);
    list_init(&world->master.upgrade_calls);
    list_init(&world->master.strays);
    list_init(&world->master.backtraces);
    list_init(&world->master.inquiries);
}

static inline void world_close(struct world *world)
{
    board_unmap(&world->pool.instance.board);
    (void)close(world->pool.instance.board_fd);
    loop_free(world->master.loop);
    free(world->master.counters);
}

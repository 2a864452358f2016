/* SPDX-License-Identifier: MIT */
#include "master/edition.h"

#include "base/fd.h"
#include "base/log.h"
#include "master/instances.h"
#include "master/listeners.h"

#include <stdlib.h>
#include <string.h>

/* The bells of all fronts' loops travel to a mold in one message. */
static uint32_t choose_loops(const struct config *config)
{
    uint32_t wanted = config->loops ? config->loops : 1;

    if (wanted <= INSTANCE_LOOPS_MAX)
        return wanted;
    log_warn("loops: %u are more than fit; %u are used", wanted, (unsigned)INSTANCE_LOOPS_MAX);
    return INSTANCE_LOOPS_MAX;
}

struct edition *edition_new(struct master *master, struct config *config)
{
    struct edition *edition = must_alloc(1, sizeof *edition);
    struct edition_config *held = must_alloc(1, sizeof *held);

    *held = (struct edition_config){.refs = 1, .config = config};
    *edition = (struct edition){.master = master,
                                .refs = 1,
                                .held = held,
                                .config = config,
                                .loops = choose_loops(config),
                                .log_fd = -1,
                                .access_log_fd = -1,
                                .admin_listener = -1};
    edition->pools = must_alloc(config->pool_size + 1, sizeof *edition->pools);
    return edition;
}

struct edition_config *edition_hold_config(struct edition_config *held)
{
    held->refs++;
    return held;
}

void edition_release_config(struct edition_config *held)
{
    if (--held->refs > 0)
        return;
    config_free(held->config);
    free(held);
}

struct edition *edition_new_former(const struct edition *present)
{
    struct edition *edition = must_alloc(1, sizeof *edition);

    *edition = (struct edition){.master = present->master,
                                .refs = 1,
                                .held = edition_hold_config(present->held),
                                .config = present->config,
                                .loops = present->loops,
                                .log_fd = -1,
                                .access_log_fd = -1,
                                .admin_listener = -1};
    return edition;
}

void edition_add_pool(struct edition *edition, struct master_pool *pool)
{
    edition->pools =
        must_resize(edition->pools, (edition->pool_size + 1) * sizeof(struct master_pool *));
    edition->pools[edition->pool_size++] = pool;
}

void edition_add_listener(struct edition *edition, struct master_listener *listener)
{
    listener->refs++;
    edition->listeners = must_resize(edition->listeners, (edition->listener_size + 1) *
                                                             sizeof(struct master_listener *));
    edition->listeners[edition->listener_size++] = listener;
}

struct edition *edition_ref(struct edition *edition)
{
    edition->refs++;
    return edition;
}

void edition_unref(struct edition *edition)
{
    if (!edition || --edition->refs > 0)
        return;
    for (uint32_t i = 0; i < edition->pool_size; i++)
        instances_unref(edition->pools[i]);
    for (uint32_t i = 0; i < edition->listener_size; i++)
        listeners_unref(edition->listeners[i]);
    fd_close(&edition->log_fd);
    fd_close(&edition->access_log_fd);
    free(edition->listeners);
    free(edition->front_listeners);
    free(edition->pools);
    free(edition->front_pools);
    free(edition->site_places);
    edition_release_config(edition->held);
    free(edition);
}

void edition_forget_names(struct master_names *names)
{
    for (uint32_t i = 0; i < names->size; i++)
        free(names->items[i]);
    free(names->items);
}

void edition_set(struct master *master, struct edition *edition)
{
    struct edition *former = master->edition;

    edition->number = former ? former->number + 1 : 1;
    master->edition = edition_ref(edition);
    master->config = edition->config;
    master->pools = edition->pools;
    master->pool_size = edition->pool_size;
    budget_limit(&master->budget, edition->config->memory_total);
    edition_unref(former);
}

static uint32_t find_place(struct master_names *names, const char *name)
{
    for (uint32_t i = 0; i < names->size; i++)
        if (strcmp(names->items[i], name) == 0)
            return i;
    names->items = must_resize(names->items, (names->size + 1) * sizeof *names->items);
    names->items[names->size] = must_copy(name);
    return names->size++;
}

/* Sites are told apart by first host and pool, as in the metrics. */
static uint32_t find_site_place(struct master_names *names, const struct config_site *site)
{
    struct buf key = {.size = 0};
    uint32_t place;

    CHECK(buf_printf(&key, "%s %s", site->hosts.size ? site->hosts.items[0] : "",
                     site->pool ? site->pool->name : "") == 0);
    CHECK(buf_append_byte(&key, '\0') == 0);
    place = find_place(names, buf_span(&key).data);
    buf_done(&key);
    return place;
}

static void place_sites(struct edition *edition)
{
    const struct config *config = edition->config;

    edition->site_places = must_alloc(config->site_size + 1, sizeof *edition->site_places);
    for (uint32_t i = 0; i < config->site_size; i++)
        edition->site_places[i] =
            find_site_place(&edition->master->counted_sites, &config->sites[i]);
}

void edition_finish(struct edition *edition)
{
    edition->front_pools = must_alloc(edition->pool_size + 1, sizeof *edition->front_pools);
    for (uint32_t i = 0; i < edition->pool_size; i++) {
        struct master_pool *mine = edition->pools[i];
        mine->counted =
            find_place(&edition->master->counted_pools, edition->config->pools[i]->name);
        edition->front_pools[i] = (struct front_pool){.config = edition->config->pools[i],
                                                      .board = &mine->pool->instance.board,
                                                      .place = mine->counted};
        instances_count(mine);
    }
    place_sites(edition);
}

int64_t edition_find_pool(const struct edition *edition, const struct master_pool *pool)
{
    for (uint32_t i = 0; i < edition->pool_size; i++)
        if (edition->pools[i] == pool)
            return i;
    return -1;
}

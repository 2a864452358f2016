/* SPDX-License-Identifier: MIT */
#include "front/former.h"

#include "base/base.h"
#include "front/process.h"
#include "front/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A root that was made for a release. */
struct made {
    struct list link;
    struct static_root root;
    char *app;
    char *folder;
};

/* What a loop is told. */
struct notice {
    struct post_item item;
    struct front_loop *loop;
    struct front_message message;
};

void former_init(struct front_loop *loop)
{
    uint32_t size = loop->front->sites.size;

    loop->formers = must_alloc(size + 1, sizeof(*loop->formers));
    for (uint32_t i = 0; i < size; i++)
        list_init(&loop->formers[i].made);
}

static void free_made(struct former *former)
{
    list_for_each_safe (link, &former->made) {
        struct made *made = CONTAINER_OF(link, struct made, link);

        free(made->app);
        free(made->folder);
        free(made);
    }
}

void former_done(struct front_loop *loop)
{
    if (!loop->formers)
        return;
    for (uint32_t i = 0; i < loop->front->sites.size; i++)
        free_made(&loop->formers[i]);
    free(loop->formers);
}

/* What follows the application's folder in the site's root; data NULL when it lies elsewhere. */
static struct span way_from_app(const struct site *site)
{
    struct span app, folder;

    if (!site->whole.has_root || !site->whole.root.app)
        return (struct span){0};
    app = span_of(site->whole.root.app);
    folder = span_of(site->whole.root.folder);
    if (!span_starts_with(folder, app) || folder.size == app.size || folder.data[app.size] != '/')
        return (struct span){0};
    return span_skip(folder, app.size);
}

static const struct static_root *find_made(const struct former *former, const char *release)
{
    list_for_each (link, &former->made) {
        const struct made *made = CONTAINER_OF(link, struct made, link);

        if (strcmp(made->app, release) == 0)
            return &made->root;
    }
    return NULL;
}

static const struct static_root *make(struct former *former, const struct site *site,
                                      const char *release, struct span way)
{
    struct made *made = must_alloc(1, sizeof(*made));
    size_t size = strlen(release) + way.size + 1;

    made->root = site->whole.root;
    made->app = must_alloc(1, strlen(release) + 1);
    made->folder = must_alloc(1, size);
    memcpy(made->app, release, strlen(release) + 1);
    (void)snprintf(made->folder, size, "%s%.*s", release, SPAN_ARG(way));
    made->root.app = made->app;
    made->root.folder = made->folder;
    list_init(&made->link);
    list_push_back(&former->made, &made->link);
    return &made->root;
}

static void set(struct front_loop *loop, const struct site *site,
                const struct front_message *message)
{
    struct former *former = &loop->formers[site->number];
    struct span way = way_from_app(site);
    const struct static_root **place = &former->roots[message->number];
    const struct static_root *before = *place;

    if (!way.data)
        return;
    *place = message->text[0] ? find_made(former, message->text) : NULL;
    if (message->text[0] && !*place)
        *place = make(former, site, message->text, way);
    if (before && before != *place)
        static_close_root(loop->cache, before);
}

static void take(struct post_item *item)
{
    struct notice *notice = CONTAINER_OF(item, struct notice, item);
    const struct site_table *sites = &notice->loop->front->sites;

    for (uint32_t i = 0; i < sites->size; i++)
        if (sites->sites[i].whole.pool == notice->message.pool)
            set(notice->loop, &sites->sites[i], &notice->message);
    free(notice);
}

void former_take(struct front *front, const struct front_message *message)
{
    if (message->number >= FRONT_RELEASES)
        return;
    for (uint32_t i = 0; i < front->options->loops; i++) {
        struct notice *notice = must_alloc(1, sizeof(*notice));

        *notice =
            (struct notice){.item = {.run = take}, .loop = front->loops[i], .message = *message};
        post_send(front->posts[i], &notice->item);
    }
}

/* ---- Looking ---- */

void former_find(struct exchange *exchange)
{
    const struct front_loop *loop = exchange->service_data;
    const struct site *site = exchange->site;
    const struct former *former = &loop->formers[site->number];

    while (exchange->former < FRONT_RELEASES) {
        const struct static_root *root = former->roots[exchange->former++];

        if (root && !static_is_same_folder(loop->cache, root, &site->whole.root)) {
            static_find_named(exchange, loop->cache, root, former_find);
            return;
        }
    }
    serve_no_file(exchange);
}

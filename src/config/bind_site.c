/* SPDX-License-Identifier: MIT */
#include "config/bind_value.h"

#include "config/keep.h"
#include "config/origin.h"

/* With a slash at both ends, so that no other name begins with it. */
static const char *read_prefix(const struct bind *bind, struct span text)
{
    bool has_end = text.size && text.data[text.size - 1] == '/';

    if (!text.size || text.data[0] != '/' || text.size == 1)
        return NULL;
    return keep_printf(bind->types.arena, "%.*s%s", SPAN_ARG(text), has_end ? "" : "/");
}

static void bind_prefix(struct bind *bind, struct config_site *site, const struct yaml *key,
                        const struct yaml *folder, const char *path)
{
    const char *prefix = read_prefix(bind, key->text);

    if (!prefix) {
        bind_complain(bind, key, path, "expected a path that begins with / and names a folder");
        return;
    }
    if (folder->kind != YAML_TEXT || yaml_is_empty(folder)) {
        bind_complain(bind, folder, path, "expected a folder");
        return;
    }
    site->internal = keep_grow(bind->types.arena, site->internal, site->internal_size,
                               sizeof(site->internal[0]));
    site->internal[site->internal_size++] =
        (struct config_prefix){prefix, type_path(&bind->types, folder->text)};
}

void bind_site_prefixes(struct bind *bind, const struct value *value)
{
    struct config_site *site = CONTAINER_OF(value->member, struct config_site, internal);
    const struct yaml *map = value->node;

    if (map->kind != YAML_MAP) {
        bind_complain_of_type(bind, value);
        return;
    }
    bind_note(bind, value);
    for (size_t i = 0; i < map->size; i++)
        bind_prefix(bind, site, map->keys[i], map->items[i],
                    bind_child_path(bind, value->path, map->keys[i]->text));
}

/* Without a slash at its end: `/blog/` is `/blog`. The whole site is no route. */
static bool fix_route(struct bind *bind, struct config_route *route)
{
    struct span path = route->path ? span_of(route->path) : (struct span){0};

    while (path.size && path.data[path.size - 1] == '/')
        path.size--;
    route->path = keep_text(bind->types.arena, path);
    return path.size > 0;
}

static void bind_route(struct bind *bind, struct config_site *site, const struct yaml *node,
                       const char *path)
{
    struct config_route route = {0};

    if (node->kind != YAML_MAP) {
        bind_complain(bind, node, path, "expected a map");
        return;
    }
    origin_note_place(bind->config, path, bind->file, node->line, node->column);
    bind_defaults(bind, SECTION_ROUTE, &route);
    bind_map(bind, node, path, &(struct target){SECTION_ROUTE, &route}, 1);
    if (!fix_route(bind, &route)) {
        bind_complain(bind, node, path, "a route needs a path such as /blog");
        return;
    }
    site->routes = keep_grow(bind->types.arena, site->routes, site->route_size, sizeof(route));
    site->routes[site->route_size++] = route;
}

void bind_site_routes(struct bind *bind, const struct value *value)
{
    struct config_site *site = CONTAINER_OF(value->member, struct config_site, routes);
    size_t size;
    const struct yaml *const *items = bind_items(&value->node, &size);

    bind_note(bind, value);
    for (size_t i = 0; i < size; i++)
        bind_route(bind, site, items[i], bind_item_path(bind, value->path, i));
}

static bool is_redirect_status(uint32_t status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* An address alone, or a map with a status. */
void bind_site_redirect(struct bind *bind, const struct value *value)
{
    struct config_site *site = CONTAINER_OF(value->member, struct config_site, redirect);
    struct value inside = *value;

    inside.member = site;
    bind_defaults(bind, SECTION_REDIRECT, site);
    bind_short(bind, &inside, SECTION_REDIRECT, "to");
    bind_note(bind, value);
    if (!is_redirect_status(site->redirect_status))
        bind_complain(bind, value->node, value->path,
                      "expected the status 301, 302, 303, 307 or 308");
    if (!site->redirect || !strstr(site->redirect, "://"))
        bind_complain(bind, value->node, value->path,
                      "expected an address such as https://example.com");
}

struct config_site *bind_site_new(struct bind *bind)
{
    struct config *config = bind->config;
    struct config_site *site;

    config->sites =
        keep_grow(bind->types.arena, config->sites, config->site_size, sizeof(config->sites[0]));
    site = &config->sites[config->site_size++];
    bind_defaults(bind, SECTION_SITE, site);
    return site;
}

void bind_sites(struct bind *bind, const struct value *value)
{
    size_t size;
    const struct yaml *const *items = bind_items(&value->node, &size);

    for (size_t i = 0; i < size; i++) {
        const char *path = bind_item_path(bind, value->path, i);
        struct config_site *site = bind_site_new(bind);

        origin_note_place(bind->config, path, bind->file, items[i]->line, items[i]->column);
        if (items[i]->kind == YAML_MAP)
            bind_map(bind, items[i], path, &(struct target){SECTION_SITE, site}, 1);
        else
            bind_complain(bind, items[i], path, "expected a map");
    }
}

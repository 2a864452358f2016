/* SPDX-License-Identifier: MIT */
#include "config/bind.h"

#include "base/ascii.h"
#include "config/bind_value.h"
#include "config/keep.h"
#include "config/origin.h"

#include <limits.h>

void bind_complain(const struct bind *bind, const struct yaml *node, const char *path,
                   const char *reason)
{
    faults_add(bind->faults, bind->file, node->line, node->column, path, "%s", reason);
}

void bind_complain_of_type(const struct bind *bind, const struct value *value)
{
    bind_complain(
        bind, value->node, value->path,
        keep_printf(bind->types.arena, "expected %s", type_expects(value->directive->type)));
}

const char *bind_child_path(const struct bind *bind, const char *prefix, struct span name)
{
    if (!prefix)
        return keep_text(bind->types.arena, name);
    return keep_printf(bind->types.arena, "%s.%.*s", prefix, SPAN_ARG(name));
}

const char *bind_item_path(const struct bind *bind, const char *path, size_t index)
{
    return keep_printf(bind->types.arena, "%s[%zu]", path, index);
}

void bind_note(const struct bind *bind, const struct value *value)
{
    const struct yaml *place = value->key ? value->key : value->node;

    origin_note_place(bind->config, value->path, bind->file, place->line, place->column);
}

void bind_scalar(struct bind *bind, const struct value *value)
{
    const char *reason;

    if (value->node->kind != YAML_TEXT) {
        bind_complain_of_type(bind, value);
        return;
    }
    reason = type_read(&bind->types, value->directive, value->node->text, value->member);
    if (reason)
        bind_complain(bind, value->node, value->path, reason);
    else
        bind_note(bind, value);
}

/* The items of a value that may be a list or a single one. */
const struct yaml *const *bind_items(const struct yaml *const *node, size_t *ret_size)
{
    if ((*node)->kind != YAML_LIST) {
        *ret_size = 1;
        return node;
    }
    *ret_size = (*node)->size;
    return (const struct yaml *const *)(*node)->items;
}

static bool is_off(const struct yaml *node)
{
    return node->kind == YAML_TEXT && type_is_off(node->text);
}

static void bind_list(struct bind *bind, const struct value *value)
{
    size_t size;
    const struct yaml *const *items = bind_items(&value->node, &size);
    struct config_strings *list = value->member;

    *list = (struct config_strings){0};
    bind_note(bind, value);
    for (size_t i = 0; i < size && !is_off(value->node); i++) {
        const char *reason = NULL;

        if (items[i]->kind == YAML_TEXT)
            reason = type_read_item(&bind->types, value->directive, items[i]->text, list);
        else
            reason =
                keep_printf(bind->types.arena, "expected %s", type_expects(value->directive->type));
        if (reason)
            bind_complain(bind, items[i], value->path, reason);
    }
}

void bind_inside(struct bind *bind, const struct value *value, enum section section, void *object)
{
    if (value->node->kind != YAML_MAP) {
        bind_complain_of_type(bind, value);
        return;
    }
    bind_map(bind, value->node, value->path, &(struct target){section, object}, 1);
}

static void bind_limits(struct bind *bind, const struct value *value)
{
    bind_inside(bind, value, SECTION_LIMITS, value->member);
}

static void bind_timeouts(struct bind *bind, const struct value *value)
{
    bind_inside(bind, value, SECTION_TIMEOUTS, value->member);
}

static void bind_site_limits(struct bind *bind, const struct value *value)
{
    bind_inside(bind, value, SECTION_SITE_LIMITS, value->member);
}

static void bind_queue(struct bind *bind, const struct value *value)
{
    bind_inside(bind, value, SECTION_QUEUE, CONTAINER_OF(value->member, struct config_pool, name));
}

void bind_short(struct bind *bind, const struct value *value, enum section section, const char *key)
{
    struct value alone = *value;

    if (value->node->kind == YAML_MAP) {
        bind_inside(bind, value, section, value->member);
        return;
    }
    alone.directive = directive_find(section, span_of(key));
    alone.member = (char *)value->member + alone.directive->offset;
    alone.path = bind_child_path(bind, value->path, span_of(key));
    bind_scalar(bind, &alone);
}

/* `off`, a file alone, or a map; a map that names no format means the combined one. */
static void bind_access_log(struct bind *bind, const struct value *value)
{
    struct config_access_log *log = value->member;

    log->format = CONFIG_LOG_COMBINED;
    bind_short(bind, value, SECTION_ACCESS_LOG, "file");
    if (is_off(value->node))
        log->format = CONFIG_LOG_OFF;
}

static void bind_malloc(struct bind *bind, const struct value *value)
{
    bind_short(bind, value, SECTION_MALLOC, "allocator");
}

static void bind_variables(struct bind *bind, const struct value *value)
{
    struct config_pool *pool = CONTAINER_OF(value->member, struct config_pool, env);
    const struct yaml *map = value->node;

    if (map->kind != YAML_MAP) {
        bind_complain_of_type(bind, value);
        return;
    }
    bind_note(bind, value);
    pool->env = NULL;
    pool->env_size = 0;
    for (size_t i = 0; i < map->size; i++) {
        struct span name = map->keys[i]->text;
        const char *path = bind_child_path(bind, value->path, name);

        if (!name.size || span_find(name, '=') < name.size)
            bind_complain(bind, map->keys[i], path, "this cannot be the name of a variable");
        if (map->items[i]->kind != YAML_TEXT) {
            bind_complain(bind, map->items[i], path, "expected a text");
            continue;
        }
        pool->env = keep_grow(bind->types.arena, pool->env, pool->env_size, sizeof(pool->env[0]));
        pool->env[pool->env_size++] = (struct config_variable){
            name.data, yaml_is_empty(map->items[i]) ? "" : map->items[i]->text.data};
    }
}

static void bind_listener(struct bind *bind, const struct yaml *node, const char *path)
{
    struct config_listener like = {0};
    struct yaml *key;
    const struct yaml *address = node;
    struct listener_spec spec;
    const char *reason;

    bind_defaults(bind, SECTION_LISTENER, &like);
    if (node->kind == YAML_MAP) {
        bind_map(bind, node, path, &(struct target){SECTION_LISTENER, &like}, 1);
        address = yaml_find(node, "address", &key);
    }
    if (!address || address->kind != YAML_TEXT || yaml_is_empty(address)) {
        bind_complain(bind, address ? address : node, path, "expected an address");
        return;
    }
    reason = listener_parse(&bind->types, address->text, &spec);
    if (reason) {
        bind_complain(bind, address, path,
                      keep_printf(bind->types.arena, "%s, not \"%s\"", reason, address->text.data));
        return;
    }
    origin_note_place(bind->config, path, bind->file, address->line, address->column);
    listener_add(bind->types.arena, &bind->entries, &spec, &like);
}

static void bind_listeners(struct bind *bind, const struct value *value)
{
    size_t size;
    const struct yaml *const *items = bind_items(&value->node, &size);

    bind_note(bind, value);
    bind->entries.size = 0;
    for (size_t i = 0; i < size; i++)
        bind_listener(bind, items[i],
                      value->node->kind == YAML_LIST ? bind_item_path(bind, value->path, i)
                                                     : value->path);
}

static struct config_pool *find_pool(const struct config *config, struct span name)
{
    for (uint32_t i = 0; i < config->pool_size; i++)
        if (config->pools[i]->name && span_is(name, config->pools[i]->name))
            return config->pools[i];
    return NULL;
}

static const char *nearest_pool(const struct config *config, struct span name)
{
    const char *nearest = NULL;
    unsigned least = UINT_MAX;

    for (uint32_t i = 0; i < config->pool_size; i++) {
        unsigned distance = ascii_distance(name, span_of(config->pools[i]->name));

        if (nearest && distance >= least)
            continue;
        nearest = config->pools[i]->name;
        least = distance;
    }
    return nearest;
}

/* Pools are bound before sites, so that their order in the file does not matter. */
static void bind_pool_name(struct bind *bind, const struct value *value)
{
    struct span name = value->node->text;
    struct config_pool *pool;

    if (value->node->kind != YAML_TEXT) {
        bind_complain_of_type(bind, value);
        return;
    }
    bind_note(bind, value);
    pool = is_off(value->node) ? NULL : find_pool(bind->config, name);
    *(struct config_pool **)value->member = pool;
    if (pool || is_off(value->node))
        return;
    bind_complain(bind, value->node, value->path,
                  bind->has_pools && bind->config->pool_size
                      ? keep_printf(bind->types.arena,
                                    "there is no pool \"%s\"; the nearest is \"%s\"", name.data,
                                    nearest_pool(bind->config, name))
                      : "no pool has a name here; name them below \"pools\"");
}

static struct config_pool *pool_new(struct bind *bind, const char *name)
{
    struct config_pool *pool = keep_zero(bind->types.arena, sizeof(*pool));

    *pool = *bind->defaults;
    pool->name = name;
    bind->config->pools =
        keep_grow(bind->types.arena, bind->config->pools, bind->config->pool_size, sizeof(pool));
    bind->config->pools[bind->config->pool_size++] = pool;
    return pool;
}

/* Names go into metrics, process titles and commands. */
static bool is_pool_name(struct span name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!ascii_is(name.data[i], ASCII_ALPHA | ASCII_DIGIT) && !strchr("-_.", name.data[i]))
            return false;
    return name.size > 0 && name.size <= 64;
}

static void bind_pools(struct bind *bind, const struct value *value)
{
    const struct yaml *map = value->node;

    if (map->kind != YAML_MAP) {
        bind_complain_of_type(bind, value);
        return;
    }
    for (size_t i = 0; i < map->size; i++) {
        const char *path = bind_child_path(bind, value->path, map->keys[i]->text);
        struct config_pool *pool;

        if (!is_pool_name(map->keys[i]->text))
            bind_complain(bind, map->keys[i], path,
                          "a pool's name has letters, digits, and - _ . only");
        origin_note_place(bind->config, path, bind->file, map->keys[i]->line, map->keys[i]->column);
        pool = pool_new(bind, map->keys[i]->text.data);
        if (map->items[i]->kind == YAML_MAP)
            bind_map(bind, map->items[i], path, &(struct target){SECTION_POOL, pool}, 1);
        else if (!yaml_is_empty(map->items[i]))
            bind_complain(bind, map->items[i], path, "expected a map");
    }
}

static void bind_pool_defaults(struct bind *bind, const struct value *value)
{
    bind_inside(bind, value, SECTION_POOL, bind->defaults);
}

static void bind_later(struct bind *bind, const struct value *value)
{
    if (is_off(value->node))
        return;
    bind_note(bind, value);
    bind_complain(bind, value->key, value->path, "not yet");
}

static void (*const binders[])(struct bind *bind, const struct value *value) = {
    [TYPE_POOL_NAME] = bind_pool_name,
    [TYPE_LISTENERS] = bind_listeners,
    [TYPE_ACCESS_LOG] = bind_access_log,
    [TYPE_LIMITS] = bind_limits,
    [TYPE_TIMEOUTS] = bind_timeouts,
    [TYPE_QUEUE] = bind_queue,
    [TYPE_MALLOC] = bind_malloc,
    [TYPE_SITE_LIMITS] = bind_site_limits,
    [TYPE_VARIABLES] = bind_variables,
    [TYPE_PREFIXES] = bind_site_prefixes,
    [TYPE_ROUTES] = bind_site_routes,
    [TYPE_REDIRECT] = bind_site_redirect,
    [TYPE_POOL_DEFAULTS] = bind_pool_defaults,
    [TYPE_POOLS] = bind_pools,
    [TYPE_SITES] = bind_sites,
    [TYPE_LATER] = bind_later,
};

/* A value that says nothing leaves the default. */
static void bind_value(struct bind *bind, const struct value *value)
{
    if (yaml_is_empty(value->node))
        return;
    if (type_is_list(value->directive->type))
        bind_list(bind, value);
    else if (type_is_part(value->directive->type))
        binders[value->directive->type](bind, value);
    else
        bind_scalar(bind, value);
}

static void complain_of_key(const struct bind *bind, const struct yaml *key, const char *path,
                            const struct target *targets, size_t count)
{
    const struct directive *elsewhere = directive_find_anywhere(key->text);
    unsigned sections = 0;

    for (size_t i = 0; i < count; i++)
        sections |= 1u << targets[i].section;
    if (elsewhere) {
        bind_complain(bind, key, path,
                      keep_printf(bind->types.arena, "unknown key here; it is a key of %s",
                                  section_place(elsewhere->section)));
        return;
    }
    bind_complain(bind, key, path,
                  keep_printf(bind->types.arena, "unknown key; the nearest known one is \"%s\"",
                              directive_nearest(sections, key->text)));
}

static void bind_pair(struct bind *bind, const struct yaml *map, size_t index, const char *prefix,
                      const struct target *targets, size_t count)
{
    const struct yaml *key = map->keys[index];
    struct value value = {
        .key = key, .node = map->items[index], .path = bind_child_path(bind, prefix, key->text)};

    for (size_t i = 0; i < count && !value.directive; i++) {
        value.directive = directive_find(targets[i].section, key->text);
        if (value.directive)
            value.member = (char *)targets[i].object + value.directive->offset;
    }
    if (value.directive)
        bind_value(bind, &value);
    else
        complain_of_key(bind, key, value.path, targets, count);
}

void bind_map(struct bind *bind, const struct yaml *map, const char *prefix,
              const struct target *targets, size_t count)
{
    for (size_t i = 0; i < map->size; i++)
        bind_pair(bind, map, i, prefix, targets, count);
}

static void set_default(const struct bind *bind, const struct directive *directive, void *member)
{
    const char *text = bind->config->development && directive->development ? directive->development
                                                                           : directive->fallback;
    const char *reason;

    if (!text || type_is_part(directive->type))
        return;
    reason = type_is_list(directive->type)
                 ? type_read_item(&bind->types, directive, span_of(text), member)
                 : type_read(&bind->types, directive, span_of(text), member);
    CHECK(!reason);
}

void bind_defaults(const struct bind *bind, enum section section, void *object)
{
    size_t size;
    const struct directive *table = directives(&size);

    for (size_t i = 0; i < size; i++)
        if (table[i].section == section)
            set_default(bind, &table[i], (char *)object + table[i].offset);
}

static void set_all_defaults(struct bind *bind)
{
    struct config *config = bind->config;

    bind_defaults(bind, SECTION_SERVER, config);
    bind_defaults(bind, SECTION_ACCESS_LOG, &config->access_log);
    bind_defaults(bind, SECTION_LIMITS, &config->limits);
    bind_defaults(bind, SECTION_TIMEOUTS, &config->timeouts);
    bind->defaults = keep_zero(bind->types.arena, sizeof(*bind->defaults));
    bind->defaults->umask = CONFIG_AUTO;
    bind_defaults(bind, SECTION_POOL, bind->defaults);
    bind_defaults(bind, SECTION_QUEUE, bind->defaults);
    bind_defaults(bind, SECTION_MALLOC, &bind->defaults->malloc);
}

/* Binds one key of the top level ahead of the others, because they depend on it. */
static bool bind_first(struct bind *bind, const struct yaml *root, const char *name)
{
    struct target target = {SECTION_SERVER, bind->config};
    struct yaml *key, *node = yaml_find(root, name, &key);
    struct yaml map = {.kind = YAML_MAP, .keys = &key, .items = &node, .size = 1};

    if (!node || yaml_is_empty(node))
        return false;
    bind_map(bind, &map, NULL, &target, 1);
    return true;
}

/* The rest of the top level, where the keys of the only pool and site may stand too. */
static void bind_rest(struct bind *bind, const struct yaml *root)
{
    struct target targets[3] = {{SECTION_SERVER, bind->config}};
    size_t count = 1;

    if (!bind->has_pools)
        targets[count++] = (struct target){SECTION_POOL, pool_new(bind, NULL)};
    if (!bind->has_sites)
        targets[count++] = (struct target){SECTION_SITE, bind_site_new(bind)};
    for (size_t i = 0; root && i < root->size; i++) {
        const struct yaml *key = root->keys[i];

        if (!span_is(key->text, "pool_defaults") && !span_is(key->text, "pools") &&
            !span_is(key->text, "sites"))
            bind_pair(bind, root, i, NULL, targets, count);
    }
}

void bind_file(struct bind *bind, const struct yaml *root)
{
    struct yaml *key;
    const struct yaml *sites = yaml_find(root, "sites", &key);

    set_all_defaults(bind);
    if (root && root->kind != YAML_MAP) {
        bind_complain(bind, root, NULL, "expected a map of keys and values");
        root = NULL;
    }
    (void)bind_first(bind, root, "pool_defaults");
    bind->has_pools = bind_first(bind, root, "pools");
    bind->has_sites = root && sites && !yaml_is_empty(sites);
    bind_rest(bind, root);
    if (bind->has_sites)
        (void)bind_first(bind, root, "sites");
}

const char *bind_pool_key(const struct bind *bind, const struct config_pool *pool, const char *name)
{
    if (!bind->has_pools)
        return name;
    return keep_printf(bind->types.arena, "pools.%s.%s", pool->name, name);
}

const char *bind_site_key(const struct bind *bind, uint32_t index, const char *name)
{
    if (!bind->has_sites)
        return name;
    return keep_printf(bind->types.arena, "sites[%u].%s", index, name);
}

/* SPDX-License-Identifier: MIT */
/*
 * What the files that bind values share: a value on its way from the file to a member of a struct. Part
 * of bind.
 */
#pragma once

#include "config/bind.h"

/* An object that the keys of a map may go to; the first section that knows a key gets it. */
struct target {
    enum section section;
    void *object;
};

/* A value on its way: what it is, where it stands, what it is called. */
struct value {
    const struct directive *directive;
    const struct yaml *key; /* NULL for items of a list */
    const struct yaml *node;
    const char *path;
    void *member;
};

/* Adds a fault at a place of the file; that the value is none of its type. */
void bind_complain(const struct bind *bind, const struct yaml *node, const char *path,
                   const char *reason);
void bind_complain_of_type(const struct bind *bind, const struct value *value);

/* The names of what stands below a key. */
const char *bind_child_path(const struct bind *bind, const char *prefix, struct span name);
const char *bind_item_path(const struct bind *bind, const char *path, size_t index);

/* Remembers where the value came from. */
void bind_note(const struct bind *bind, const struct value *value);

/* The items of a value that may be a list or a single one. */
const struct yaml *const *bind_items(const struct yaml *const *node, size_t *ret_size);

/* A single value; a map with the keys of one section; a map whose keys may go to several. */
void bind_scalar(struct bind *bind, const struct value *value);
void bind_inside(struct bind *bind, const struct value *value, enum section section, void *object);
void bind_map(struct bind *bind, const struct yaml *map, const char *prefix,
              const struct target *targets, size_t count);

/* A map, or the value of one of its keys alone; the member is the section's object. */
void bind_short(struct bind *bind, const struct value *value, enum section section,
                const char *key);

/* Sites and their parts; bind_site.c. */
struct config_site *bind_site_new(struct bind *bind);
void bind_sites(struct bind *bind, const struct value *value);
void bind_site_prefixes(struct bind *bind, const struct value *value);
void bind_site_routes(struct bind *bind, const struct value *value);
void bind_site_redirect(struct bind *bind, const struct value *value);

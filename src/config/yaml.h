/* SPDX-License-Identifier: MIT */
/*
 * A YAML text as a tree that remembers where everything stood. Reading it is the only use of libyaml
 * here; what the keys mean is for bind.c. One thread; the tree lives in the arena it was read into.
 *
 * Invariants: a map's keys are scalars and different; a tree is at most YAML_DEPTH_MAX deep; an
 * aliased node appears in several places as the same node; all text is NUL-terminated.
 */
#pragma once

#include "base/arena.h"
#include "base/fault.h"

#include <stdbool.h>

enum { YAML_DEPTH_MAX = 32, YAML_NODES_MAX = 20000, YAML_BYTES_MAX = 1 << 20 };

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml {
    enum yaml_kind kind;
    unsigned line; /* both from 1 */
    unsigned column;
    bool plain;          /* a scalar without quotes */
    struct span text;    /* scalars */
    struct yaml **keys;  /* maps: scalars */
    struct yaml **items; /* lists and maps */
    size_t size;
};

/* Where a text comes from and goes to. */
struct yaml_source {
    const char *file; /* as faults shall name it */
    struct span text;
    char **environ; /* for ${NAME} in scalars that are no keys */
    bool verbatim;  /* nothing is replaced: the text is no configuration */
    struct arena *arena;
    struct faults *faults;
};

/* The root, or NULL when the text is empty or no YAML. Whatever is wrong is added to the faults; a
 * tree that has some is whole, with empty scalars in the place of what could not be read. */
struct yaml *yaml_read(const struct yaml_source *source);

/* The value of a map's key, or NULL; *ret_key is the key's node when there is one. */
struct yaml *yaml_find(const struct yaml *map, const char *name, struct yaml **ret_key);

/* Whether a value says nothing: an empty scalar, `~` or `null`. */
bool yaml_is_empty(const struct yaml *node);

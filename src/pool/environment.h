/* SPDX-License-Identifier: MIT */
/*
 * The environment of molds and workers, made anew for every generation from the one the server was
 * started with. Pure, save for environment_read_file.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"
#include "config/config.h"

#include <stddef.h>
#include <stdint.h>

/* A growing NULL-terminated list of owned "NAME=value" strings; zeros are an empty one. */
struct environment {
    char **items;
    size_t size;
};

/* Frees it; it is empty and usable again. */
void environment_done(struct environment *environment);

/* Copies a NULL-terminated list; a later entry of the same name is left out, as getenv would. */
void environment_copy(struct environment *environment, char *const *from);

/* The value of a name, or NULL; sets it; takes it out. */
const char *environment_get(const struct environment *environment, const char *name);
void environment_set(struct environment *environment, const char *name, const char *value);
void environment_unset(struct environment *environment, const char *name);

/* Undoes what `bundle exec` and the like did to it (BUNDLER_ORIG_NAME holds the value of before), and
 * removes what was said to this server only (its own variables, systemd's). */
void environment_clean(struct environment *environment);

/* Adds the lines `NAME=value`, `export NAME="value"`, `# remark` of text; 0, or -1 with a fault that
 * names file and line. */
int environment_add_text(struct environment *environment, const char *file, struct span text,
                         struct faults *faults);
int environment_read_file(struct environment *environment, const char *file, struct faults *faults);

/* The allocator that a pool asks for: MALLOC_ARENA_MAX unless somebody has set it, a library in front of
 * what is preloaded already unless one of the same kind is. library NULL = the C library's own, arenas 0
 * = as it likes. */
void environment_add_malloc(struct environment *environment, const char *library, uint64_t arenas);

/* What every application gets: the three names of the environment it runs in, RAILS_MAX_THREADS when
 * unset, LANG when no locale is set; and RAILS_RELATIVE_URL_ROOT when unset and the pool is found at one path
 * only. */
void environment_finish(struct environment *environment, const char *name,
                        const struct config_pool *pool);

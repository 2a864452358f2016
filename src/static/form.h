/* SPDX-License-Identifier: MIT */
/*
 * The forms of a file: itself, and neighbours that hold its bytes in a content coding (app.js.br beside
 * app.js). A neighbour counts while it is not older than the file. Which ones there are is looked up once
 * a second; the one that is sent is looked at in every batch, as any other file.
 */
#pragma once

#include "http/coding.h"
#include "static/open_cache.h"

enum {
    FORM_LOOK_MS = 1000,
    FORM_ENDING = 4 /* bytes of the longest one */
};

/* One form, ready to be sent. */
struct form {
    struct open_file *file; /* whose bytes are sent */
    struct span type;       /* of what they mean: the file's own */
    bool immutable;
    bool varies; /* other clients may get another form */
    enum coding coding;
};

/* The only form of a file. */
struct form form_plain(struct open_file *file);

/* The form of a file that has this one beside it in a coding; coded NULL: its own. */
struct form form_coded(struct open_file *file, struct open_file *coded, enum coding coding);

/* Of the codings in a set (bits 1 << coding) the one that the client wants most. */
enum coding form_choose(unsigned set, const struct coding_wish *wish);

/* Whether what was written then can hold the bytes of the file. Tools that copy times drop what is less
 * than a second. */
bool form_is_current(const struct resolve_identity *coded, const struct resolve_identity *file);

/* Writes a coding's ending and a NUL behind the name, which has room for it. */
struct span form_set_ending(char *name, size_t size, enum coding coding);

/* Looks for the forms of a file of the cache, without blocking. name: room for an ending behind it; the
 * same bytes afterwards. RESOLVED_FILE with *ret_form, or RESOLVED_LATER. */
enum resolved form_look(struct static_cache *cache, struct cache_root *root, char *name,
                        size_t size, struct open_file *file, const struct coding_wish *wish,
                        struct form *ret_form);

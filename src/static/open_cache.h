/* SPDX-License-Identifier: MIT */
/*
 * One loop's open files. Nothing is believed for longer than one batch of the loop's events: the first
 * look at a name in a batch asks the system without blocking, and others of the same batch have its
 * answer. So a page that was written, changed or deleted, and a root whose link was moved, are noticed
 * at once, while an open descriptor, its head fields and the bytes of small files are kept.
 *
 * Invariants: a file that is handed out was proved by resolve_open, and its name led to it in the same
 * state in this batch; at most OPEN_CACHE_FILES descriptors are held, none longer unused than
 * OPEN_CACHE_IDLE_MS. Files in use by exchanges live on when they leave the cache.
 */
#pragma once

#include "base/map.h"
#include "loop/timer.h"
#include "static/open_file.h"
#include "static/static.h"

enum {
    OPEN_CACHE_FILES = 256,
    OPEN_CACHE_IDLE_MS = 10000,
    OPEN_CACHE_MISSES = 64,
    OPEN_CACHE_NAME = 100
};

/* A root as this loop saw it last. */
struct cache_root {
    const struct static_root *root;
    int fd; /* O_PATH, owned; -1 when it is not known */
    struct resolve_identity identity;
    bool in_memory;
    bool is_missing;     /* as of checked_us */
    uint64_t checked_us; /* the batch in which its path was last seen to lead here */
    struct map files;    /* name -> struct open_file, each a reference */
};

/* A name that led to nothing in a batch. */
struct cache_miss {
    uint64_t batch_us;
    const struct static_root *root;
    size_t size;
    char name[OPEN_CACHE_NAME];
};

struct static_cache {
    struct loop *loop;
    struct offload *offload;
    struct post *post;
    struct map roots; /* struct static_root pointer, as bytes -> struct cache_root */
    struct list used; /* files by time of use, newest first */
    unsigned size;
    struct timer sweep; /* set while there are files */
    struct cache_miss misses[OPEN_CACHE_MISSES];
    unsigned jobs; /* at the file threads, holding on to the cache */
    bool closed;   /* static_cache_free was called; the last job frees */
};

/* This loop's view of a root. */
struct cache_root *open_cache_root(struct static_cache *cache, const struct static_root *root);

/* What a name (NUL behind it) stands for now, without blocking; *ret_file with RESOLVED_FILE (not
 * counted: take a reference to keep it). */
enum resolved open_cache_look(struct static_cache *cache, struct cache_root *root, struct span name,
                              struct open_file **ret_file);

/* Takes in what a file thread found: the root as it was opened there (fd is taken), and a file (one
 * reference is taken) or NULL. */
void open_cache_adopt(struct static_cache *cache, struct cache_root *root, int root_fd,
                      const struct resolve_identity *root_identity, bool in_memory,
                      struct span name, struct open_file *file);

/* Whether this batch has already found that the request's name leads to nothing; notes that it does. */
bool open_cache_is_missing(const struct static_cache *cache, const struct static_root *root,
                           struct span name);
void open_cache_note_missing(struct static_cache *cache, const struct static_root *root,
                             struct span name);

/* A file thread has, or has no longer, a job that names the cache. */
void open_cache_hold(struct static_cache *cache);
void open_cache_release(struct static_cache *cache);

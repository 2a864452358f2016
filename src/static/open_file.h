/* SPDX-License-Identifier: MIT */
/*
 * An open file with all that is said about it in a response head. Counted: the open cache holds one
 * reference, every exchange that sends it another. Made on a file thread or on a loop, then used by one
 * loop only.
 */
#pragma once

#include "base/list.h"
#include "static/resolve.h"

enum {
    OPEN_FILE_SMALL = 16 * 1024, /* files up to here are kept in memory */
    OPEN_FILE_PAGE = 64 * 1024,  /* the same for pages that may be written anew at any time */
    OPEN_FILE_ETAG = 56,
    OPEN_FILE_DATE = 29,
    OPEN_FILE_SAMPLES = 4,
    OPEN_FILE_SAMPLE = 64
};

/* A few bytes of a file, to tell growing from being written anew. */
struct open_file_sample {
    uint64_t offset;
    size_t size; /* 0: not known */
    char bytes[OPEN_FILE_SAMPLE];
};

struct cache_root;

struct open_file {
    unsigned references;
    int fd;                           /* owned */
    struct resolve_identity identity; /* as of the moment it was opened; the length is fixed here */
    struct span type;                 /* content-type, of the process */
    char etag[OPEN_FILE_ETAG];        /* of nanoseconds, size and inode, quoted */
    size_t etag_size;
    char modified[OPEN_FILE_DATE]; /* last-modified */
    bool immutable;                /* its name holds a digest of its content */
    bool date_is_shared;           /* another version with the same second was served */
    char *content;                 /* owned, identity.size bytes; NULL for larger files */
    unsigned forms;                /* codings that it is there in as well, 1 << enum coding */
    uint64_t forms_looked_ms;      /* when that was seen, or 0 */
    struct open_file_sample samples[OPEN_FILE_SAMPLES]; /* of larger files, once loaded */
    struct {
        uint64_t batch_us, offset, size;
    } warm; /* the part last seen in the system's memory, and in which batch of events */

    /* The open cache's own. */
    struct list link;        /* by time of use, newest first */
    struct cache_root *home; /* NULL when it is not in the cache (any more) */
    char *name;              /* owned; its key there */
    uint64_t checked_us;     /* the batch in which its name was last seen to lead here */
    uint64_t used_ms;
};

/* Wraps an open file with the name that its type is guessed from. Takes fd. NULL when memory is out. */
struct open_file *open_file_new(int fd, const struct resolve_identity *identity, struct span name);

/* Reads a file of up to that many bytes into memory, unless it changes meanwhile, and the beginning of a
 * larger one into the system's cache. May block. */
void open_file_load(struct open_file *file, size_t keep_bytes);

/* Whether the bytes of the file up to its length are still those that it had when it was opened: it may
 * have been renamed, removed, or appended to, but not truncated or written over. */
bool open_file_is_intact(const struct open_file *file);

struct open_file *open_file_ref(struct open_file *file);

/* Takes NULL. */
void open_file_unref(struct open_file *file);

/* Whether a name is one of a fingerprinted asset: below a folder "assets" or "packs", with a
 * hexadecimal digest behind a dash. Pure. */
bool open_file_is_fingerprinted(struct span name);

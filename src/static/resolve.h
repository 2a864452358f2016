/* SPDX-License-Identifier: MIT */
/*
 * From a name below a root to an open file. Only resolve_open opens a file for reading, and it proves
 * each time that the file lies where a file may lie: below the root, in `shared/` beside
 * `releases/` when the application is such a release, in /usr/share, or where the site's `links` say.
 *
 * The proof is the kernel's (openat2 with RESOLVE_BENEATH) where no link leaves the root. Otherwise the
 * last link is followed by hand, the folder it ends in is held open, and its parents are climbed until one
 * of the allowed folders is met; the file is then opened in that very folder without following a link.
 *
 * resolve_look and resolve_root never block; resolve_open may, and belongs on a file thread.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>
#include <time.h>

struct static_root;

enum resolved {
    RESOLVED_LATER,   /* cannot be told without blocking */
    RESOLVED_FILE,    /* a regular file */
    RESOLVED_FOLDER,  /* a folder */
    RESOLVED_MISSING, /* nothing, or nothing that can be sent */
    RESOLVED_DENIED,  /* it exists and may not be sent; there are words for the log */
    RESOLVED_CLOSED,  /* this user may not read it, or not look whether it is there; words, too */
    RESOLVED_FAILED   /* the system is short of something */
};

/* Which file, in which state: the same values mean the same bytes. */
struct resolve_identity {
    uint64_t device, inode, size;
    struct timespec modified; /* what readers are told */
    struct timespec changed;  /* cannot be set back by anyone */
};

enum { RESOLVE_WORDS = 512 };

/* Whether a name (decoded, without leading slash) is one of those that are never sent: dot names save
 * .well-known, backups, sources of applications that `serve` does not allow. Pure. */
bool resolve_is_refused(const struct static_root *root, struct span name);

/* Opens the root's folder itself (O_PATH), looking at each link on the way: a descriptor or a negative
 * errno. Unless may_block, -EAGAIN when that could block. *ret_in_memory (only set with may_block) says
 * that look-ups below never wait for a disk. */
int resolve_root(const struct static_root *root, bool may_block,
                 struct resolve_identity *ret_identity, bool *ret_in_memory);

/* What a name (NUL behind it) stands for at the moment, without opening it. beneath: the way may not
 * leave the root; without it the identity must be compared with one that resolve_open has proved. */
enum resolved resolve_look(int root_fd, const char *name, bool beneath, bool in_memory,
                           struct resolve_identity *ret_identity);

/* Opens a file for reading. *ret_fd and *ret_identity are set with RESOLVED_FILE; words with
 * RESOLVED_DENIED and RESOLVED_CLOSED. */
enum resolved resolve_open(const struct static_root *root, int root_fd, const char *name,
                           int *ret_fd, struct resolve_identity *ret_identity,
                           char ret_words[static RESOLVE_WORDS]);

/* What a negative errno of opening means, and the words of RESOLVED_DENIED and RESOLVED_CLOSED. */
enum resolved resolve_explain(int error, char ret_words[static RESOLVE_WORDS]);

/* The identity of an open file; false when it is no regular file. */
bool resolve_identify(int fd, struct resolve_identity *ret_identity);

/* Whether somebody has the file open for writing. A file system or a user that this cannot be asked says
 * no. The process must ignore SIGIO: a writer that comes while it is asked is told of by that signal. */
bool resolve_is_written(int fd);

bool resolve_is_same(const struct resolve_identity *a, const struct resolve_identity *b);

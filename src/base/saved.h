/* SPDX-License-Identifier: MIT */
/*
 * What a process leaves to the program that takes its place (`leat upgrade`): text of `key = value` lines
 * and the descriptors that it names. One build writes it, another may read it, an older one too: keys that
 * a reader does not ask for are ignored, keys that it misses have a default. A key is made of parts with
 * points between them ("pool.0.worker.3.pid"); a cursor holds the first ones, so that no part of the
 * program needs to know where it stands. In values a newline is written `\n` and a backslash `\\`.
 * Pure, save for saved_fd and saved_close_rest. One thread.
 *
 * Invariant: the last part of a descriptor's key is `fd` or ends in `_fd`, so that a reader who does not
 * know it can close it.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

enum { SAVED_PREFIX = 128, SAVED_BYTES_MAX = 16 << 20 };

/* A text being written; zeros are an empty one. */
struct saved_text {
    struct buf buf;
    int *fds; /* owned: the descriptors that it names */
    size_t fd_count;
    int error; /* 0, or the negative errno of the first line that could not be added */
};

/* Where in a text lines are added. */
struct saved_out {
    struct saved_text *text;
    char prefix[SAVED_PREFIX];
};

/* Frees it. */
void saved_text_done(struct saved_text *text);

/* The beginning; a section `name`; item `number` of a list `name`. */
struct saved_out saved_begin(struct saved_text *text);
struct saved_out saved_out_section(const struct saved_out *out, const char *name);
struct saved_out saved_out_item(const struct saved_out *out, const char *name, uint32_t number);

/* Adds a line; a value of NULL, and a descriptor of -1, add none. */
void saved_put(const struct saved_out *out, const char *name, const char *value);
void saved_put_number(const struct saved_out *out, const char *name, uint64_t value);
void saved_put_fd(const struct saved_out *out, const char *name, int fd);

struct saved;

/* Where in a text lines are looked up. */
struct saved_in {
    struct saved *saved;
    char prefix[SAVED_PREFIX];
};

/* Takes a text apart; NULL when it is none, then *ret_line is the first wrong line. */
struct saved *saved_read(struct span text, unsigned *ret_line);

/* Frees it; descriptors stay as they are. NULL is harmless. */
void saved_free(struct saved *saved);

/* The same cursors for reading. */
struct saved_in saved_root(struct saved *saved);
struct saved_in saved_section(const struct saved_in *in, const char *name);
struct saved_in saved_item(const struct saved_in *in, const char *name, uint32_t number);

/* The value, or NULL. */
const char *saved_get(const struct saved_in *in, const char *name);

/* Its number when it is one of at most `most`, else `otherwise`. */
uint64_t saved_number(const struct saved_in *in, const char *name, uint64_t most,
                      uint64_t otherwise);

/* The index of the value in a list of words, or `count`. */
size_t saved_word(const struct saved_in *in, const char *name, const char *const *words,
                  size_t count);

/* Takes over the descriptor of that key, close-on-exec from now on; -1 when there is none, it is not
 * open, or somebody has taken it already. */
int saved_fd(const struct saved_in *in, const char *name);

/* Closes every descriptor that is named and was not taken: what another build left has no owner here. */
void saved_close_rest(struct saved *saved);

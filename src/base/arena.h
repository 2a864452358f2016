/* SPDX-License-Identifier: MIT */
/*
 * Bump memory that is freed at once: the memory of one exchange or one loading of something. The
 * owner embeds it by value; one thread. Foreign resources are tied to it with arena_defer.
 *
 * Invariant: an arena of zeros is valid and empty and costs no allocation until the first take.
 */
#pragma once

#include "base/base.h"
#include "base/span.h"

struct arena_block;
struct arena_cleanup;

struct arena {
    struct arena_block *block;      /* newest block, owned */
    struct arena_cleanup *cleanups; /* newest first; live in the arena itself */
    char *next;                     /* free bytes in the newest block: next .. end */
    char *end;
    size_t taken; /* bytes handed out since the last reset */
};

/* size bytes aligned for any type, uninitialised (arena_zero: zeroed); NULL when memory is out. */
void *arena_take(struct arena *arena, size_t size);
void *arena_zero(struct arena *arena, size_t size);

/* A copy of the bytes, followed by a NUL that the span does not count; data is NULL without memory. */
struct span arena_copy(struct arena *arena, struct span bytes);

/* Formatted text, NUL behind it; data is NULL when memory is out. */
struct span arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

/* Runs clean(object) at the next reset, in reverse order of registration. 0 or -ENOMEM. */
int arena_defer(struct arena *arena, void (*clean)(void *object), void *object);

/* Runs the cleanups and forgets all memory; one block is kept for the next use. */
void arena_reset(struct arena *arena);

/* The same, and frees everything. */
void arena_done(struct arena *arena);

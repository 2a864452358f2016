/* SPDX-License-Identifier: MIT */
/*
 * Memory of an edition: an arena whose taking cannot fail, because running out of memory while a
 * configuration is loaded ends the process with one line. One thread.
 */
#pragma once

#include "base/arena.h"

/* size bytes of zeros. */
void *keep_zero(struct arena *arena, size_t size);

/* A NUL-terminated copy. */
const char *keep_text(struct arena *arena, struct span text);

/* Formatted text. */
const char *keep_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

/* An array of size + 1 items that begins with the size old ones; the new item is zeros. Room is
 * doubled, so that growing one by one stays cheap. */
void *keep_grow(struct arena *arena, void *items, size_t size, size_t item_size);

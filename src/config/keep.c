/* SPDX-License-Identifier: MIT */
#include "config/keep.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void *keep_zero(struct arena *arena, size_t size)
{
    void *memory = arena_zero(arena, size);

    CHECK(memory);
    return memory;
}

const char *keep_text(struct arena *arena, struct span text)
{
    struct span copy = arena_copy(arena, text);

    CHECK(copy.data);
    return copy.data;
}

const char *keep_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    const char *kept;
    char *text;
    int size;

    va_start(arguments, format);
    size = vasprintf(&text, format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    kept = keep_text(arena, span_make(text, (size_t)size));
    free(text);
    return kept;
}

void *keep_grow(struct arena *arena, void *items, size_t size, size_t item_size)
{
    char *grown;

    if (size & (size - 1) || (size == 0 && items)) /* room is the next power of two */
        return items;
    grown = keep_zero(arena, (size ? size * 2 : 1) * item_size);
    if (size)
        memcpy(grown, items, size * item_size);
    return grown;
}

/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Blocks double from the first size to the largest, header and the allocator's own words included,
 * so that a first block with its bookkeeping is about a memory page. */
enum { FIRST_BLOCK = 4096 - 32, LARGEST_BLOCK = 64 * 1024 - 32 };

struct arena_block {
    struct arena_block *older; /* owned */
    size_t room;               /* bytes behind this header */
    max_align_t bytes[];
};

struct arena_cleanup {
    struct arena_cleanup *older;
    void (*clean)(void *object);
    void *object;
};

enum {
    UNIT = _Alignof(max_align_t),
    FIRST_ROOM = FIRST_BLOCK - sizeof(struct arena_block),
    LARGEST_ROOM = LARGEST_BLOCK - sizeof(struct arena_block)
};

static size_t round_up(size_t size)
{
    return (size + UNIT - 1) & ~(size_t)(UNIT - 1);
}

static struct arena_block *block_new(size_t room)
{
    struct arena_block *block = malloc(sizeof(*block) + room);

    if (block)
        block->room = room;
    return block;
}

static void use(struct arena *arena, struct arena_block *block)
{
    arena->next = (char *)block->bytes;
    arena->end = arena->next + block->room;
}

static size_t next_room(const struct arena *arena)
{
    if (!arena->block)
        return FIRST_ROOM;
    return arena->block->room > LARGEST_ROOM / 2 ? LARGEST_ROOM : arena->block->room * 2;
}

/* A piece that would waste most of a block gets one of its own, put behind the newest so that the
 * newest goes on being filled. */
static void *take_alone(struct arena *arena, size_t size)
{
    struct arena_block *block = block_new(size);

    if (!block)
        return NULL;
    block->older = arena->block->older;
    arena->block->older = block;
    arena->taken += size;
    return block->bytes;
}

static bool add_block(struct arena *arena, size_t size)
{
    size_t room = next_room(arena);
    struct arena_block *block = block_new(size > room ? size : room);

    if (!block)
        return false;
    block->older = arena->block;
    arena->block = block;
    use(arena, block);
    return true;
}

void *arena_take(struct arena *arena, size_t size)
{
    void *piece;

    if (size > PTRDIFF_MAX - LARGEST_BLOCK)
        return NULL;
    size = round_up(size ? size : 1);
    if (size > (size_t)(arena->end - arena->next)) {
        if (arena->block && size > next_room(arena) / 2)
            return take_alone(arena, size);
        if (!add_block(arena, size))
            return NULL;
    }
    piece = arena->next;
    arena->next += size;
    arena->taken += size;
    return piece;
}

void *arena_zero(struct arena *arena, size_t size)
{
    void *piece = arena_take(arena, size);

    return piece ? memset(piece, 0, size) : NULL;
}

struct span arena_copy(struct arena *arena, struct span bytes)
{
    char *copy = bytes.size < SIZE_MAX ? arena_take(arena, bytes.size + 1) : NULL;

    if (!copy)
        return (struct span){NULL, 0};
    if (bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = '\0';
    return span_make(copy, bytes.size);
}

struct span arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    char *text;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    CHECK(length >= 0);

    text = arena_take(arena, (size_t)length + 1);
    if (!text)
        return (struct span){NULL, 0};
    va_start(arguments, format);
    (void)vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return span_make(text, (size_t)length);
}

int arena_defer(struct arena *arena, void (*clean)(void *object), void *object)
{
    struct arena_cleanup *cleanup = arena_take(arena, sizeof(*cleanup));

    if (!cleanup)
        return -ENOMEM;
    *cleanup = (struct arena_cleanup){arena->cleanups, clean, object};
    arena->cleanups = cleanup;
    return 0;
}

/* A cleanup may itself register another one, so the list is read anew each time. */
static void run_cleanups(struct arena *arena)
{
    while (arena->cleanups) {
        struct arena_cleanup *cleanup = arena->cleanups;

        arena->cleanups = cleanup->older;
        cleanup->clean(cleanup->object);
    }
}

/* Frees all blocks but kept, which may be NULL. */
static void free_blocks(struct arena *arena, struct arena_block *kept)
{
    struct arena_block *block = arena->block;

    while (block) {
        struct arena_block *older = block->older;

        if (block != kept)
            free(block);
        block = older;
    }
    *arena = (struct arena){.block = kept};
    if (kept) {
        kept->older = NULL;
        use(arena, kept);
    }
}

/* A block of the first size: an idle owner shall not sit on a large one. */
static struct arena_block *block_to_keep(const struct arena *arena)
{
    struct arena_block *block = arena->block;

    while (block && block->room != FIRST_ROOM)
        block = block->older;
    return block;
}

void arena_reset(struct arena *arena)
{
    run_cleanups(arena);
    free_blocks(arena, block_to_keep(arena));
}

void arena_done(struct arena *arena)
{
    run_cleanups(arena);
    free_blocks(arena, NULL);
}

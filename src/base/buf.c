/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_ROOM = 256 };

void buf_done(struct buf *buf)
{
    free(buf->memory);
    *buf = (struct buf){0};
}

static void move_to_front(struct buf *buf)
{
    if (buf->start == 0)
        return;
    if (buf->size)
        memmove(buf->memory, buf->memory + buf->start, buf->size);
    buf->start = 0;
}

/* The next power of two that holds needed, or 0 when there is none. */
static size_t room_for(size_t room, size_t needed)
{
    size_t bigger = room < FIRST_ROOM ? FIRST_ROOM : room;

    while (bigger < needed) {
        if (bigger > SIZE_MAX / 2)
            return 0;
        bigger *= 2;
    }
    return bigger;
}

/* Gets memory for needed bytes of content; what was consumed is not copied along. */
static bool enlarge(struct buf *buf, size_t needed)
{
    size_t room = room_for(buf->room, needed);
    char *memory;

    if (!room)
        return false;
    if (!buf->memory || buf->start == 0) {
        memory = realloc(buf->memory, room);
        if (!memory)
            return false;
    } else {
        memory = malloc(room);
        if (!memory)
            return false;
        memcpy(memory, buf->memory + buf->start, buf->size);
        free(buf->memory);
    }
    buf->memory = memory;
    buf->start = 0;
    buf->room = room;
    return true;
}

char *buf_reserve(struct buf *buf, size_t size)
{
    if (size > SIZE_MAX - buf->size)
        return NULL;
    if (!buf->memory || buf->room - buf->start - buf->size < size) {
        /* Moving is amortised when at least half of the memory is consumed; else it would be done
         * again and again for a few bytes each. */
        if (buf->memory && buf->room - buf->size >= size && buf->start >= buf->room / 2)
            move_to_front(buf);
        else if (!enlarge(buf, buf->size + size))
            return NULL;
    }
    return buf->memory + buf->start + buf->size;
}

void buf_grow(struct buf *buf, size_t size)
{
    CHECK(size <= buf->room - buf->start - buf->size);
    buf->size += size;
}

int buf_append(struct buf *buf, struct span bytes)
{
    char *place;

    if (bytes.size == 0)
        return 0;
    place = buf_reserve(buf, bytes.size);
    if (!place)
        return -ENOMEM;
    memcpy(place, bytes.data, bytes.size);
    buf->size += bytes.size;
    return 0;
}

int buf_append_byte(struct buf *buf, char byte)
{
    return buf_append(buf, span_make(&byte, 1));
}

int buf_append_escaped(struct buf *buf, struct span value)
{
    int result = 0;

    for (size_t i = 0; i < value.size && result == 0; i++) {
        if (value.data[i] == '\n')
            result = buf_append(buf, span_of("\\n"));
        else if (value.data[i] == '\\')
            result = buf_append(buf, span_of("\\\\"));
        else
            result = buf_append_byte(buf, value.data[i]);
    }
    return result;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list arguments;
    char *place;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    CHECK(length >= 0);

    /* One byte more for the NUL that vsnprintf insists on. */
    place = buf_reserve(buf, (size_t)length + 1);
    if (!place)
        return -ENOMEM;
    va_start(arguments, format);
    (void)vsnprintf(place, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buf->size += (size_t)length;
    return 0;
}

void buf_consume(struct buf *buf, size_t count)
{
    CHECK(count <= buf->size);
    buf->size -= count;
    buf->start = buf->size ? buf->start + count : 0;
}

void buf_clear(struct buf *buf)
{
    buf->start = 0;
    buf->size = 0;
}

void buf_shrink(struct buf *buf, size_t keep)
{
    if (buf->size == 0 && buf->room > keep)
        buf_done(buf);
}

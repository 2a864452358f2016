/* SPDX-License-Identifier: MIT */
/*
 * A span is a pointer and a length into bytes that somebody else owns. It is passed by value, never
 * owns and is never NUL-terminated. Pure; any thread may call.
 *
 * Invariant: data may be NULL only when size is 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *data;
    size_t size; /* bytes */
};

/* A span over a string literal, usable in initialisers. */
#define SPAN(literal)                \
    {                                \
        literal, sizeof(literal) - 1 \
    }

/* Arguments for printf's "%.*s". */
#define SPAN_ARG(span) (int)(span).size, (span).data

/* A span over size bytes at data. */
static inline struct span span_make(const char *data, size_t size)
{
    return (struct span){data, size};
}

/* A span over a C string without its NUL; NULL gives an empty span. */
static inline struct span span_of(const char *text)
{
    return (struct span){text, text ? strlen(text) : 0};
}

/* Whether both hold the same bytes. */
static inline bool span_equal(struct span a, struct span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Whether the span holds exactly the bytes of the C string. */
static inline bool span_is(struct span span, const char *text)
{
    return span_equal(span, span_of(text));
}

/* Whether the span begins (ends) with the other one. */
static inline bool span_starts_with(struct span span, struct span start)
{
    return span.size >= start.size && memcmp(span.data, start.data, start.size) == 0;
}

static inline bool span_ends_with(struct span span, struct span end)
{
    return span.size >= end.size &&
           memcmp(span.data + span.size - end.size, end.data, end.size) == 0;
}

/* Index of the first (last) such byte, or the span's size when there is none. */
size_t span_find(struct span span, char byte);
size_t span_find_last(struct span span, char byte);

/* Without its first count bytes; count beyond the end gives an empty span. */
struct span span_skip(struct span span, size_t count);

/* Its first count bytes at most. */
struct span span_first(struct span span, size_t count);

/* Cuts the part before the separator off the front of *rest and returns it; without a separator
 * the whole rest. *rest becomes {NULL, 0} after the last part, so that loops end on !rest.data. */
struct span span_split(struct span *rest, char separator);

/* Without spaces and tabs at both ends (optional whitespace, RFC 9110 5.6.3). */
struct span span_trim(struct span span);

/* Compares like memcmp with the shorter first: negative, 0 or positive. */
int span_compare(struct span a, struct span b);

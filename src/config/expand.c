/* SPDX-License-Identifier: MIT */
#include "config/expand.h"

#include "base/ascii.h"
#include "base/buf.h"
#include "config/keep.h"

const char *expand_find(char **environ, struct span name)
{
    for (char **entry = environ; entry && *entry; entry++) {
        struct span text = span_of(*entry);

        if (span_find(text, '=') != name.size || !span_starts_with(text, name))
            continue;
        return text.size > name.size + 1 ? *entry + name.size + 1 : NULL;
    }
    return NULL;
}

bool expand_is_needed(struct span text)
{
    for (size_t i = 0; i + 1 < text.size; i++)
        if (text.data[i] == '$' && text.data[i + 1] == '{')
            return true;
    return false;
}

static bool is_name(struct span name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!ascii_is(name.data[i], ASCII_ALPHA | ASCII_DIGIT) && name.data[i] != '_')
            return false;
    return name.size > 0 && !ascii_is(name.data[0], ASCII_DIGIT);
}

/* The value of what stands between the braces. */
static const char *resolve(struct arena *arena, struct span inside, char **environ,
                           struct span *ret_value)
{
    size_t colon = span_find(inside, ':');
    struct span name = span_first(inside, colon);
    struct span fallback = span_skip(inside, colon);
    const char *value;

    if (!is_name(name) || (fallback.size && !span_starts_with(fallback, span_of(":-"))))
        return keep_printf(arena, "${%.*s} is neither ${NAME} nor ${NAME:-default}",
                           SPAN_ARG(inside));
    value = expand_find(environ, name);
    if (!value && !fallback.size)
        return keep_printf(arena, "the environment variable %.*s is not set and has no default",
                           SPAN_ARG(name));
    *ret_value = value ? span_of(value) : span_skip(fallback, 2);
    return NULL;
}

/* Appends what stands at the beginning of *rest up to the next piece. */
static const char *expand_piece(struct arena *arena, struct span *rest, char **environ,
                                struct buf *out)
{
    size_t dollar = span_find(*rest, '$'), end;
    struct span value, tail;
    const char *reason;

    CHECK(buf_append(out, span_first(*rest, dollar)) == 0);
    tail = span_skip(*rest, dollar);
    if (span_starts_with(tail, span_of("$${"))) {
        CHECK(buf_append(out, span_of("${")) == 0);
        *rest = span_skip(tail, 3);
        return NULL;
    }
    if (!span_starts_with(tail, span_of("${"))) {
        CHECK(buf_append(out, span_first(tail, 1)) == 0);
        *rest = span_skip(tail, 1);
        return NULL;
    }
    end = span_find(tail, '}');
    if (end == tail.size)
        return "${ without its }";
    reason = resolve(arena, span_skip(span_first(tail, end), 2), environ, &value);
    if (!reason)
        CHECK(buf_append(out, value) == 0);
    *rest = span_skip(tail, end + 1);
    return reason;
}

const char *expand(struct arena *arena, struct span text, char **environ, struct span *ret_text)
{
    struct span rest = text;
    const char *reason = NULL;
    struct buf out = {0};

    while (rest.size && !reason)
        reason = expand_piece(arena, &rest, environ, &out);
    if (!reason)
        *ret_text = span_make(keep_text(arena, buf_span(&out)), out.size);
    buf_done(&out);
    return reason;
}

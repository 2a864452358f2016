/* SPDX-License-Identifier: MIT */
#include "static/mime.h"

#include "base/arena.h"
#include "base/ascii.h"
#include "base/fd.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>

enum { EXTENSION_MAX = 15, SYSTEM_LIST_MAX = 1024 * 1024 };

static const struct {
    struct span extension;
    struct span type;
} known[] = {
#define ROW(extension, type) {SPAN(extension), SPAN(type)},
#include "static/mime.def"
#undef ROW
};

/* Of the process, written once under load_once before requests come, then only read: the types are the
 * same for every site, and a copy per loop would only cost memory. Values are const struct span *. */
static struct map types;
static struct arena system_memory;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* The list gives types without parameters; text is UTF-8 here. NULL when memory is out. */
static const struct span *keep_type(struct span type)
{
    static const struct span text = SPAN("text/");
    struct span *kept = arena_take(&system_memory, sizeof(*kept));

    if (!kept)
        return NULL;
    *kept = span_starts_with(type, text)
                ? arena_printf(&system_memory, "%.*s; charset=utf-8", SPAN_ARG(type))
                : arena_copy(&system_memory, type);
    return kept->data ? kept : NULL;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static struct span next_word(struct span *line)
{
    size_t start = 0, end;
    struct span word;

    while (start < line->size && is_blank(line->data[start]))
        start++;
    end = start;
    while (end < line->size && !is_blank(line->data[end]))
        end++;
    word = span_make(line->data + start, end - start);
    *line = span_skip(*line, end);
    return word;
}

/* "type/subtype ext ext ...": the first line that names an extension wins, and ours before all. */
static void add_line(struct span line)
{
    struct span type = next_word(&line), extension;
    const struct span *kept = NULL;

    if (!type.size || type.data[0] == '#' || !ascii_all(type, ASCII_VALUE))
        return;
    while ((extension = next_word(&line)).size) {
        if (extension.size > EXTENSION_MAX || map_find(&types, extension))
            continue;
        if (!kept)
            kept = keep_type(type);
        if (!kept)
            return;
        (void)map_set(&types, extension, (void *)kept);
    }
}

static void load_system(const char *path)
{
    struct span rest;
    char *text;
    size_t size;

    if (fd_read_file(path, SYSTEM_LIST_MAX, &text, &size) < 0)
        return;
    rest = span_make(text, size);
    while (rest.data)
        add_line(span_split(&rest, '\n'));
    free(text);
}

static void load(void)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        (void)map_set(&types, known[i].extension, (void *)&known[i].type);
    load_system("/etc/mime.types");
}

void mime_load(void)
{
    (void)pthread_once(&load_once, load);
}

/* Behind the last dot of the last segment, folded into out; 0 when there is none of a known size. */
static size_t fold_extension(struct span name, char out[EXTENSION_MAX])
{
    size_t dot = span_find_last(name, '.');
    struct span extension = span_skip(name, dot + 1);

    if (dot == name.size || extension.size > EXTENSION_MAX)
        return 0;
    for (size_t i = 0; i < extension.size; i++) {
        if (extension.data[i] == '/')
            return 0;
        out[i] = ascii_lower(extension.data[i]);
    }
    return extension.size;
}

struct span mime_find(struct span name)
{
    char folded[EXTENSION_MAX];
    size_t size = fold_extension(name, folded);
    const struct span *type = size ? map_find(&types, span_make(folded, size)) : NULL;

    return type ? *type : (struct span)SPAN("application/octet-stream");
}

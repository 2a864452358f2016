/* SPDX-License-Identifier: MIT */
#include "config/origin.h"

#include "config/keep.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void note(struct config *config, const struct config_origin *origin)
{
    struct config_origin *kept = keep_zero(&config->arena, sizeof(*kept));

    *kept = *origin;
    kept->next = config->origins;
    config->origins = kept;
}

void origin_note_place(struct config *config, const char *key, const char *file, unsigned line,
                       unsigned column)
{
    note(config, &(struct config_origin){.key = key, .file = file, .line = line, .column = column});
}

void origin_note_source(struct config *config, const char *key, const char *source)
{
    note(config, &(struct config_origin){.key = key, .source = source});
}

const struct config_origin *origin_find(const struct config *config, const char *key)
{
    const struct config_origin *origin = config->origins;

    while (origin && strcmp(origin->key, key) != 0)
        origin = origin->next;
    return origin;
}

const char *origin_text(struct arena *arena, const struct config_origin *origin)
{
    if (!origin)
        return "default";
    if (origin->source)
        return origin->source;
    return keep_printf(arena, "%s:%u", origin->file, origin->line);
}

/* The name behind "option " or "environment ", which is what its user typed. */
static const char *typed_name(const char *source)
{
    const char *space = strchr(source, ' ');

    return space ? space + 1 : source;
}

void origin_fault(const struct config *config, struct faults *faults, const char *key,
                  const char *format, ...)
{
    const struct config_origin *origin = origin_find(config, key);
    va_list arguments;
    char *reason;
    int size;

    va_start(arguments, format);
    size = vasprintf(&reason, format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    if (origin && origin->source)
        faults_add(faults, NULL, 0, 0, typed_name(origin->source), "%s", reason);
    else
        faults_add(faults, origin ? origin->file : NULL, origin ? origin->line : 0,
                   origin ? origin->column : 0, key, "%s", reason);
    free(reason);
}

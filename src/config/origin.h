/* SPDX-License-Identifier: MIT */
/*
 * Where each value came from: for `leat print`, and for the place in what verification says. Only
 * values that somebody gave have an origin; all others are defaults. Lives in the edition's arena.
 */
#pragma once

#include "config/config.h"

struct config_origin {
    const char *key;    /* dotted path: "pools.shop.queue.length", "sites[0].root" */
    const char *source; /* "option -p", "environment PORT"; NULL = the configuration file */
    const char *file;   /* as faults name it */
    unsigned line, column;
    struct config_origin *next; /* older */
};

/* Notes the place in the file (the option or variable) that gave the key its value; the newest note
 * counts. key and words must live as long as the edition. */
void origin_note_place(struct config *config, const char *key, const char *file, unsigned line,
                       unsigned column);
void origin_note_source(struct config *config, const char *key, const char *source);

/* The newest note for the key, or NULL when its value is the default. */
const struct config_origin *origin_find(const struct config *config, const char *key);

/* "default", "leat.yml:12", "environment PORT", "option -p". */
const char *origin_text(struct arena *arena, const struct config_origin *origin);

/* Adds a fault about the key's value, with its place, or the option or variable that gave it. */
void origin_fault(const struct config *config, struct faults *faults, const char *key,
                  const char *format, ...) PRINTF_LIKE(4, 5);

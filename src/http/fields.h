/* SPDX-License-Identifier: MIT */
/*
 * An ordered list of fields. Names and values are spans into memory that lives as long as the list (the
 * exchange's arena); the list grows in that arena. One loop.
 */
#pragma once

#include "base/arena.h"
#include "http/http.h"

#include <stdint.h>

struct field {
    struct span name;  /* as received, or lower case when we made it */
    struct span value; /* without white space at its ends */
    enum field_id id;
};

/* Zeros are an empty list. */
struct fields {
    struct field *items; /* in the arena */
    uint32_t size;
    uint32_t room;
    struct arena *arena; /* set by fields_init */
};

void fields_init(struct fields *fields, struct arena *arena);

/* Appends a field; the bytes are not copied. 0 or -ENOMEM. */
int fields_add(struct fields *fields, struct span name, struct span value);

/* Appends a known field by its id; with a value of our own making. */
int fields_add_id(struct fields *fields, enum field_id id, struct span value);

/* The first field with that id, or NULL; by name in any case; the next one after a field. */
struct field *fields_find(const struct fields *fields, enum field_id id);
struct field *fields_find_name(const struct fields *fields, struct span name);
struct field *fields_next(const struct fields *fields, const struct field *after);

/* The value of the first such field, or an empty span with data NULL. */
struct span fields_value(const struct fields *fields, enum field_id id);

/* Removes every field with that id; those left keep their order. */
void fields_remove(struct fields *fields, enum field_id id);

/* How often the id occurs. */
unsigned fields_count(const struct fields *fields, enum field_id id);

/* Whether any field of that id, as one comma-separated list, holds the token (case folded). */
bool fields_has_token(const struct fields *fields, enum field_id id, struct span token);

/* Walks all fields. */
#define fields_for_each(field, fields) \
    for (struct field *field = (fields)->items; field < (fields)->items + (fields)->size; field++)

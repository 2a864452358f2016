/* SPDX-License-Identifier: MIT */
#include "http/fields.h"

#include "base/ascii.h"

#include <errno.h>

enum { FIRST_ROOM = 24 }; /* browsers send 10 to 20 fields */

static int make_room(struct fields *fields)
{
    uint32_t room = fields->room ? fields->room * 2 : FIRST_ROOM;
    struct field *items;

    if (fields->size < fields->room)
        return 0;
    CHECK(fields->arena);
    items = arena_take(fields->arena, room * sizeof(*items));
    if (!items)
        return -ENOMEM;
    if (fields->size)
        memcpy(items, fields->items, fields->size * sizeof(*items));
    fields->items = items;
    fields->room = room;
    return 0;
}

static int add(struct fields *fields, struct span name, struct span value, enum field_id id)
{
    int error = make_room(fields);

    if (error)
        return error;
    fields->items[fields->size++] = (struct field){.name = name, .value = value, .id = id};
    return 0;
}

void fields_init(struct fields *fields, struct arena *arena)
{
    *fields = (struct fields){.arena = arena};
}

int fields_add(struct fields *fields, struct span name, struct span value)
{
    return add(fields, name, value, http_field_id(name));
}

int fields_add_id(struct fields *fields, enum field_id id, struct span value)
{
    return add(fields, http_field_name(id), value, id);
}

struct field *fields_find(const struct fields *fields, enum field_id id)
{
    fields_for_each (field, fields) {
        if (field->id == id)
            return field;
    }
    return NULL;
}

struct field *fields_find_name(const struct fields *fields, struct span name)
{
    fields_for_each (field, fields) {
        if (ascii_equal_fold(field->name, name))
            return field;
    }
    return NULL;
}

struct field *fields_next(const struct fields *fields, const struct field *after)
{
    struct field *end = fields->items + fields->size;

    for (struct field *field = fields->items + (after - fields->items) + 1; field < end; field++) {
        if (field->id != after->id)
            continue;
        if (field->id != FIELD_OTHER || ascii_equal_fold(field->name, after->name))
            return field;
    }
    return NULL;
}

struct span fields_value(const struct fields *fields, enum field_id id)
{
    const struct field *field = fields_find(fields, id);

    return field ? field->value : (struct span){NULL, 0};
}

void fields_remove(struct fields *fields, enum field_id id)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < fields->size; i++) {
        if (fields->items[i].id != id)
            fields->items[kept++] = fields->items[i];
    }
    fields->size = kept;
}

unsigned fields_count(const struct fields *fields, enum field_id id)
{
    unsigned count = 0;

    fields_for_each (field, fields)
        count += field->id == id;
    return count;
}

bool fields_has_token(const struct fields *fields, enum field_id id, struct span token)
{
    fields_for_each (field, fields) {
        if (field->id == id && ascii_list_has(field->value, token))
            return true;
    }
    return false;
}

/* SPDX-License-Identifier: MIT */
#include "config/directive.h"

#include "base/ascii.h"
#include "base/base.h"
#include "config/config.h"

#include <limits.h>

/* The struct of each section as a type name, so that a row can name a member. */
#define SECTION(constant, object, place, heading, text) typedef object section_##constant;
#include "config/section.def"
#undef SECTION

static const struct directive table[] = {
#define ROW(in, word, kind, member, value, developing, least, most, text) \
    {.section = SECTION_##in,                                             \
     .name = #word,                                                       \
     .type = TYPE_##kind,                                                 \
     .offset = offsetof(section_##in, member),                            \
     .fallback = value,                                                   \
     .development = developing,                                           \
     .low = least,                                                        \
     .high = most,                                                        \
     .help = text},
#define LATER(in, word, text) \
    {.section = SECTION_##in, .name = #word, .type = TYPE_LATER, .help = text},
#include "config/directive.def"
#undef ROW
#undef LATER
};

static const struct {
    const char *place;
    const char *heading;
    const char *text;
} sections[] = {
#define SECTION(constant, object, place, heading, text) \
    [SECTION_##constant] = {place, heading, text},
#include "config/section.def"
#undef SECTION
};

enum shape { SHAPE_SCALAR, SHAPE_LIST, SHAPE_PART };

static const struct {
    const char *expects;
    enum shape shape;
} types[] = {
#define SCALAR(constant, expects) [TYPE_##constant] = {expects, SHAPE_SCALAR},
#define LIST(constant, expects)   [TYPE_##constant] = {expects, SHAPE_LIST},
#define PART(constant, expects)   [TYPE_##constant] = {expects, SHAPE_PART},
#include "config/type.def"
#undef SCALAR
#undef LIST
#undef PART
};

const struct directive *directives(size_t *ret_size)
{
    *ret_size = ARRAY_LEN(table);
    return table;
}

const struct directive *directive_find(enum section section, struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].section == section && span_is(name, table[i].name))
            return &table[i];
    return NULL;
}

const struct directive *directive_find_anywhere(struct span name)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (span_is(name, table[i].name))
            return &table[i];
    return NULL;
}

const char *directive_nearest(unsigned wanted, struct span name)
{
    const char *nearest = NULL;
    unsigned least = UINT_MAX;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        unsigned distance = ascii_distance(name, span_of(table[i].name));

        if (!(wanted & 1u << table[i].section) || (nearest && distance >= least))
            continue;
        nearest = table[i].name;
        least = distance;
    }
    return nearest;
}

const char *section_place(enum section section)
{
    return sections[section].place;
}

const char *section_heading(enum section section)
{
    return sections[section].heading;
}

const char *section_text(enum section section)
{
    return sections[section].text;
}

const char *type_expects(enum type type)
{
    return types[type].expects;
}

bool type_is_list(enum type type)
{
    return types[type].shape == SHAPE_LIST;
}

bool type_is_part(enum type type)
{
    return types[type].shape == SHAPE_PART;
}

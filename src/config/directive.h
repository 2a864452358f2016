/* SPDX-License-Identifier: MIT */
/*
 * The table of directives: what the file may say, where each value goes and what it may be. Constant
 * data made from directive.def; binding, printing and the manual all walk it. Any thread.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

enum section {
#define SECTION(constant, object, place, heading, text) SECTION_##constant,
#include "config/section.def"
#undef SECTION
};

enum type {
#define SCALAR(constant, expects) TYPE_##constant,
#define LIST(constant, expects)   TYPE_##constant,
#define PART(constant, expects)   TYPE_##constant,
#include "config/type.def"
#undef SCALAR
#undef LIST
#undef PART
};

struct directive {
    enum section section;
    const char *name;
    enum type type;
    size_t offset;           /* of the member in the section's struct */
    const char *fallback;    /* the default as it would be written, or NULL */
    const char *development; /* the default in development, NULL = the same */
    uint64_t low, high;      /* bounds of numbers; 0, 0 = any */
    const char *help;
};

/* The whole table; *ret_size is its length. */
const struct directive *directives(size_t *ret_size);

/* The directive of that name in a section, or NULL. */
const struct directive *directive_find(enum section section, struct span name);

/* The first directive of that name in any section, or NULL. */
const struct directive *directive_find_anywhere(struct span name);

/* The name in any of the sections (bits 1 << section) that is nearest to a wrong one, or NULL when
 * they have none. */
const char *directive_nearest(unsigned sections, struct span name);

/* A section's name in faults, its heading and introduction; what a type expects; whether it is a list of texts, or has
 * an inside of its own. */
const char *section_place(enum section section);
const char *section_heading(enum section section);
const char *section_text(enum section section);
const char *type_expects(enum type type);
bool type_is_list(enum type type);
bool type_is_part(enum type type);

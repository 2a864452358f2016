/* SPDX-License-Identifier: MIT */
/*
 * Content codings (RFC 9110 8.4, 12.5.3): which one a client wants, and what is worth coding. Pure; any
 * thread.
 */
#pragma once

#include "http/fields.h"

enum coding {
    CODING_IDENTITY, /* none */
#define ROW(constant, name, ending) CODING_##constant,
#include "http/coding.def"
#undef ROW
    CODING_COUNT
};

/* What the Accept-Encoding fields of a request say: thousandths per coding, 0 = not acceptable. */
struct coding_wish {
    uint16_t quality[CODING_COUNT];
};

/* Reads the wish. Without the field nobody asked for a coding; an element that cannot be read names
 * nothing acceptable. */
struct coding_wish coding_read_wish(const struct fields *request);

/* The most wanted of the codings offered, of equals the first, identity last. CODING_IDENTITY also when
 * nothing is acceptable: an answer that may be of use is better than none (RFC 9110 12.5.3). */
enum coding coding_choose(const struct coding_wish *wish, const enum coding *offered, size_t count);

/* Whether bytes of that content type usually become much smaller: texts by whatever name. */
bool coding_is_worthwhile(struct span content_type);

/* The coding's name in fields, and the ending of files in it; empty for identity. */
struct span coding_name(enum coding coding);
struct span coding_ending(enum coding coding);

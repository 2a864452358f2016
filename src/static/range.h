/* SPDX-License-Identifier: MIT */
/*
 * Byte ranges (RFC 9110 14): which parts of a file a Range field asks for. Pure; any thread.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

enum { RANGE_MAX = 16 }; /* parts of one answer; a field that asks for more is ignored */

struct range {
    uint64_t first; /* index of the first byte */
    uint64_t size;  /* bytes, at least 1 */
};

enum range_answer {
    RANGE_WHOLE, /* the field is none that we follow: the whole file, 200 */
    RANGE_PARTS, /* 206 */
    RANGE_NONE   /* nothing of it lies in the file: 416 */
};

/* Reads a Range field's value for a file of length bytes. With RANGE_PARTS, *ret_count parts stand in
 * ret_parts in the order asked for; together they are no longer than the file, so that asking for the
 * same bytes again and again gains nothing (RFC 9110 14.2). */
enum range_answer range_parse(struct span value, uint64_t length,
                              struct range ret_parts[static RANGE_MAX], unsigned *ret_count);

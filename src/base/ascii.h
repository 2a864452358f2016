/* SPDX-License-Identifier: MIT */
/*
 * Locale-free character classes and case folding of protocol bytes. Pure.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

enum {
    ASCII_TOKEN = 1, /* tchar, RFC 9110 5.6.2 */
    ASCII_DIGIT = 2,
    ASCII_HEX = 4,
    ASCII_ALPHA = 8,
    ASCII_VALUE = 16, /* may stand in a field value: HTAB, SP..~, 0x80..0xff (RFC 9110 5.5) */
    ASCII_TARGET = 32 /* may stand in a request target: '!'..'~' and 0x80..0xff */
};

/* The classes of each byte, a sum of the above. */
extern const uint8_t ascii_classes[256];

static inline bool ascii_is(char byte, unsigned classes)
{
    return ascii_classes[(unsigned char)byte] & classes;
}

/* The byte with A-Z folded to a-z (a-z to A-Z). */
static inline char ascii_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
}

static inline char ascii_upper(char byte)
{
    return byte >= 'a' && byte <= 'z' ? (char)(byte - 32) : byte;
}

/* The value of a hexadecimal digit, or -1. */
int ascii_hex(char byte);

/* Whether every byte of a non-empty span is of one of the classes. */
bool ascii_all(struct span span, unsigned classes);

/* Equality with A-Z folded. */
bool ascii_equal_fold(struct span a, struct span b);

/* Whether a comma-separated list (RFC 9110 5.6.1) holds the token, case folded. */
bool ascii_list_has(struct span list, struct span token);

/* Edit distance of two short words (up to 63 bytes, else a large number), for "did you mean". */
unsigned ascii_distance(struct span a, struct span b);

/* SPDX-License-Identifier: MIT */
/*
 * Strict numbers: the whole span must be the number; overflow, signs, blanks and empty spans fail.
 * Pure; on failure *ret_value is untouched.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* Digits only, up to 2^64-1 (RFC 9110 8.6 content-length is this, with its own ceiling). */
bool num_decimal(struct span text, uint64_t *ret_value);

/* Hexadecimal digits of either case, no prefix (chunk sizes, RFC 9112 7.1). */
bool num_hex(struct span text, uint64_t *ret_value);

/* "65536", "64k", "10m", "2g" (powers of 1024; either case) in bytes. */
bool num_size(struct span text, uint64_t *ret_bytes);

/* "250ms", "30s", "5m", "1h", or a bare number of seconds, in milliseconds. */
bool num_time(struct span text, uint64_t *ret_ms);

/* "3" (both ends the same) or "2..6" with low <= high. */
bool num_range(struct span text, uint32_t *ret_low, uint32_t *ret_high);

/* Octal digits up to 07777, as file modes are written: "0660" or "660". */
bool num_mode(struct span text, uint32_t *ret_mode);

/* Writes the decimal digits of value to out (20 bytes are enough) and returns how many. */
size_t num_format(uint64_t value, char *out);

/* SPDX-License-Identifier: MIT */
/*
 * Strings of any bytes, as programs and as people read them. Pure.
 */
#pragma once

#include "base/buf.h"

/* Appends the text in quotes, as JSON; what is no UTF-8 becomes U+FFFD. 0 or -ENOMEM. */
int text_add_json(struct buf *out, struct span text);

/* Appends the text without the bytes that a terminal would obey. 0 or -ENOMEM. */
int text_add_plain(struct buf *out, struct span text);

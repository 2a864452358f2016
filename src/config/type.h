/* SPDX-License-Identifier: MIT */
/*
 * Single values: from the text of the file, an option or the environment into a member of a struct,
 * and back into text. Pure, but for names in the hosts file.
 */
#pragma once

#include "base/arena.h"
#include "config/config.h"
#include "config/directive.h"

/* What reading needs besides the text. */
struct type_context {
    struct arena *arena;
    const char *folder; /* relative paths begin here */
};

/* Whether the text is one of `off`, `no`, `false`. */
bool type_is_off(struct span text);

/* The absolute form of a path, without `./` and doubled slashes; `..` is kept. */
const char *type_path(const struct type_context *context, struct span text);

/* Reads a scalar into the member at *ret_member. NULL, or what is wrong with it. */
const char *type_read(const struct type_context *context, const struct directive *directive,
                      struct span text, void *ret_member);

/* Reads one item of a list and appends it to the struct config_strings at *ret_member. */
const char *type_read_item(const struct type_context *context, const struct directive *directive,
                           struct span text, struct config_strings *ret_member);

/* The member as it would be written in the file; "off" when there is none. */
const char *type_format(struct arena *arena, const struct directive *directive, const void *member);

/* A number in the units of its type: 65536 as "64k", 90000 as "90s". */
const char *type_format_number(struct arena *arena, enum type type, uint64_t value);

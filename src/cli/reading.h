/* SPDX-License-Identifier: MIT */
/*
 * The status of a running server as the command line reads it: the JSON of `leat status --json`, which is
 * YAML as well, as a tree. Values that are missing read as nothing. The verb's thread only; all texts
 * live as long as the reading.
 */
#pragma once

#include "cli/server.h"
#include "config/yaml.h"

struct reading {
    struct arena arena;
    const struct yaml *root;
};

/* Reads the text; false when it is no JSON object. The reading must be given to reading_done either way. */
bool reading_parse(struct span json, struct reading *ret_reading);

/* Asks the server of the call. Unless the outcome is SERVER_OK its user has been told. */
enum server_outcome reading_ask(const struct cli_call *call, struct reading *ret_reading);

void reading_done(struct reading *reading);

/* The value of a key; NULL is harmless as a map, and comes back when there is none. */
const struct yaml *reading_find(const struct yaml *map, const char *key);

/* The whole part of a number, 0 when there is none. */
uint64_t reading_number(const struct yaml *map, const char *key);

/* A text, "" when there is none. */
const char *reading_text(const struct yaml *map, const char *key);

/* How many items a list has, and one of them. */
size_t reading_size(const struct yaml *list);
const struct yaml *reading_item(const struct yaml *list, size_t index);

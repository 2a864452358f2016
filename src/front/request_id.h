/* SPDX-License-Identifier: MIT */
/*
 * Request ids: a client's own is kept when its form is harmless, else one is made. Ids are for finding
 * lines of a log, not secrets.
 */
#pragma once

#include "base/arena.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum { REQUEST_ID_SIZE = 32, REQUEST_ID_MAX = 255 };

/* One loop's source of ids. */
struct request_ids {
    uint64_t state[2];
};

/* Seeds it from the system's random numbers. */
void request_ids_init(struct request_ids *ids);

/* Whether a client's id may be kept: 1 to 255 letters, digits, '-', '_', '@'. */
bool request_id_is_valid(struct span id);

/* Writes 32 hexadecimal digits to out. */
void request_id_make(struct request_ids *ids, char out[REQUEST_ID_SIZE]);

/* given, when valid, else a new one in the arena; empty when memory is out. */
struct span request_id_choose(struct request_ids *ids, struct span given, struct arena *arena);

/* SPDX-License-Identifier: MIT */
/*
 * Span -> pointer hash map, seeded once per process so that clients cannot choose collisions. Keys
 * are copied, values are not owned. One thread; out of memory ends the process (not for data whose
 * size a client chooses).
 *
 * Invariant: a map of zeros is valid and empty.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct map_entry {
    struct span key; /* owned by the map; key.data NULL marks a free entry */
    void *value;
    uint64_t hash;
};

struct map {
    struct map_entry *entries; /* owned, a power of two of them */
    size_t room;
    size_t size;
};

/* The value of that key, or NULL. */
void *map_find(const struct map *map, struct span key);

/* Sets the key's value and returns the former one, or NULL. value must not be NULL. */
void *map_set(struct map *map, struct span key, void *value);

/* Removes the key and returns its value, or NULL. */
void *map_remove(struct map *map, struct span key);

/* Frees the map's own memory; it is empty and usable again. */
void map_done(struct map *map);

/* Walks all entries in no order; the map must not change meanwhile. */
#define map_for_each(entry, map)                                                                  \
    for (struct map_entry *entry = (map)->entries; entry < (map)->entries + (map)->room; entry++) \
        if (entry->key.data)

/* Seeded hash of bytes (SipHash-like strength is not needed; the seed is random per process). */
uint64_t map_hash(struct span key);

/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_ROOM = 16 };

/* Process-wide: a seed per map would cost a system call per map and protects no better. Written once
 * under seed_once, read-only afterwards; a forked child keeps it, as tables inherited from the
 * parent are hashed with it. */
static uint64_t seed[2];
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void make_seed(void)
{
    struct timespec now;
    ssize_t got;

    do
        got = getrandom(seed, sizeof(seed), 0);
    while (got == -1 && errno == EINTR);
    if (got == (ssize_t)sizeof(seed))
        return;

    /* Kernels and sandboxes without getrandom: the clock and our addresses are better than nothing. */
    clock_gettime(CLOCK_REALTIME, &now);
    seed[0] = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
    seed[1] = (uint64_t)(uintptr_t)&now ^ (uint64_t)getpid() << 48;
}

static uint64_t load(const char *bytes, size_t size)
{
    uint64_t word = 0;

    memcpy(&word, bytes, size);
    return word;
}

/* The two halves of a 128-bit product folded together: every input bit reaches every output bit. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t map_hash(struct span key)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    const char *bytes = key.data;
    size_t left = key.size;
    uint64_t hash;

    (void)pthread_once(&seed_once, make_seed);
    hash = seed[0] ^ key.size;
    for (; left >= 8; bytes += 8, left -= 8)
        hash = mix(hash ^ load(bytes, 8), seed[1] | 1);
    if (left)
        hash = mix(hash ^ load(bytes, left), seed[1] | 1);
    return mix(hash ^ seed[1], odd);
}

/* The place of the key, or the free one where it belongs. There always is a free one: the map is at
 * most three quarters full. */
static struct map_entry *place_of(const struct map *map, struct span key, uint64_t hash)
{
    size_t at = hash & (map->room - 1);

    while (map->entries[at].key.data) {
        if (map->entries[at].hash == hash && span_equal(map->entries[at].key, key))
            break;
        at = (at + 1) & (map->room - 1);
    }
    return &map->entries[at];
}

void *map_find(const struct map *map, struct span key)
{
    struct map_entry *entry;

    if (map->size == 0)
        return NULL;
    entry = place_of(map, key, map_hash(key));
    return entry->key.data ? entry->value : NULL;
}

static void enlarge(struct map *map)
{
    struct map bigger = {.room = map->room ? map->room * 2 : FIRST_ROOM, .size = map->size};

    bigger.entries = must_alloc(bigger.room, sizeof(*bigger.entries));
    map_for_each (entry, map)
        *place_of(&bigger, entry->key, entry->hash) = *entry;
    free(map->entries);
    *map = bigger;
}

/* Never NULL, also for an empty key: NULL marks a free entry. */
static struct span copy_key(struct span key)
{
    char *copy = must_alloc(1, key.size + 1);

    if (key.size)
        memcpy(copy, key.data, key.size);
    return span_make(copy, key.size);
}

void *map_set(struct map *map, struct span key, void *value)
{
    uint64_t hash = map_hash(key);
    struct map_entry *entry;
    void *former;

    CHECK(value);
    if (map->size + 1 > map->room / 4 * 3)
        enlarge(map);
    entry = place_of(map, key, hash);
    if (!entry->key.data) {
        *entry = (struct map_entry){copy_key(key), value, hash};
        map->size++;
        return NULL;
    }
    former = entry->value;
    entry->value = value;
    return former;
}

/* Fills the hole with a later entry of the same run that may stand there, until the run ends:
 * searches stop at free entries, so none may lie between an entry and its home. */
static void close_hole(struct map *map, size_t hole)
{
    size_t mask = map->room - 1;

    for (size_t at = (hole + 1) & mask; map->entries[at].key.data; at = (at + 1) & mask) {
        size_t home = map->entries[at].hash & mask;

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole] = (struct map_entry){{NULL, 0}, NULL, 0};
}

void *map_remove(struct map *map, struct span key)
{
    struct map_entry *entry;
    void *value;

    if (map->size == 0)
        return NULL;
    entry = place_of(map, key, map_hash(key));
    if (!entry->key.data)
        return NULL;
    value = entry->value;
    free((char *)entry->key.data);
    close_hole(map, (size_t)(entry - map->entries));
    map->size--;
    return value;
}

void map_done(struct map *map)
{
    map_for_each (entry, map)
        free((char *)entry->key.data);
    free(map->entries);
    *map = (struct map){0};
}

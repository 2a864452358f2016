/* SPDX-License-Identifier: MIT */
/*
 * A front's requests in bytes, for master who asked: entries one behind the other, each a head of fixed
 * size and its strings. Bounded, whatever clients send. Pure; master believes nothing of it. Another form
 * needs another word in message.def, so that programs of different builds notice.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LISTING_MAX = 1024 * 1024, /* bytes of one loop's listing */
    LISTING_NAME = 64,         /* bytes of a string that are kept: pool, client */
    LISTING_METHOD = 32,
    LISTING_ID = 255,
    LISTING_PATH = 1024
};

/* One request. Spans of an entry that was read point into the bytes it was read from. */
struct listing_entry {
    uint32_t stage; /* enum rack_stage */
    uint32_t pid;   /* of the worker; 0 = none */
    uint64_t age_us;
    uint64_t run_us; /* 0 = it was not begun */
    struct span pool, method, path, client, id;
};

/* Appends an entry, its strings cut to their bounds. False when the listing is full, or memory is out. */
bool listing_add(struct buf *out, const struct listing_entry *entry);

/* Takes the next entry off the bytes. False at their end, and at the first byte that cannot be right. */
bool listing_next(struct span *bytes, struct listing_entry *ret_entry);

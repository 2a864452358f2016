/* SPDX-License-Identifier: MIT */
/*
 * What waits and runs in all fronts, the oldest first, in the two forms of `leat requests`. Pure.
 */
#pragma once

#include "board/board.h"
#include "front/listing.h"

/* Zeros are an empty table. */
struct request_table {
    struct listing_entry *entries; /* owned; their spans point into the listings */
    uint32_t size, room;
    uint64_t left_out;        /* requests that found no room in their front's listing */
    int silent[BOARD_FRONTS]; /* PIDs of fronts that did not answer */
    uint32_t silent_size;
};

/* Adds what a front has listed; the bytes outlive the table. */
void request_table_add(struct request_table *table, struct span listing);

/* Puts the oldest first. */
void request_table_sort(struct request_table *table);

/* Appends a line for each, under a heading; or says that there is nothing. 0 or -ENOMEM. */
int request_table_text(const struct request_table *table, struct buf *out);

/* Appends one JSON object with its line end. 0 or -ENOMEM. */
int request_table_json(const struct request_table *table, struct buf *out);

/* Appends a line for each request that was ended by hand. 0 or -ENOMEM. */
int request_table_ended(const struct request_table *table, struct buf *out);

void request_table_done(struct request_table *table);

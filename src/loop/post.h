/* SPDX-License-Identifier: MIT */
/*
 * "Run this on that loop": the way from any thread of the process into a loop's thread (eventfd).
 */
#pragma once

#include "base/list.h"

struct loop;
struct post;

/* A message embedded by its sender; it belongs to the post box until run is called. */
struct post_item {
    struct list link;
    void (*run)(struct post_item *item); /* called on the loop's thread */
};

/* Opens a box on a loop (its own thread calls); NULL when the system refuses. */
struct post *post_new(struct loop *loop);

/* Closes it; items not yet run are run first. */
void post_free(struct post *post);

/* Hands an item over; any thread. Items of one sender run in order. */
void post_send(struct post *post, struct post_item *item);

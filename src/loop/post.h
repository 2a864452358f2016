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

/* The loop that it is on; any thread. */
struct loop *post_loop(const struct post *post);

/* Closes it (its loop's thread, not from within an item); items not yet run are run first. No one may
 * send any more. Takes NULL. */
void post_free(struct post *post);

/* Hands an item over; any thread. Items of one sender run in order; an item may be sent again or
 * freed from its run. */
void post_send(struct post *post, struct post_item *item);

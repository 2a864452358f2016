/* SPDX-License-Identifier: MIT */
/*
 * The front's end of the descriptor socket (board/descriptor.h): spooled request bodies go to workers,
 * open files come from them. One per pool and front, on one loop; a question about a slot of another
 * loop is answered on that loop, as only it knows its slots.
 */
#pragma once

#include "loop/post.h"
#include "upstream/rack.h"

struct rack_descriptors;

struct rack_descriptor_options {
    struct loop *loop; /* where connections live: that of posts[home] */
    uint32_t home;
    int listener; /* not owned */
    const struct board *board;
    struct rack *const *racks; /* [board->shape.loops] */
    struct post *const *posts; /* [board->shape.loops] */
};

/* NULL when the system refuses. The options' arrays outlive it. */
struct rack_descriptors *rack_descriptors_open(const struct rack_descriptor_options *options);

/* Only when no loop runs any more. Takes NULL. */
void rack_descriptors_close(struct rack_descriptors *descriptors);

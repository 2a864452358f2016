/* SPDX-License-Identifier: MIT */
/*
 * Memory of connections that have gone: the allocator keeps what lies between pieces in use, so when most
 * of a crowd has left, a file thread gives it back to the system. One loop each.
 */
#pragma once

#include "loop/offload.h"

#include <stdbool.h>
#include <stdint.h>

/* Embedded in a loop, which sets the first two and leaves the rest zero. */
struct trim {
    struct offload *offload;
    struct post *post;
    struct offload_job job;
    uint32_t peak; /* of connections since it was sent last */
    uint32_t open;
    bool busy;
};

/* The loop has so many connections now. */
void trim_note(struct trim *trim, uint32_t open);

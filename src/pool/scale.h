/* SPDX-License-Identifier: MIT */
/*
 * How many workers a pool should have. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scale {
    uint32_t min;
    uint32_t max;     /* by configuration, or the processors allowed when it is automatic */
    uint32_t fits;    /* workers that fit into memory, at least 1 */
    bool demanded;    /* requests have come for a pool that starts on demand (min 0) */
    int32_t adjust;   /* workers more or less by TTIN and TTOU */
    uint32_t entries; /* of the board's worker table */
};

/* The wanted number of workers: at least 1, save for a pool on demand that nobody has asked for, and at
 * most what half of the worker table holds: the other half is for those that retire. */
uint32_t scale_wanted(const struct scale *scale);

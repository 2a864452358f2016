/* SPDX-License-Identifier: MIT */
/*
 * The library of another memory allocator, which is loaded into workers ahead of the C library. Looked
 * for when the configuration is verified, and anew for every generation of workers. Any thread.
 */
#pragma once

/* The path of jemalloc's library on this machine, a constant; NULL when it is not installed. */
const char *allocator_find(void);

/* What to say then: what was looked for, and the remedy. */
const char *allocator_missing(void);

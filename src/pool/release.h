/* SPDX-License-Identifier: MIT */
/*
 * Which folders a pool's workers were loaded from. A generation's mold goes as soon as it is replaced, its
 * workers may live on for long, so the folder is kept here; of generations that are POOL_RELEASES restarts
 * apart the earlier one is forgotten.
 */
#pragma once

#include "pool/pool.h"

/* A worker of the generation is about to start. */
void release_note(struct pool *pool, const struct mold *mold);

/* The folder of a generation, or NULL when it is forgotten. */
const char *release_find(const struct pool *pool, uint32_t generation);

/* The folders that workers have loaded, newest generation first, each once, so many as fit; their number.
 * They are the pool's. */
uint32_t release_list(const struct pool *pool, const char **list, uint32_t room);

/* Frees what was kept. */
void release_done(struct pool *pool);

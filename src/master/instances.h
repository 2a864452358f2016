/* SPDX-License-Identifier: MIT */
/*
 * The instances of pools: made for an edition, kept by later ones that want the same, retired when no
 * edition has them any more, and freed with their last process.
 */
#pragma once

#include "base/saved.h"
#include "master/edition.h"

/* Finds the Ruby side of this server, which every instance needs. 0, or -1 with a fault. */
int instances_find_library(struct master *master, struct faults *faults);

/* Makes an instance of config->pools[number], without processes; the caller has the only reference. NULL
 * with a fault. */
struct master_pool *instances_new(struct edition *edition, uint32_t number, struct faults *faults);

/* Goes on with the settings that the edition has for it. */
void instances_change(struct master_pool *mine, const struct edition *edition, uint32_t number);
/* The same of an instance that another program has left. */
struct master_pool *instances_adopt(struct edition *edition, const struct config_pool *settings,
                                    const struct saved_in *in, struct faults *faults);

struct master_pool *instances_ref(struct master_pool *mine);

/* The last reference: its processes are retired. NULL is harmless. */
void instances_unref(struct master_pool *mine);

/* Counts its ended workers where fronts and status read them. */
void instances_count(struct master_pool *mine);

/* Its last process is gone; called from within the pool. */
void instances_empty(struct master_pool *mine);

/* Frees all that are left; no process of theirs is waited for. */
void instances_done(struct master *master);

/* A number for all settings that a pool's board and processes were made with: another one needs another
 * instance. */
uint64_t instances_shape(const struct config *config, const struct config_pool *settings,
                         uint32_t loops);

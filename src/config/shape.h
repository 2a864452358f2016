/* SPDX-License-Identifier: MIT */
/*
 * What decides over a pool's processes and their board: a pool of which only the rest has changed goes on
 * with them when a configuration is loaded anew. And what a running server cannot change at all. Pure.
 */
#pragma once

#include "config/config.h"

/* Whether processes that were started for the pool of the one configuration serve for that of the other. */
bool shape_is_same(const struct config *config, const struct config_pool *pool,
                   const struct config *other, const struct config_pool *other_pool);

/* Where the processes of a pool write to: a path, "stdout" or "stderr"; NULL = as the server does. A file
 * that the server's log names takes the application's output, too. */
const char *shape_log(const struct config *config, const struct config_pool *pool);

/* Takes from the former configuration what cannot change while the server runs. What somebody has tried to
 * change becomes one warning. The fresh one is nobody else's yet. */
void shape_keep_fixed(struct config *fresh, const struct config *former);

/* SPDX-License-Identifier: MIT */
/*
 * ${NAME} and ${NAME:-default} in a scalar come from the environment; $${NAME} stands for itself and
 * so does every other `$`. An empty variable counts as unset. Pure.
 */
#pragma once

#include "base/arena.h"

/* The value of an environment variable, or NULL when it is unset or empty. */
const char *expand_find(char **environ, struct span name);

/* Whether the text has something to expand; if not, it means itself. */
bool expand_is_needed(struct span text);

/* Writes the expanded text to *ret_text and returns NULL, or returns what is wrong. */
const char *expand(struct arena *arena, struct span text, char **environ, struct span *ret_text);

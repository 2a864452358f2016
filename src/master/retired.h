/* SPDX-License-Identifier: MIT */
/*
 * Fronts whose sockets another one has: they finish their requests, and keep streams to their end. There are
 * as many places for fronts as a board has entries; when all are taken, the one that has had only streams
 * for the longest must end them.
 */
#pragma once

#include "master/edition.h"

/* Every front of another edition than this one retires, emptying the sockets that were given up. */
void retired_begin(struct master *master, const struct edition *current);

/* Whether all of them have closed the sockets. */
bool retired_are_released(const struct master *master);

/* Makes the oldest that has streams only end them, one after the other; false when there is none. */
bool retired_make_room(struct master *master);

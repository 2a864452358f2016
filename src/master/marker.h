/* SPDX-License-Identifier: MIT */
/* `tmp/restart.txt`: each changed time of it restarts its pool. */
#pragma once

#include "master/state.h"

/* Remembers the time of now. */
void marker_note(struct master_pool *pool);

/* Looks every two seconds in which requests came. */
void marker_start(struct master *master);

/* SPDX-License-Identifier: MIT */
/* `tmp/restart.txt`: each changed time of it restarts its pool. */
#pragma once

#include "master/state.h"

/* Remembers the times of now, and looks every two seconds in which requests came. */
void marker_start(struct master *master);

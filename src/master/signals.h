/* SPDX-License-Identifier: MIT */
/* The signals of the main process, taken from a descriptor within the loop. */
#pragma once

#include "master/state.h"

/* Blocks them and watches for them; 0 or negative errno. */
int signals_open(struct master *master);

/* Ends the watch. */
void signals_close(struct master *master);

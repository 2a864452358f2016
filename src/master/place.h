/* SPDX-License-Identifier: MIT */
/* Where the server can be found: RUN, the control socket, its links. */
#pragma once

#include "master/state.h"

/* Makes RUN, listens on the control socket and links to it. 0, or -1 with a fault. */
int place_open(struct master *master, struct faults *faults);

/* Removes all of it that is still ours; the socket itself stays open. */
void place_close(struct master *master);

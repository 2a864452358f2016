/* SPDX-License-Identifier: MIT */
/* The log files: the server's, the access log, and one for each pool that has its own. */
#pragma once

#include "master/state.h"

/* Opens all of them; 0, or -1 with faults that name key and path. */
int logs_open(struct master *master, struct faults *faults);

/* Opens them anew under the same descriptors and tells the fronts. One that cannot be opened goes on as
 * it was, with a line. */
void logs_reopen(struct master *master);

void logs_close(struct master *master);

/* SPDX-License-Identifier: MIT */
/* The log files: the server's and the access log; a pool's own belongs to its instance. */
#pragma once

#include "master/edition.h"

/* Opens the server's and the access log of an edition; 0, or -1 with faults that name key and path. */
int logs_open(struct edition *edition, struct faults *faults);

/* Opens all of the current edition anew under the same descriptors and tells the fronts. One that cannot be
 * opened goes on as it was, with a line. */
void logs_reopen(struct master *master);

/* Hands the current edition's files to all fronts, and to whoever writes to the standard descriptors. */
void logs_tell_fronts(struct master *master);

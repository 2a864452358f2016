/* SPDX-License-Identifier: MIT */
/* The status of everything, gathered from pools, boards and counters (control/snapshot.h). */
#pragma once

#include "master/state.h"

/* Appends the status as JSON or as text. 0 or -ENOMEM. */
int report_write(const struct master *master, bool json, struct buf *out);

/* A memory file with the JSON, or negative errno. */
int report_file(const struct master *master);

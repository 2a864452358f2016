/* SPDX-License-Identifier: MIT */
/* What a user sees when the server is ready. */
#pragma once

#include "master/state.h"

/* Appends the banner: every URL, every pool, the PID. */
void banner_write(const struct master *master, double seconds, struct buf *out);

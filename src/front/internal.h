/* SPDX-License-Identifier: MIT */
/*
 * Files of a site's internal roots: no client can ask for them, but an application answers with one by
 * naming it in `x-accel-redirect`. Called by the exchange's loop.
 */
#pragma once

#include "front/process.h"

/* Answers with the file that the path (as the application wrote it) names; 404 and a log line when it
 * names none. The exchange's fields so far are kept. */
void internal_send(struct front_loop *loop, struct exchange *exchange, struct span path,
                   unsigned status);

/* SPDX-License-Identifier: MIT */
/*
 * The front's end of the socket to master: what master says is done or passed to all loops; what loops
 * have to say goes out at once, or waits on loop 0 while master is slow. And the pipe that tells of
 * master's end.
 */
#pragma once

#include "front/process.h"

struct channel;

/* Watches channel and death pipe on loop 0; before any loop runs. NULL when the system refuses. */
struct channel *channel_new(struct front *front);

/* When no loop runs any more. Sends what still waits. Takes NULL. */
void channel_free(struct channel *channel);

/* SPDX-License-Identifier: MIT */
/*
 * `leat requests` and `requests kill`: every front is asked, and answers are gathered until all have
 * answered, are gone, or a second is over: one that hangs does not hang the caller. Master's loop.
 */
#pragma once

#include "master/state.h"

/* Answers the call with what waits and runs. */
void requests_list(struct master *master, bool json, struct control_call *call);

/* Ends the requests with that id, and answers the call with what they were; as failed when there is none. */
void requests_kill(struct master *master, struct span id, struct control_call *call);

/* A front's answer; the descriptor stays the caller's. */
void requests_take(struct master *master, const struct master_front *front,
                   const struct front_message *message, int fd);

/* A front ended: no answer will come from it. */
void requests_front_gone(struct master *master, const struct master_front *front);

/* The server ends: whoever still waits gets what is there. */
void requests_end(struct master *master);

/* SPDX-License-Identifier: MIT */
/*
 * `backtrace` of the control socket: asks a worker what its threads do and hands its answer to whoever
 * called. Master's loop.
 */
#pragma once

#include "master/state.h"

/* Answers the call at once when there is no such worker, else when it has answered. */
void backtraces_ask(struct master *master, struct span argument, struct control_call *call);

/* A worker's answer is there: everybody gets it who asked for that worker. */
void backtraces_answer(struct master_pool *pool, uint32_t worker, bool ok, struct span text);

/* The server ends: whoever still waits is told so. */
void backtraces_stopped(struct master *master);

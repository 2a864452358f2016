/* SPDX-License-Identifier: MIT */
/* What callers of the control socket, and signals, ask of master. */
#pragma once

#include "master/state.h"

/* The control socket's callback; context is the struct master. */
void commands_run(void *context, enum control_command command, struct span argument,
                  struct control_call *call);

/* Asks every pool for a restart (USR1). */
void commands_restart_all(struct master *master);

/* A restart of a pool is over. */
void commands_restarted(struct master_pool *pool, uint32_t ticket, const char *failure);

/* Answers everybody who waits for the stop. */
void commands_stopped(struct master *master);

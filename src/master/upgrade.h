/* SPDX-License-Identifier: MIT */
/*
 * Exchanging the running program (`leat upgrade`, USR2). The new one is first run as a child that reads
 * what this one would leave, and the configuration, and says that it can go on from there; only then this
 * process becomes it. Until that moment nothing has changed, and a new program that cannot is a line in
 * the log and the words for whoever asked. One upgrade at a time; it waits for a start, a restart or a
 * reload under way, and gives way to a stop.
 */
#pragma once

#include "master/state.h"

/* Asks for it: by the program of that path, NULL = the one that stands where this one was started. The
 * caller is told the outcome; NULL = a signal, which only the log answers. */
void upgrade_ask(struct master *master, const char *binary, struct control_call *call);

/* Handles the end of the child that was tried; false when the PID is none of an upgrade. */
bool upgrade_child_ended(struct master *master, pid_t pid, int wait_status);

/* Gives it up: the server is being stopped. */
void upgrade_abandon(struct master *master);

/* This program has taken over and serves, or cannot: tells whoever waited for it. failure NULL: well. */
void upgrade_tell(struct master *master, const char *failure);

/* The control socket's callback for calls that another program has left. */
void upgrade_adopt_call(void *context, struct control_call *call);

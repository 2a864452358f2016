/* SPDX-License-Identifier: MIT */
/*
 * What a service manager is told (sd_notify): datagrams to the socket that NOTIFY_SOCKET names. READY when
 * the first worker serves, RELOADING while workers are exchanged, STOPPING, and signs of life when it has
 * set WATCHDOG_USEC for this process. Without NOTIFY_SOCKET all of it is silent.
 */
#pragma once

#include "master/state.h"

/* Finds out whether there is somebody to tell. */
void notify_open(struct master *master);

/* Begins the signs of life, also while the applications load. */
void notify_start_watchdog(struct master *master);

/* The server is ready; its pools have begun or finished a restart; a stop was asked for. */
void notify_ready(struct master *master);
void notify_settle(struct master *master);
void notify_stopping(struct master *master);

void notify_close(struct master *master);

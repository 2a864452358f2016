/* SPDX-License-Identifier: MIT */
/*
 * What a service manager is told (sd_notify): datagrams to the socket that NOTIFY_SOCKET names. READY when
 * the first worker serves, RELOADING while workers, configuration or binary are exchanged, STOPPING, a
 * STATUS line whenever it changes, how much patience a start or stop may need, and signs of life when it
 * has set WATCHDOG_USEC for this process. Without NOTIFY_SOCKET nobody is told; the words of the STATUS
 * stand in the title of the process all the same. Master's only thread.
 */
#pragma once

#include "master/state.h"

/* Finds out whether there is somebody to tell. */
void notify_open(struct master *master);

/* The applications load now: asks for the patience that this may take, and begins the signs of life. */
void notify_start(struct master *master);

/* The start has failed, in words. */
void notify_failed(struct master *master, const char *reason);

/* The server is ready. */
void notify_ready(struct master *master);

/* Configuration or binary are being exchanged; begins and ends may nest. */
void notify_changing(struct master *master, bool begins);

/* Something may have changed: a phase, a pool's state. Tells what did. */
void notify_settle(struct master *master);

/* A stop was asked for, which takes at most that long. */
void notify_stopping(struct master *master, uint64_t longest_ms);

void notify_close(struct master *master);

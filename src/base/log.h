/* SPDX-License-Identifier: MIT */
/*
 * One event, one line: `2026-12-01T10:00:00.123Z master 4711 warn pool=shop text key=value`. Lines go
 * to one descriptor per process with a single write, so that processes may share a file. Used by
 * front, pool, master and cli only; base, http, board and config return reasons instead. Any thread.
 */
#pragma once

#include "base/base.h"
#include "base/span.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Names the process in every line ("master", "front"); the string must outlive it. */
void log_name(const char *role);

/* Lines go to this descriptor from now on; -1 drops them. Does not own it. Default: 2. */
void log_to(int fd);

/* The descriptor lines go to, or -1. */
int log_fd(void);

/* Lines below this level are dropped. Default: LOG_INFO. */
void log_level(enum log_level level);

/* Writes one line: what happened to which object, why, and what follows. Control bytes in the text
 * are escaped. Lines that cannot be written at once are dropped and counted. */
void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

/* Lines dropped so far because the descriptor did not take them. */
unsigned long log_dropped(void);

/* May this event be logged now? At most once per interval and key (a small table of recent keys);
 * *ret_suppressed, when not NULL, says how many were held back since the last. */
bool log_allow(struct span key, unsigned interval_s, unsigned *ret_suppressed);

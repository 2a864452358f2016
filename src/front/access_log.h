/* SPDX-License-Identifier: MIT */
/*
 * The access log: lines are made on the loops, gathered per loop, and written by one thread, so that a
 * slow disk or a full pipe never holds up a request. What cannot be written is dropped and counted.
 *
 * A loop's buffer is handed over when it is large, and at the latest a second after its first line.
 */
#pragma once

#include "config/config.h"
#include "http/exchange.h"
#include "loop/timer.h"

#include <stdatomic.h>

struct access_log;

/* One loop's lines that were not handed over yet. */
struct access_log_buffer {
    struct access_log *log;
    struct loop *loop;
    struct buf bytes;
    uint64_t lines;
    struct timer timer;
};

/* Starts the writer. Owns fd from now on. dropped counts lines. NULL when the system refuses. */
struct access_log *access_log_new(int fd, enum config_log_format format, _Atomic uint64_t *dropped);

/* Writes what was handed over, for at most a second when it does not get away, and ends the thread.
 * Takes NULL. */
void access_log_free(struct access_log *log);

/* Further lines go to fd, which it owns; any thread. */
void access_log_reopen(struct access_log *log, int fd);

/* log NULL: lines are not even made. */
void access_log_buffer_init(struct access_log_buffer *buffer, struct access_log *log,
                            struct loop *loop);

/* Hands everything over; before the loop ends, and frees the buffer. */
void access_log_buffer_done(struct access_log_buffer *buffer);

/* Adds the line of an exchange that has ended; pool may be NULL. */
void access_log_add(struct access_log_buffer *buffer, const struct exchange *exchange,
                    const char *pool);

/* The status that goes into logs and counters: 499 for a client that left before the head. */
unsigned access_log_status(const struct exchange *exchange);

/* Appends one line in either format; wall_ms: when the exchange ended. For access_log_add and tests. */
int access_log_format_combined(struct buf *out, const struct exchange *exchange, uint64_t wall_ms);
int access_log_format_json(struct buf *out, const struct exchange *exchange, const char *pool,
                           uint64_t wall_ms);

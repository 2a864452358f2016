/* SPDX-License-Identifier: MIT */
/*
 * The queue is the slot table: the QUEUED slot with the lowest ticket is next. Tickets are compared
 * with wrap-around (32 bits). `header.high` bounds the scan: every slot from it up is FREE, or is being
 * filled by somebody who will raise it right after publishing (README 20 to 24).
 */
#pragma once

#include "board/slot.h"

/* Front: FILLING -> QUEUED with a fresh ticket, then raises the mark. The caller wakes a worker with
 * bell_wake_worker. False when the slot is not FILLING: somebody wrote over its word. */
bool queue_push(const struct board *board, uint32_t slot, uint64_t now_us);

/* Front: puts a slot that audit gave back from a dead worker into the queue again, with its old ticket
 * and the same turn. False when the word is not what the caller saw. */
bool queue_push_again(const struct board *board, uint32_t slot, struct slot_word seen,
                      uint32_t front);

/* Worker thread: takes the oldest request. Returns the slot, now TAKEN by this thread, or -1 when
 * nothing is queued. *ret_word is its word. */
int64_t queue_take(const struct board *board, uint32_t thread, struct slot_word *ret_word);

/* The age in microseconds of the oldest queued request, or -1 when none is queued. */
int64_t queue_oldest_us(const struct board *board, uint64_t now_us);

/* Whether nothing is queued now; ends at the first queued request. */
bool queue_is_empty(const struct board *board);

/* Number of requests QUEUED now, by a scan. */
uint32_t queue_length(const struct board *board);

/* Front: QUEUED -> CANCELLED if it is still queued in that turn; the caller then frees it. */
bool queue_cancel(const struct board *board, uint32_t slot, uint32_t turn);

/* The mark (README 20): how far a scan must go, raising it over a slot that was published, lowering it
 * after a slot became FREE. Front and master only. */
uint32_t queue_high(const struct board *board);
void queue_raise(const struct board *board, uint32_t slot);
void queue_lower(const struct board *board, uint32_t slot);

/* Master: puts the mark right after a front died between two steps. */
void queue_settle(const struct board *board);

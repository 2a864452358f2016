/* SPDX-License-Identifier: MIT */
/*
 * Giving back what a dead process held. Pure apart from the board: no clock, no allocation, no log; it
 * may be run again at any time, also after it was itself interrupted.
 */
#pragma once

#include "board/page.h"
#include "board/queue.h"

/* What a dead worker held, one call per slot. `word` is the slot's word as seen: TAKEN (the application
 * never saw the request), CALLED, REPLYING or DONE. The front decides: run again (queue_push_again) or
 * answer and slot_free. */
typedef void audit_visit(void *context, uint32_t slot, struct slot_word word);

/* Front: every slot of this front's that the worker held when it died; called once master has marked it
 * DEAD, and by a new front for every worker that is DEAD when it starts. front: only slots whose request
 * names this front and loop. An answer may be whole in the pages of a DONE or REPLYING slot: take them
 * first. A slot whose request was scribbled over is not shown; the front's own copy of what that worker
 * held decides. */
void audit_worker(const struct board *board, uint32_t worker, uint32_t front, uint32_t loop,
                  audit_visit *visit, void *context);

/* Front: this front has given back what it had in that worker; the last front to say so lets master use
 * the entry again (audit_worker_free). All loops of the front must be done. */
void audit_worker_done(const struct board *board, uint32_t worker, uint32_t front);

/* Master: when every live front has audited a DEAD worker, empties its pages, words and counters and
 * makes the entry FREE. Returns whether it is free now. Slots that it still held are freed: no live
 * front owns them. */
bool audit_worker_free(const struct board *board, uint32_t worker);

/* Master: a front died. Frees its FILLING, QUEUED, CANCELLED and DONE slots, marks those that workers
 * hold as LEFT, empties pages nobody will take and wakes the workers that wait for them. The entry must
 * be DEAD. Returns the number of slots that living workers still hold: the entry is FREE when it is 0, else
 * master asks again. */
uint32_t audit_front(const struct board *board, uint32_t front);

/* Checks every invariant of the board that holds whenever no party is between two steps; the first one
 * broken in words, or NULL. For tests and debug builds. */
const char *board_audit(const struct board *board);

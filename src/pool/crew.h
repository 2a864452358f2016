/* SPDX-License-Identifier: MIT */
/*
 * The workers of a pool: each function makes a step of one worker's life with all its effects on the
 * board, the process and the host. Part of the pool; called by pool.c and plan.c only.
 */
#pragma once

#include "pool/pool.h"

struct crew_count {
    uint32_t starting; /* of the current generation: asked for or starting */
    uint32_t serving;  /* of the current generation */
    uint32_t older;    /* of older generations, starting or serving */
    uint32_t trial;    /* of the next generation, starting */
    uint32_t going;    /* that retire, or were killed */
    uint32_t there;    /* processes of any kind */
};

struct crew_count crew_count(const struct pool *pool);

/* Asks the generation for one more worker; false when that failed (the pool has been told). */
bool crew_ask(struct pool *pool, struct mold *mold);

/* The mold has forked it; could not; it serves. */
void crew_forked(struct pool *pool, uint32_t index, pid_t pid);
void crew_refused(struct pool *pool, uint32_t index, const char *message);
void crew_ready(struct pool *pool, uint32_t index, pid_t pid);

/* A worker of this generation could not load and answers with the reason from now on. */
void crew_excuse(struct pool *pool, uint32_t index, uint32_t generation);

/* Everything asked of a mold that is gone will not come. */
void crew_forget_asked(struct pool *pool, uint32_t generation);

/* Lets it finish its requests; grace_ms later it is killed. */
void crew_retire(struct pool *pool, uint32_t index, enum exit_reason why, uint64_t grace_ms);
void crew_kill(struct pool *pool, uint32_t index);

/* Handles the end of one of the workers; false when the PID is none's. */
bool crew_ended(struct pool *pool, pid_t pid, int wait_status);

/* Every front has given back what the dead worker held: its entry may be used again. */
void crew_audited(struct pool *pool, uint32_t index);

/* Kills those whose time is over; returns the next deadline, or UINT64_MAX. */
uint64_t crew_check(struct pool *pool, uint64_t now_ms);

/* Requests wait although workers should be free: one that was stopped by a signal will not take them, and
 * is replaced. */
void crew_find_stopped(struct pool *pool, uint64_t now_ms);

/* The oldest worker that serves in a generation other (older) than the current, or of the current one
 * (surplus); -1 when there is none. */
int64_t crew_find_older(const struct pool *pool);
int64_t crew_find_surplus(const struct pool *pool);

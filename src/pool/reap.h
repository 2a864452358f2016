/* SPDX-License-Identifier: MIT */
/*
 * What the end of a worker means: its reason, and how long to wait before the next try. Pure; time is
 * brought by the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_reason {
#define ROW(constant, word) EXIT_##constant,
#include "pool/exit.def"
#undef ROW
    EXIT_REASONS,
    EXIT_NONE = EXIT_REASONS
};

/* The word for log and status. */
const char *exit_word(enum exit_reason reason);

/* The reason of a process's end: `why` it was told to go (EXIT_NONE: nobody did), and its wait
 * status. */
enum exit_reason exit_reason_of(enum exit_reason why, int wait_status);

/* Writes "exited with status 1" or "killed by signal 9 (KILL)" and returns out. */
const char *exit_describe(int wait_status, char *out, size_t room);

/*
 * Pauses between tries to start processes of one pool. A try that fails before the process serves costs
 * 1, 2, 4 ... 30 s; deaths of serving workers cost nothing until they become a storm.
 *
 * Invariant: until_ms is never moved back.
 */
struct backoff {
    uint32_t failures;  /* tries in a row that never served */
    uint32_t deaths;    /* serving workers that died young lately */
    uint64_t deaths_ms; /* when `deaths` was last reduced */
    uint64_t until_ms;  /* no try before */
};

enum {
    BACKOFF_MAX_MS = 30000,
    BACKOFF_YOUNG_MS = 5000,   /* a death sooner after `ready` is a sign of trouble */
    BACKOFF_FORGIVE_MS = 10000 /* half of the young deaths are forgotten after this */
};

/* A try failed before it served. noise: any random number, spreads the pause by up to an eighth. */
void backoff_fail(struct backoff *backoff, uint64_t now_ms, uint32_t noise);

/* A serving worker ended unasked after served_ms; free_deaths young ones are replaced at once. */
void backoff_die(struct backoff *backoff, uint64_t now_ms, uint64_t served_ms,
                 uint32_t free_deaths);

/* A try succeeded. */
void backoff_succeed(struct backoff *backoff);

/* Milliseconds until the next try is allowed, 0 = now. */
uint64_t backoff_wait_ms(const struct backoff *backoff, uint64_t now_ms);

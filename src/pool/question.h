/* SPDX-License-Identifier: MIT */
/*
 * What a worker's threads do, asked of the worker itself (README 14) and, when it gives no answer in time,
 * of the kernel. Each worker has at most one question open; who asks meanwhile gets the same answer. The
 * answer goes into the log (a worker that ran into `timeout`), to the pool's host (`leat backtrace`), or
 * both. Nothing waits for it but the end of a late worker. Master's only thread.
 */
#pragma once

#include "pool/pool.h"
#include "pool/protocol.h"

enum {
    QUESTION_MS = 2000,           /* so long a worker may take */
    QUESTION_BYTES = 512 * 1024,  /* longest answer */
    QUESTION_LOGGED_THREADS = 32, /* lines in the log */
};

/* What the answer is for. */
enum question_use { QUESTION_FOR_LOG = 1, QUESTION_FOR_HOST = 2 };

/* Asks the worker, or joins what is asked of it already. It must have a process. */
void question_ask(struct pool *pool, uint32_t index, enum question_use use);

/* A part of an answer came; false when it makes no sense. */
bool question_take(struct pool *pool, uint32_t index, const struct protocol_message *message);

/* Ends a question that has waited long enough, by what the kernel says. Returns when to look again, or
 * UINT64_MAX. */
uint64_t question_check(struct pool *pool, uint32_t index, uint64_t now_ms);

/* The worker is gone: what is there of the answer has to do. */
void question_end(struct pool *pool, uint32_t index);

/* Frees a question without an answer; takes NULL. */
void question_free(struct question *question);

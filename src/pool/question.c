/* SPDX-License-Identifier: MIT */
#include "pool/question.h"

#include "base/clock.h"
#include "base/log.h"
#include "board/bell.h"
#include "pool/autopsy.h"
#include "pool/plan.h"

#include <stdlib.h>

struct question {
    uint32_t number;
    unsigned uses; /* enum question_use */
    uint64_t deadline_ms;
    struct buf text;
};

void question_free(struct question *question)
{
    if (!question)
        return;
    buf_done(&question->text);
    free(question);
}

/* The number is in the entry before the bell is rung (board/README 47). */
static uint32_t put(struct pool *pool, uint32_t index)
{
    const struct board *board = &pool->instance.board;
    uint32_t number = atomic_fetch_add(&board->workers[index].question, 1) + 1;

    bell_ring_worker(board, index);
    return number;
}

void question_ask(struct pool *pool, uint32_t index, enum question_use use)
{
    struct worker *worker = &pool->workers[index];

    if (!worker->question) {
        worker->question = must_alloc(1, sizeof *worker->question);
        *worker->question =
            (struct question){.number = put(pool, index), .deadline_ms = clock_ms() + QUESTION_MS};
        plan_soon(pool);
    }
    worker->question->uses |= use;
}

/* "thread NAME ...", then its frames, each indented: one line of the log. Of a thread that only waits for
 * requests nothing is said. */
static void log_thread(const struct pool *pool, pid_t pid, struct span heading, struct span *rest)
{
    struct buf frames = {.size = 0};

    while (rest->size && rest->data[0] == ' ') {
        struct span frame = span_trim(span_split(rest, '\n'));
        if (frames.size < 4096)
            (void)buf_printf(&frames, "%s%.*s", frames.size ? " < " : ": ", SPAN_ARG(frame));
    }
    if (frames.size || !span_ends_with(heading, span_of("waits for a request")))
        log_error("pool=%s worker %d %.*s%.*s", pool->settings->name, (int)pid, SPAN_ARG(heading),
                  SPAN_ARG(buf_span(&frames)));
    buf_done(&frames);
}

static void log_threads(const struct pool *pool, pid_t pid, struct span text)
{
    for (unsigned count = 0; text.size && count < QUESTION_LOGGED_THREADS; count++) {
        struct span heading = span_split(&text, '\n');
        log_thread(pool, pid, heading, &text);
    }
}

/* Hands the answer to whoever wants it. The question is gone first: its takers may ask again. */
static void finish(struct pool *pool, uint32_t index, bool ok)
{
    struct worker *worker = &pool->workers[index];
    struct question *question = worker->question;

    worker->question = NULL;
    if (question->uses & QUESTION_FOR_LOG)
        log_threads(pool, worker->pid, buf_span(&question->text));
    if (question->uses & QUESTION_FOR_HOST)
        pool->options.host->on_backtrace(pool, index, ok, buf_span(&question->text));
    question_free(question);
    plan_soon(pool);
}

static void add(struct question *question, struct span part)
{
    size_t room = question->text.size < QUESTION_BYTES ? QUESTION_BYTES - question->text.size : 0;

    (void)buf_append(&question->text, span_first(part, part.size < room ? part.size : room));
}

bool question_take(struct pool *pool, uint32_t index, const struct protocol_message *message)
{
    struct question *question = pool->workers[index].question;
    uint64_t number, is_last;

    if (!protocol_get_number(message, "number", &number) ||
        !protocol_get_number(message, "last", &is_last))
        return false;
    /* An answer may come after we have stopped waiting for it. */
    if (!question || question->number != number)
        return true;
    add(question, protocol_get(message, "text"));
    if (is_last)
        finish(pool, index, true);
    return true;
}

/* What is there of an answer is kept: it is what the worker was able to say. */
static void ask_kernel(struct pool *pool, uint32_t index)
{
    struct worker *worker = &pool->workers[index];
    struct buf *text = &worker->question->text;

    (void)buf_printf(text,
                     "the worker gave no %sanswer within %.1f s: it is stopped, or something in C "
                     "holds Ruby's lock. Its threads as the kernel sees them:\n",
                     text->size ? "complete " : "", QUESTION_MS / 1000.0);
    (void)autopsy_write("/proc", worker->pid, text);
    finish(pool, index, true);
}

uint64_t question_check(struct pool *pool, uint32_t index, uint64_t now_ms)
{
    const struct question *question = pool->workers[index].question;

    if (!question)
        return UINT64_MAX;
    if (question->deadline_ms > now_ms)
        return question->deadline_ms;
    ask_kernel(pool, index);
    return UINT64_MAX;
}

void question_end(struct pool *pool, uint32_t index)
{
    struct question *question = pool->workers[index].question;

    if (!question)
        return;
    if (!question->text.size)
        (void)buf_append(&question->text,
                         span_of("the worker ended before it could say what it was doing\n"));
    finish(pool, index, false);
}

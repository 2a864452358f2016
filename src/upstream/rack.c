/* SPDX-License-Identifier: MIT */
#include "upstream/rack.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/audit.h"
#include "board/bell.h"
#include "board/queue.h"
#include "upstream/rack_crash.h"
#include "upstream/rack_table.h"

#include <stdlib.h>

static void on_fresh_due(struct timer *timer);

/* ---- Deadlines: the first look at every request comes after the same time, so that a list and one
 * timer serve all; only those that live longer get a timer of their own. ---- */

static uint64_t first_look_us(const struct rack_options *options)
{
    uint64_t queue_ms = options->queue_timeout_ms, answer_ms = options->timeout_ms;

    if (!queue_ms || (answer_ms && answer_ms < queue_ms))
        return answer_ms * 1000;
    return queue_ms * 1000;
}

static void set_fresh_timer(struct rack *rack)
{
    struct rack_job *first;
    uint64_t due_us, now_us = loop_now_us(rack->loop);

    if (list_is_empty(&rack->fresh) || timer_is_set(&rack->fresh_timer))
        return;
    first = CONTAINER_OF(rack->fresh.next, struct rack_job, fresh);
    due_us = first->queued_us + rack->first_look_us;
    timer_set(rack->loop, &rack->fresh_timer, due_us > now_us ? (due_us - now_us) / 1000 : 0,
              on_fresh_due);
}

static void watch_deadline(struct rack_job *job)
{
    if (!job->rack->first_look_us)
        return;
    list_push_back(&job->rack->fresh, &job->fresh);
    set_fresh_timer(job->rack);
}

static void forget_deadline(struct rack_job *job)
{
    list_remove(&job->fresh);
    timer_stop(&job->timer);
}

/* ---- The table ---- */

static struct rack_entry *entry_of(struct rack_job *job)
{
    return &job->rack->entries[job->slot];
}

void rack_forget(struct rack *rack, struct rack_entry *entry)
{
    entry->held = false;
    entry->job = NULL;
    list_remove(&entry->orphan);
    rack->held--;
}

void rack_set_stream(struct rack_job *job, bool is_stream)
{
    _Atomic uint64_t *streams = job->rack->options.counters.streams;

    if (streams && is_stream != job->is_stream)
        atomic_fetch_add_explicit(streams, is_stream ? 1 : (uint64_t)-1, memory_order_relaxed);
    job->is_stream = is_stream;
}

static void release_job(struct rack_job *job)
{
    forget_deadline(job);
    buf_done(&job->head);
    fd_close(&job->file_fd);
    fd_close(&job->tunnel_fd);
    rack_set_stream(job, false);
    job->exchange = NULL;
}

void rack_detach(struct rack_job *job)
{
    struct rack_entry *entry = entry_of(job);

    rack_note_service(job);
    entry->job = NULL;
    list_push_back(&job->rack->orphans, &entry->orphan);
    release_job(job);
}

void rack_give_back(struct rack_job *job)
{
    struct rack *rack = job->rack;
    uint32_t slot = job->slot;

    rack_detach(job);
    rack_forget(rack, &rack->entries[slot]);
    (void)slot_free(rack->options.board, slot);
}

static void hold(struct rack_job *job)
{
    struct rack *rack = job->rack;
    struct rack_entry *entry = entry_of(job);

    *entry = (struct rack_entry){.held = true, .turn = job->turn, .job = job};
    list_init(&entry->orphan);
    rack->held++;
    if (job->slot >= rack->top)
        rack->top = job->slot + 1;
}

void rack_refuse(struct rack_job *job, enum refusal refusal, enum slot_note note)
{
    struct exchange *exchange = job->exchange;

    slot_set_note(job->rack->options.board, job->slot, note);
    rack_detach(job);
    exchange_refuse(exchange, refusal);
}

void rack_break(struct rack_job *job, uint32_t worker, const char *reason)
{
    struct rack *rack = job->rack;
    struct exchange *exchange = job->exchange;

    log_error("pool=%s worker=%u answer is broken (%s), the worker is replaced id=%.*s %.*s %.*s",
              rack->options.pool, worker, reason, SPAN_ARG(exchange->id),
              SPAN_ARG(exchange->request.method_text), SPAN_ARG(exchange->request.path));
    rack_refuse(job, REFUSAL_BAD_ANSWER, SLOT_LEFT);
    rack->options.owner->on_broken(rack->options.owner_data, worker);
}

/* The board says that a slot is free which this loop still holds: somebody wrote over its word. Master
 * hears of it, and looks at the whole board. */
static void lose(struct rack *rack, uint32_t slot)
{
    struct rack_entry *entry = &rack->entries[slot];
    struct rack_job *job = entry->job;
    struct exchange *exchange = job ? job->exchange : NULL;

    log_error("pool=%s slot=%u was given away by somebody else, its request ends",
              rack->options.pool, slot);
    rack_want(rack, loop_now_us(rack->loop));
    if (job)
        rack_detach(job);
    rack_forget(rack, entry);
    if (exchange)
        exchange_refuse(exchange, REFUSAL_BAD_ANSWER);
}

/* ---- From request to queue ---- */

uint64_t rack_taken_us(struct rack_job *job)
{
    struct slot_request *request = slot_request(job->rack->options.board, job->slot);
    uint64_t now_us = loop_now_us(job->rack->loop);
    uint64_t taken_us;

    if (job->taken_us)
        return job->taken_us;
    taken_us = atomic_load_explicit(&request->taken_us, memory_order_relaxed);
    job->taken_us = taken_us < job->queued_us || taken_us > now_us ? now_us : taken_us;
    return job->taken_us;
}

static void shed(struct rack *rack, struct exchange *exchange, enum refusal refusal,
                 unsigned retry_s)
{
    rack_count(rack->options.counters.shed);
    rack_want(rack, loop_now_us(rack->loop));
    exchange->retry_s = retry_s;
    exchange_refuse(exchange, refusal);
}

static int64_t claim(struct rack *rack, uint32_t *ret_turn)
{
    const struct rack_options *options = &rack->options;
    int64_t slot = slot_claim(options->board, options->front, ret_turn);

    if (slot < 0 && rack_collect(rack))
        slot = slot_claim(options->board, options->front, ret_turn);
    if (slot >= 0 && rack->entries[slot].held)
        lose(rack, (uint32_t)slot);
    return slot;
}

static void on_resume(struct exchange *exchange);
static void on_cancel(struct exchange *exchange);

static const struct handler rack_handler = {
    .name = "rack",
    .resume = on_resume,
    .cancel = on_cancel,
};

static struct rack_job *new_job(struct rack *rack, struct exchange *exchange)
{
    struct rack_job *job = arena_zero(&exchange->arena, sizeof(*job));

    if (!job)
        return NULL;
    job->rack = rack;
    job->exchange = exchange;
    job->thread = RACK_NOBODY;
    job->file_fd = job->tunnel_fd = -1;
    job->queued_us = loop_now_us(rack->loop);
    list_init(&job->fresh);
    return job;
}

static void enqueue(struct rack_job *job)
{
    struct rack *rack = job->rack;

    job->exchange->handler = &rack_handler;
    job->exchange->handler_data = job;
    hold(job);
    watch_deadline(job);
    if (queue_push(rack->options.board, job->slot, job->queued_us))
        rack_wake(rack);
    else
        lose(rack, job->slot);
}

void rack_start(struct rack *rack, struct exchange *exchange)
{
    struct rack_job *job;
    unsigned retry_s;
    int64_t slot;

    if (rack_is_hopeless(rack, &retry_s)) {
        shed(rack, exchange, REFUSAL_QUEUE_LONG, retry_s);
        return;
    }
    job = new_job(rack, exchange);
    if (!job) {
        exchange_refuse(exchange, REFUSAL_OVERLOAD);
        return;
    }
    slot = claim(rack, &job->turn);
    if (slot < 0) {
        shed(rack, exchange, REFUSAL_QUEUE_FULL, rack_retry_s(rack, 1));
        return;
    }
    job->slot = (uint32_t)slot;
    if (!rack_fill(rack, job->slot, exchange)) {
        (void)slot_free(rack->options.board, job->slot);
        exchange_refuse(exchange, REFUSAL_FIELDS_LARGE);
        return;
    }
    enqueue(job);
}

/* ---- What waited too long ---- */

static void expire(struct rack_job *job)
{
    struct exchange *exchange = job->exchange;

    rack_count(job->rack->options.counters.expired);
    exchange->retry_s = rack_retry_s(job->rack, 0);
    rack_give_back(job);
    exchange_refuse(exchange, REFUSAL_QUEUE_TIMEOUT);
}

static void end_late(struct rack_job *job, uint32_t worker)
{
    struct rack *rack = job->rack;
    struct exchange *exchange = job->exchange;
    uint32_t slot = job->slot;

    log_warn("pool=%s worker=%u request ran over timeout=%llums, answered 504 id=%.*s %.*s %.*s",
             rack->options.pool, worker, (unsigned long long)rack->options.timeout_ms,
             SPAN_ARG(exchange->id), SPAN_ARG(exchange->request.method_text),
             SPAN_ARG(exchange->request.path));
    exchange->times.taken_us = rack_taken_us(job);
    rack_refuse(job, REFUSAL_APP_TIMEOUT, SLOT_LATE);
    rack->options.owner->on_late(rack->options.owner_data, worker, slot);
}

static void on_look_due(struct timer *timer);

static void look_again_in(struct rack_job *job, uint64_t delay_us)
{
    timer_set(job->rack->loop, &job->timer, delay_us / 1000, on_look_due);
}

static void look_at_queued(struct rack_job *job)
{
    const struct rack_options *options = &job->rack->options;
    uint64_t age_us = loop_now_us(job->rack->loop) - job->queued_us;
    uint64_t limit_us = options->queue_timeout_ms * 1000;
    uint64_t next_us = job->rack->first_look_us;

    if (limit_us && age_us >= limit_us && queue_cancel(options->board, job->slot, job->turn)) {
        expire(job);
        return;
    }
    /* It may be taken right behind this look: the next one comes within both limits. */
    if (limit_us > age_us && limit_us - age_us < next_us)
        next_us = limit_us - age_us;
    look_again_in(job, next_us);
}

static void look_at_taken(struct rack_job *job, uint32_t thread)
{
    const struct rack_options *options = &job->rack->options;
    uint64_t age_us = loop_now_us(job->rack->loop) - rack_taken_us(job);
    uint64_t limit_us = options->timeout_ms * 1000;

    if (!limit_us || job->exchange->response.status)
        return;
    if (age_us >= limit_us)
        end_late(job, board_worker_of(options->board, thread));
    else
        look_again_in(job, limit_us - age_us);
}

/* The slot's word carries another turn or a state that cannot follow: only a broken worker does that. */
static bool is_ours(const struct rack_job *job, struct slot_word word)
{
    return word.turn == job->turn && word.state >= SLOT_QUEUED && word.state <= SLOT_DONE;
}

static void look(struct rack_job *job)
{
    const struct board *board = job->rack->options.board;
    struct slot_word word = slot_look(board, job->slot);

    if (!is_ours(job, word))
        lose(job->rack, job->slot);
    else if (word.state == SLOT_QUEUED)
        look_at_queued(job);
    else
        look_at_taken(job, word.owner < board_thread_count(board) ? word.owner : 0);
}

static void on_look_due(struct timer *timer)
{
    look(CONTAINER_OF(timer, struct rack_job, timer));
}

static void on_fresh_due(struct timer *timer)
{
    struct rack *rack = CONTAINER_OF(timer, struct rack, fresh_timer);
    uint64_t now_us = loop_now_us(rack->loop);

    while (!list_is_empty(&rack->fresh)) {
        struct rack_job *job = CONTAINER_OF(rack->fresh.next, struct rack_job, fresh);

        if (job->queued_us + rack->first_look_us > now_us)
            break;
        list_remove(&job->fresh);
        look(job);
    }
    set_fresh_timer(rack);
}

/* ---- From the connection ---- */

static void on_resume(struct exchange *exchange)
{
    struct rack_job *job = exchange->handler_data;

    rack_hand_over(job);
    if (!job->is_held_back || exchange_is_full(exchange))
        return;
    job->is_held_back = false;
    if (job->thread != RACK_NOBODY)
        rack_take_thread(job->rack, job->thread);
}

static void on_cancel(struct exchange *exchange)
{
    struct rack_job *job = exchange->handler_data;
    const struct rack_options *options = &job->rack->options;

    if (job->thread == RACK_NOBODY && queue_cancel(options->board, job->slot, job->turn)) {
        rack_count(options->counters.abandoned);
        rack_give_back(job);
        return;
    }
    exchange->times.taken_us = rack_taken_us(job);
    slot_set_note(options->board, job->slot, SLOT_LEFT);
    rack_detach(job);
}

/* ---- Death of a worker ---- */

static void run_again(struct rack_job *job, struct slot_word word)
{
    struct rack *rack = job->rack;
    const struct rack_options *options = &rack->options;

    log_warn("pool=%s worker died with a request, which runs again id=%.*s %.*s %.*s",
             options->pool, SPAN_ARG(job->exchange->id),
             SPAN_ARG(job->exchange->request.method_text), SPAN_ARG(job->exchange->request.path));
    rack_count(options->counters.reruns);
    job->reruns += word.state != SLOT_TAKEN;
    job->thread = RACK_NOBODY;
    job->taken_us = 0;
    job->reply = (struct reply){0};
    job->is_held_back = false;
    buf_clear(&job->head);
    fd_close(&job->file_fd);
    fd_close(&job->tunnel_fd);
    if (!queue_push_again(options->board, job->slot, word, options->front)) {
        lose(rack, job->slot);
        return;
    }
    if (rack->first_look_us && list_is_empty(&job->fresh))
        look_again_in(job, rack->first_look_us);
    rack_wake(rack);
}

static void end_killed(struct rack_job *job, enum rack_fate fate)
{
    struct exchange *exchange = job->exchange;

    log_error("pool=%s worker died, its request is %s kills=%u id=%.*s %.*s %.*s",
              job->rack->options.pool, fate == RACK_CUT ? "cut" : "answered 502", job->kills,
              SPAN_ARG(exchange->id), SPAN_ARG(exchange->request.method_text),
              SPAN_ARG(exchange->request.path));
    rack_give_back(job);
    if (fate == RACK_CUT)
        exchange_end(exchange, true);
    else
        exchange_refuse(exchange, REFUSAL_WORKER_DIED);
}

static void bury_slot(void *context, uint32_t slot, struct slot_word word)
{
    struct rack *rack = context;
    struct rack_job *job;
    struct rack_death death;
    enum rack_fate fate;

    if (slot >= rack->options.board->shape.slots || !rack->entries[slot].held ||
        rack->entries[slot].turn != word.turn)
        return;
    job = rack->entries[slot].job;
    if (!job) {
        rack_forget(rack, &rack->entries[slot]);
        (void)slot_free(rack->options.board, slot);
        return;
    }
    job->kills++;
    death = (struct rack_death){
        .state = word.state,
        .head_sent = job->exchange->response.status != 0,
        .is_safe = http_method_is_safe(job->exchange->request.method),
        .kills = job->kills,
        .reruns = job->reruns,
    };
    fate = rack_decide_fate(&death);
    if (fate == RACK_AGAIN)
        run_again(job, word);
    else
        end_killed(job, fate);
}

/* What a dead worker had published counts, also from jobs that hold their pages back: nobody else will
 * ask for them, so that they are taken whatever the client's pace. */
static void take_last_pages(struct rack *rack, uint32_t worker)
{
    const struct board *board = rack->options.board;

    for (uint32_t slot = 0; slot < rack->top; slot++) {
        struct rack_job *job = rack->entries[slot].job;

        if (job && job->thread != RACK_NOBODY && board_worker_of(board, job->thread) == worker)
            job->is_held_back = false;
    }
    rack->burying = true;
    for (uint32_t index = 0; index < board->shape.threads; index++)
        rack_take_thread(rack, board_thread_of(board, worker, index));
    rack->burying = false;
}

void rack_bury_worker(struct rack *rack, uint32_t worker)
{
    const struct rack_options *options = &rack->options;

    if (worker >= options->board->shape.workers)
        return;
    take_last_pages(rack, worker);
    audit_worker(options->board, worker, options->front, options->loop, bury_slot, rack);
    rack_collect(rack);
}

/* ---- Life ---- */

struct rack *rack_new(struct loop *loop, const struct rack_options *options)
{
    struct rack *rack = must_alloc(1, sizeof(*rack));

    rack->options = *options;
    rack->loop = loop;
    rack->entries = must_alloc(options->board->shape.slots, sizeof(*rack->entries));
    rack->first_look_us = first_look_us(options);
    list_init(&rack->orphans);
    list_init(&rack->tunnels);
    list_init(&rack->fresh);
    rack_wake_init(rack);
    if (rack_listen(rack)) {
        free(rack->entries);
        free(rack);
        return NULL;
    }
    return rack;
}

void rack_free(struct rack *rack)
{
    if (!rack)
        return;
    for (uint32_t slot = 0; slot < rack->top; slot++)
        if (rack->entries[slot].job)
            release_job(rack->entries[slot].job);
    rack_unlisten(rack);
    timer_stop(&rack->fresh_timer);
    timer_stop(&rack->nudge_timer);
    task_cancel(&rack->wake_task);
    free(rack->entries);
    free(rack);
}

uint32_t rack_held(const struct rack *rack)
{
    return rack->held;
}

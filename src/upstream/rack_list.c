/* SPDX-License-Identifier: MIT */
/*
 * What waits and runs, for people who look, and the end of one of these requests by hand.
 */
#include "base/log.h"
#include "board/queue.h"
#include "upstream/rack_table.h"

static uint32_t worker_of(const struct board *board, struct slot_word word)
{
    return slot_is_held(word) && word.owner < board_thread_count(board)
               ? board_worker_of(board, word.owner)
               : RACK_NOBODY;
}

uint32_t rack_pid(const struct rack *rack, uint32_t worker)
{
    const struct board *board = rack->options.board;

    return worker < board->shape.workers
               ? atomic_load_explicit(&board->workers[worker].pid, memory_order_relaxed)
               : 0;
}

static uint64_t since(uint64_t then_us, uint64_t now_us)
{
    return then_us && then_us < now_us ? now_us - then_us : 0;
}

static struct rack_request show_job(struct rack_job *job, struct slot_word word)
{
    const struct exchange *exchange = job->exchange;
    uint64_t now_us = loop_now_us(job->rack->loop);
    bool is_queued = word.state == SLOT_QUEUED;

    return (struct rack_request){
        .stage = is_queued        ? RACK_QUEUED
                 : job->is_stream ? RACK_STREAMING
                                  : RACK_RUNNING,
        .pid = rack_pid(job->rack, worker_of(job->rack->options.board, word)),
        .age_us = since(job->queued_us, now_us),
        .run_us = is_queued ? 0 : since(rack_taken_us(job), now_us),
        .method = exchange->request.method_text,
        .path = exchange->request.path,
        .client = exchange->client.address,
        .id = exchange->id,
    };
}

/* Nothing is left of it here; the board has what the worker was given. */
static struct rack_request show_orphan(struct rack *rack, uint32_t slot, struct slot_word word)
{
    const struct board *board = rack->options.board;
    const struct slot_request *request = slot_request(board, slot);
    uint64_t now_us = loop_now_us(rack->loop);

    return (struct rack_request){
        .stage = RACK_LEFT,
        .pid = rack_pid(rack, worker_of(board, word)),
        .age_us = since(__atomic_load_n(&request->queued_us, __ATOMIC_RELAXED), now_us),
        .run_us = since(atomic_load_explicit(&request->taken_us, memory_order_relaxed), now_us),
        .method = slot_text(board, slot, request->method),
        .path = slot_text(board, slot, request->path),
        .client = slot_text(board, slot, request->remote_address),
        .id = slot_text(board, slot, request->request_id),
    };
}

/* What the slot's request is to be seen as; false when it neither waits nor runs. */
static bool show(struct rack *rack, uint32_t slot, struct slot_word *ret_word,
                 struct rack_request *ret_request)
{
    struct rack_entry *entry = &rack->entries[slot];
    struct slot_word word = slot_look(rack->options.board, slot);

    if (!entry->held || word.turn != entry->turn ||
        (word.state != SLOT_QUEUED && !slot_is_held(word)) ||
        (!entry->job && (word.state == SLOT_QUEUED || entry->is_tunnel)))
        return false;
    *ret_word = word;
    *ret_request = entry->job ? show_job(entry->job, word) : show_orphan(rack, slot, word);
    return true;
}

static struct rack_request show_tunnel(const struct rack *rack, const struct rack_tunnel *tunnel)
{
    const struct exchange *exchange = tunnel->exchange;
    uint64_t now_us = loop_now_us(rack->loop);

    return (struct rack_request){
        .stage = RACK_STREAMING,
        .pid = tunnel->pid,
        .age_us = since(tunnel->queued_us, now_us),
        .run_us = since(tunnel->taken_us, now_us),
        .method = exchange->request.method_text,
        .path = exchange->request.path,
        .client = exchange->client.address,
        .id = exchange->id,
    };
}

void rack_list(struct rack *rack, rack_visit *visit, void *data)
{
    for (uint32_t slot = 0; slot < rack->top; slot++) {
        struct slot_word word;
        struct rack_request request;

        if (show(rack, slot, &word, &request))
            visit(data, &request);
    }
    list_for_each (link, &rack->tunnels) {
        struct rack_request request =
            show_tunnel(rack, CONTAINER_OF(link, struct rack_tunnel, link));

        visit(data, &request);
    }
}

static void log_kill(const struct rack *rack, const struct rack_request *request,
                     const char *outcome)
{
    log_warn("pool=%s request ended by hand, %s id=%.*s %.*s %.*s", rack->options.pool, outcome,
             SPAN_ARG(span_first(request->id, 255)), SPAN_ARG(span_first(request->method, 32)),
             SPAN_ARG(span_first(request->path, 2048)));
}

static void kill_waiting(struct rack_job *job)
{
    struct exchange *exchange = job->exchange;

    rack_give_back(job);
    exchange_refuse(exchange, REFUSAL_KILLED_WAITING);
}

/* A worker whose request is late is not kept for its sake. False when no worker has it. */
static bool kill_running(struct rack *rack, uint32_t slot)
{
    const struct board *board = rack->options.board;
    struct rack_job *job = rack->entries[slot].job;
    uint32_t worker = worker_of(board, slot_look(board, slot));

    if (job) {
        job->exchange->times.taken_us = rack_taken_us(job);
        rack_refuse(job, REFUSAL_KILLED, SLOT_LATE);
    } else {
        slot_set_note(board, slot, SLOT_LATE);
    }
    if (worker == RACK_NOBODY)
        return false;
    rack->options.owner->on_killed(rack->options.owner_data, worker);
    return true;
}

static void kill_one(struct rack *rack, uint32_t slot, const struct rack_request *request)
{
    struct rack_job *job = rack->entries[slot].job;
    bool has_head = job && job->exchange->response.status;

    if (job && request->stage == RACK_QUEUED &&
        queue_cancel(rack->options.board, slot, job->turn)) {
        log_kill(rack, request, "answered 503");
        kill_waiting(job);
        return;
    }
    /* One that was queued has been taken between the two looks. */
    log_kill(rack, request, !job ? "nobody waited for it" : has_head ? "cut" : "answered 502");
    (void)kill_running(rack, slot);
}

/* Both sides see the end. Mostly the worker has long gone on to other requests. */
static void kill_tunnel(struct rack *rack, struct rack_tunnel *tunnel, rack_visit *visit,
                        void *data)
{
    struct rack_request request = show_tunnel(rack, tunnel);

    if (!rack_find_tunnel_entry(tunnel) || !kill_running(rack, tunnel->slot))
        request.pid = 0;
    visit(data, &request);
    log_kill(rack, &request, "cut");
    tunnel->exchange->conn->cut(tunnel->exchange, REFUSAL_KILLED);
}

static void kill_tunnels(struct rack *rack, struct span id, rack_visit *visit, void *data)
{
    list_for_each_safe (link, &rack->tunnels) {
        struct rack_tunnel *tunnel = CONTAINER_OF(link, struct rack_tunnel, link);

        if (span_equal(tunnel->exchange->id, id) && tunnel->exchange->conn->cut)
            kill_tunnel(rack, tunnel, visit, data);
    }
}

void rack_kill(struct rack *rack, struct span id, rack_visit *visit, void *data)
{
    for (uint32_t slot = 0; slot < rack->top; slot++) {
        struct slot_word word;
        struct rack_request request;

        if (!show(rack, slot, &word, &request) || !span_equal(request.id, id))
            continue;
        visit(data, &request);
        kill_one(rack, slot, &request);
    }
    kill_tunnels(rack, id, visit, data);
}

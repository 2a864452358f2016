/* SPDX-License-Identifier: MIT */
#include "http/h1_state.h"

#include "http/h1_answer.h"
#include "http/h1_receive.h"
#include "http/h1_tunnel.h"

#include <stdlib.h>

enum { STEPS = 64 /* of one connection in a row */ };

struct h1_state_row {
    const char *name;
    unsigned wants; /* of the stream */
    /* What can be done now; true when the connection should be looked at again. */
    bool (*step)(struct h1_conn *conn);
    /* Milliseconds until on_due, 0 = the state has no deadline. */
    uint64_t (*deadline_ms)(const struct h1_conn *conn);
    void (*on_due)(struct h1_conn *conn);
};

static uint64_t idle_ms(const struct h1_conn *conn)
{
    return conn->used ? conn->options->keepalive_ms : conn->options->header_ms;
}

static uint64_t head_ms(const struct h1_conn *conn)
{
    return conn->options->header_ms;
}

static uint64_t tick_ms(const struct h1_conn *conn)
{
    (void)conn;
    return H1_RATE_TICK_MS;
}

static uint64_t linger_ms(const struct h1_conn *conn)
{
    return conn->options->linger_ms;
}

static void end_quietly(struct h1_conn *conn)
{
    h1_state_close(conn, REFUSAL_NONE, false);
}

static bool step_nothing(struct h1_conn *conn)
{
    (void)conn;
    return false;
}

static const struct h1_state_row states[] = {
    [H1_IDLE] = {"idle", STREAM_READ, h1_receive_head, idle_ms, end_quietly},
    [H1_HEAD] = {"head", STREAM_READ, h1_receive_head, head_ms, h1_receive_late_head},
    [H1_READING] = {"reading", STREAM_READ, h1_receive_body, tick_ms, h1_receive_check_rate},
    [H1_ANSWER] = {"answer", 0, h1_answer_step, NULL, NULL},
    [H1_WRITING] = {"writing", STREAM_WRITE, h1_answer_step, tick_ms, h1_answer_check_rate},
    [H1_TUNNEL] = {"tunnel", 0, step_nothing, NULL, NULL},
    [H1_DROPPING] = {"dropping", STREAM_READ, h1_receive_dropped, linger_ms, end_quietly},
    [H1_LINGER] = {"linger", STREAM_READ, h1_answer_linger, linger_ms, end_quietly},
    [H1_CLOSED] = {"closed", 0, step_nothing, NULL, NULL},
};

static void on_timer(struct timer *timer)
{
    struct h1_conn *conn = CONTAINER_OF(timer, struct h1_conn, timer);

    if (!states[conn->state].on_due)
        return;
    conn->driving = true;
    states[conn->state].on_due(conn);
    conn->driving = false;
    h1_state_drive(conn);
}

void h1_state_set_deadline(struct h1_conn *conn)
{
    uint64_t (*deadline_ms)(const struct h1_conn *) = states[conn->state].deadline_ms;

    /* A deadline of a former state that comes due in one without is ignored there, which is cheaper
     * than taking it out for each request. */
    if (deadline_ms)
        timer_set(conn->loop, &conn->timer, deadline_ms(conn), on_timer);
}

void h1_state_enter(struct h1_conn *conn, enum h1_state state)
{
    conn->state = state;
    stream_want(conn->stream, states[state].wants);
    h1_state_set_deadline(conn);
}

void h1_state_close(struct h1_conn *conn, enum refusal refusal, bool reset)
{
    struct h1_work *work = conn->work;

    if (conn->state == H1_CLOSED)
        return;
    conn->state = H1_CLOSED; /* what the service does from here on does not come back */
    timer_stop(&conn->timer);
    task_cancel(&conn->task);
    h1_tunnel_close(conn);
    stream_close(conn->stream, reset);
    if (work && work->shown)
        exchange_abort(&work->exchange, refusal);
}

/* The work lives as long as a caller further up may look at the exchange. */
void h1_state_free_closed(struct h1_conn *conn)
{
    if (conn->state != H1_CLOSED || conn->driving)
        return;
    h1_work_give(conn->work);
    if (conn->on_close)
        conn->on_close(conn, conn->owner);
    free(conn);
}

void h1_state_run(struct h1_conn *conn)
{
    int steps = 0;

    while (states[conn->state].step(conn)) {
        if (++steps == STEPS) {
            loop_defer(conn->loop, &conn->task);
            return;
        }
    }
}

void h1_state_drive(struct h1_conn *conn)
{
    if (conn->driving)
        return;
    conn->driving = true;
    h1_state_run(conn);
    conn->driving = false;
    h1_state_free_closed(conn);
}

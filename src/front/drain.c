/* SPDX-License-Identifier: MIT */
#include "front/drain.h"

#include "base/base.h"
#include "base/log.h"
#include "base/title.h"
#include "front/accept.h"

#include <stdlib.h>

enum {
    LINGER_MS = 500, /* how long a request that is on its way may take to arrive */
    RETIRE_LINGER_MS =
        5000 /* the same while another front serves and nobody waits for this one's end */
};

/* An order on its way to a loop. */
struct order {
    struct post_item item;
    struct front_loop *loop;
    uint64_t cut_after_ms;
};

static void stop_loop(struct post_item *item)
{
    struct order *order = CONTAINER_OF(item, struct order, item);

    loop_stop(order->loop->loop);
    free(order);
}

static void send_order(struct front_loop *loop, void (*run)(struct post_item *), uint64_t cut_ms)
{
    struct order *order = must_alloc(1, sizeof(*order));

    *order = (struct order){.item = {.run = run}, .loop = loop, .cut_after_ms = cut_ms};
    post_send(loop->post, &order->item);
}

/* Loops without connections go on until all are done: their slots may still be asked for. */
static void end_front(struct front *front)
{
    struct front_message message = {
        .kind = FRONT_DRAINED,
        .number = atomic_load_explicit(&front->cut, memory_order_relaxed),
    };

    front_tell(front, &message);
    for (uint32_t i = 0; i < front->options->loops; i++)
        send_order(front->loops[i], stop_loop, 0);
}

void drain_check(struct front_loop *loop)
{
    struct front *front = loop->front;

    if (!loop->draining || loop->done || !list_is_empty(&loop->connections))
        return;
    loop->done = true;
    timer_stop(&loop->drain_timer);
    timer_stop(&loop->drain_cut_timer);
    if (atomic_fetch_sub_explicit(&front->loops_running, 1, memory_order_acq_rel) == 1)
        end_front(front);
}

/* Its client may be sending already, and could not know whether the request was begun. */
static void answer_once(struct front_loop *loop, struct h1_conn *conn)
{
    (void)loop;
    h1_conn_drain(conn, true);
}

static void close_when_idle(struct front_loop *loop, struct h1_conn *conn)
{
    (void)loop;
    h1_conn_drain(conn, false);
}

static void on_linger_over(struct timer *timer)
{
    struct front_loop *loop = CONTAINER_OF(timer, struct front_loop, drain_timer);

    accept_each(loop, close_when_idle);
    /* One whose answer was longer becomes idle later. */
    timer_set(loop->loop, &loop->drain_timer, LINGER_MS, on_linger_over);
    drain_check(loop);
}

static void cut(struct front_loop *loop, struct h1_conn *conn)
{
    /* A stream has no end of its own that could be waited for. */
    if (!h1_conn_is_idle(conn) && !h1_conn_is_tunnel(conn))
        front_count(&loop->front->cut, 1);
    h1_conn_close(conn, REFUSAL_DRAINING);
}

static void on_time_over(struct timer *timer)
{
    struct front_loop *loop = CONTAINER_OF(timer, struct front_loop, drain_cut_timer);
    unsigned open = atomic_load_explicit(&loop->open, memory_order_relaxed);

    log_warn("drain: time is over, %u connection%s cut", open, open == 1 ? " is" : "s are");
    accept_each(loop, cut);
    drain_check(loop);
}

/* A loop that drains already may be given less time. */
static void begin(struct front_loop *loop, uint64_t linger_ms)
{
    bool again = loop->draining;

    timer_set(loop->loop, &loop->drain_timer, linger_ms, on_linger_over);
    if (again)
        return;
    loop->draining = true;
    accept_each(loop, answer_once);
    accept_stop(loop);
    drain_check(loop);
}

static void drain_loop(struct post_item *item)
{
    struct order *order = CONTAINER_OF(item, struct order, item);
    struct front_loop *loop = order->loop;
    uint64_t cut_after_ms = order->cut_after_ms;

    free(order);
    timer_set(loop->loop, &loop->drain_cut_timer, cut_after_ms, on_time_over);
    begin(loop, LINGER_MS);
}

/* Without a deadline: what is under way has its own limits, and streams are kept to their end. */
static void retire_loop(struct post_item *item)
{
    struct order *order = CONTAINER_OF(item, struct order, item);
    struct front_loop *loop = order->loop;

    free(order);
    begin(loop, RETIRE_LINGER_MS);
}

static void end_stream(struct front_loop *loop, struct h1_conn *conn)
{
    (void)loop;
    h1_conn_close(conn, REFUSAL_DRAINING);
}

static void end_streams(struct post_item *item)
{
    struct order *order = CONTAINER_OF(item, struct order, item);
    struct front_loop *loop = order->loop;

    free(order);
    accept_each(loop, end_stream);
    drain_check(loop);
}

static void announce_loop(struct post_item *item)
{
    struct order *order = CONTAINER_OF(item, struct order, item);
    struct front_loop *loop = order->loop;

    free(order);
    loop->leaving = true;
    accept_each(loop, answer_once);
}

static void send_all(struct front *front, void (*run)(struct post_item *), uint64_t cut_ms)
{
    for (uint32_t i = 0; i < front->options->loops; i++)
        if (!front->loops[i]->done)
            send_order(front->loops[i], run, cut_ms);
}

void drain_announce(struct front *front)
{
    title_set("leat: front leaving");
    send_all(front, announce_loop, 0);
}

void drain_start(struct front *front, uint64_t cut_after_ms)
{
    title_set("leat: front draining");
    send_all(front, drain_loop, cut_after_ms);
}

void drain_retire(struct front *front)
{
    if (front->retiring)
        return;
    front->retiring = true;
    title_set("leat: front retiring");
    send_all(front, retire_loop, 0);
}

void drain_end_streams(struct front *front)
{
    if (front->retiring)
        send_all(front, end_streams, 0);
}

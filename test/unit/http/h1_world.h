/* SPDX-License-Identifier: MIT */
/*
 * A whole HTTP/1 connection over a socket pair, with a service that answers by path: the world of the
 * tests of http/h1_conn and its parts. Time is the loop's own; the deadlines are short.
 */
#pragma once

#include "base/fd.h"
#include "http/h1_state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct loop *loop;
static struct h1_conn *conn;
static int client = -1;
static unsigned requests, ends, closes, cancels;
static enum refusal last_refusal;
static struct exchange *waiting; /* of /wait: answered by the test */
static struct buf got;
static uint64_t spool_used;
static struct h1_options options;

static inline void on_cancel(struct exchange *exchange)
{
    assert_ptr_equal(exchange, waiting);
    waiting = NULL;
    cancels++;
}

static inline void endless(struct exchange *exchange)
{
    static char bytes[8192];

    while (!exchange_is_full(exchange))
        exchange_write(exchange, span_make(bytes, sizeof(bytes)));
}

static const struct handler wait_handler = {"wait", NULL, NULL, on_cancel};
static const struct handler endless_handler = {"endless", NULL, endless, NULL};

static inline enum refusal on_head(struct exchange *exchange)
{
    exchange->request.body_limit = 1000;
    if (span_is(exchange->request.path, "/nowhere"))
        return REFUSAL_NO_SITE;
    return REFUSAL_NONE;
}

static inline void answer(struct exchange *exchange, unsigned status, struct span body)
{
    exchange_head(exchange, status, (int64_t)body.size);
    exchange_write(exchange, body);
    exchange_end(exchange, false);
}

static inline void on_request(struct exchange *exchange)
{
    struct span path = exchange->request.path;

    if (exchange->refusal != REFUSAL_NONE) {
        answer(exchange, http_refusal_status(exchange->refusal),
               span_of(http_refusal_word(exchange->refusal)));
        return;
    }
    requests++;
    if (span_is(path, "/wait")) {
        waiting = exchange;
        exchange->handler = &wait_handler;
    } else if (span_is(path, "/endless")) {
        exchange->handler = &endless_handler;
        exchange_head(exchange, 200, -1);
        endless(exchange);
    } else if (span_is(path, "/cut")) {
        exchange_head(exchange, 200, -1);
        exchange_write(exchange, span_of("part"));
        exchange_end(exchange, true);
    } else if (exchange->request.body.size) {
        answer(exchange, 200, buf_span(&exchange->request.body.memory));
    } else {
        answer(exchange, 200, path);
    }
}

static inline void on_end(struct exchange *exchange)
{
    ends++;
    last_refusal = exchange->refusal;
}

static const struct service service = {on_head, on_request, on_end};

static inline void on_close(struct h1_conn *closed, void *owner)
{
    assert_ptr_equal(owner, &closes);
    assert_ptr_equal(closed, conn);
    conn = NULL;
    closes++;
}

static inline int open_world(void **state)
{
    static struct address none;
    int pair[2];
    (void)state;

    requests = ends = closes = cancels = 0;
    waiting = NULL;
    last_refusal = REFUSAL_NONE;
    options = (struct h1_options){.service = &service,
                                  .target_bytes = 1000,
                                  .field_bytes = 1000,
                                  .header_bytes = 4000,
                                  .field_count = 20,
                                  .body_memory_bytes = 500,
                                  .spool_folder = "/tmp",
                                  .spool_used = &spool_used,
                                  .spool_limit = 10000,
                                  .header_ms = 60,
                                  .keepalive_ms = 120,
                                  .body_rate = 500,
                                  .write_rate = 500,
                                  .linger_ms = 60};
    loop = loop_new();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    client = pair[1];
    none.socket.any.sa_family = AF_UNIX;
    conn = h1_conn_open(&options, loop, pair[0], &none, &none, on_close, &closes);
    return conn ? 0 : -1;
}

static inline int close_world(void **state)
{
    (void)state;
    if (conn)
        h1_conn_close(conn, REFUSAL_NONE);
    assert_int_equal(closes, 1);
    assert_int_equal(spool_used, 0);
    fd_close(&client);
    buf_done(&got);
    h1_conn_free_spares();
    loop_free(loop);
    return 0;
}

static inline void say(const char *text)
{
    assert_int_equal(write(client, text, strlen(text)), (ssize_t)strlen(text));
}

/* Runs the loop until nothing happens for some milliseconds, and takes what the client can read.
 * Returns false at the end of file. */
static inline bool run(int quiet_ms)
{
    bool open = true;

    while (loop_step(loop, quiet_ms) > 0)
        continue;
    for (;;) {
        char *out = buf_reserve(&got, 65536);
        ssize_t size = read(client, out, 65536);

        if (size == 0 || (size == -1 && errno == ECONNRESET))
            open = false;
        if (size <= 0)
            return open;
        buf_grow(&got, (size_t)size);
        while (loop_step(loop, 0) > 0)
            continue;
    }
}

static inline unsigned count(const char *part)
{
    unsigned found = 0;
    struct span rest = buf_span(&got);
    size_t size = strlen(part);

    for (; rest.size >= size; rest = span_skip(rest, 1))
        found += memcmp(rest.data, part, size) == 0;
    return found;
}

static inline void expect_answers(unsigned answers, const char *part)
{
    if (count("HTTP/1.1 ") != answers || !count(part))
        print_error("%.*s\n", SPAN_ARG(buf_span(&got)));
    assert_int_equal(count("HTTP/1.1 "), answers);
    assert_true(count(part));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

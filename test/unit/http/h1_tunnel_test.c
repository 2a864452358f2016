/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_tunnel.c"

#include "h1_world.h"

#include <sys/socket.h>

static int application = -1;

/* A request that its handler gives away. */
static int hijack(const char *request)
{
    int pair[2];

    say(request);
    assert_true(run(5));
    assert_non_null(waiting);
    waiting->handler = NULL;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    application = pair[1];
    return waiting->conn->tunnel(waiting, pair[0]);
}

static void expect(const char *text)
{
    char room[256];
    ssize_t size = read(application, room, sizeof(room));

    assert_int_equal(size, (ssize_t)strlen(text));
    assert_memory_equal(room, text, strlen(text));
}

static void reply(const char *text)
{
    assert_int_equal(write(application, text, strlen(text)), (ssize_t)strlen(text));
}

static void a_hijacked_connection_is_the_applications_with_what_was_read(void **state)
{
    (void)state;
    assert_int_equal(hijack("GET /wait HTTP/1.1\r\nHost: x\r\n\r\nearly"), 0);
    assert_true(h1_conn_is_tunnel(conn));
    assert_false(h1_conn_is_idle(conn));
    reply("HTTP/1.1 299 Mine\r\n\r\n");
    assert_true(run(5));
    expect("early");
    assert_int_equal(ends, 0);
    fd_close(&application);
    assert_false(run(5));
    expect_answers(1, "HTTP/1.1 299 Mine\r\n\r\n");
    assert_int_equal(count("date"), 0);
    assert_int_equal(ends, 1);
    assert_int_equal(last_refusal, REFUSAL_NONE);
    assert_int_equal(cancels, 0);
}

static unsigned logged_status;
static uint64_t logged_bytes, logged_sent;

static void note_end(struct exchange *exchange)
{
    on_end(exchange);
    logged_status = exchange->response.status;
    logged_bytes = exchange->response.written;
    logged_sent = exchange->sent_bytes;
}

static const struct service noting = {on_head, on_request, note_end};

static void the_log_gets_the_status_that_the_application_wrote(void **state)
{
    (void)state;
    options.service = &noting;
    assert_int_equal(hijack("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    reply("HTTP/1.1 418 Tea\r\n\r\n");
    fd_close(&application);
    assert_false(run(5));
    assert_int_equal(logged_status, 418);
    assert_int_equal(logged_sent, 20);
}

static void a_raw_head_goes_first_and_says_that_the_connection_ends(void **state)
{
    (void)state;
    options.service = &noting;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    waiting->response.raw = true;
    exchange_head(waiting, 200, -1);
    assert_int_equal(hijack(""), 0);
    reply("bytes");
    fd_close(&application);
    assert_false(run(5));
    expect_answers(1, "connection: close\r\n");
    assert_int_equal(count("chunked"), 0);
    assert_int_equal(count("\r\n\r\nbytes"), 1);
    assert_int_equal(logged_status, 200);
    assert_int_equal(logged_bytes, 5);
    assert_int_equal(logged_sent, got.size);
}

static void a_raw_head_can_announce_chunks_of_the_sender(void **state)
{
    (void)state;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    waiting->response.raw = waiting->response.raw_chunked = true;
    exchange_head(waiting, 200, 5);
    assert_int_equal(hijack(""), 0);
    assert_false(h1_conn_is_tunnel(conn));
    reply("1\r\nx\r\n");
    fd_close(&application);
    assert_false(run(5));
    expect_answers(1, "transfer-encoding: chunked\r\nconnection: close\r\n");
    assert_int_equal(count("content-length"), 0);
    assert_int_equal(count("\r\n\r\n1\r\nx\r\n"), 1);
}

static void a_101_names_its_protocol(void **state)
{
    (void)state;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    waiting->response.raw = true;
    exchange_add_field(waiting, span_of("upgrade"), span_of("echo"));
    exchange_head(waiting, 101, -1);
    assert_int_equal(hijack(""), 0);
    assert_true(run(5));
    expect_answers(1,
                   "HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n");
    say("up");
    assert_true(run(5));
    expect("up");
    fd_close(&application);
    assert_false(run(5));
}

static void a_body_that_was_begun_cannot_become_a_tunnel(void **state)
{
    (void)state;
    say("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(run(5));
    exchange_head(waiting, 200, -1);
    exchange_write(waiting, span_of("part"));
    assert_int_equal(hijack(""), -EINVAL);
    expect("");
    exchange_end(waiting, false);
    fd_close(&application);
    assert_true(run(5));
    expect_answers(1, "part");
}

static void a_client_that_leaves_is_the_applications_business(void **state)
{
    (void)state;
    assert_int_equal(hijack("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    assert_true(run(5));
    fd_close(&client);
    while (loop_step(loop, 5) > 0)
        continue;
    expect("");
    fd_close(&application);
    while (loop_step(loop, 5) > 0)
        continue;
    assert_int_equal(ends, 1);
    assert_int_equal(closes, 1);
    assert_int_equal(last_refusal, REFUSAL_NONE);
}

static void a_connection_that_is_closed_ends_its_tunnel(void **state)
{
    (void)state;
    assert_int_equal(hijack("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    assert_true(run(5));
    h1_conn_drain(conn, false);
    assert_non_null(conn);
    h1_conn_close(conn, REFUSAL_DRAINING);
    assert_int_equal(closes, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(last_refusal, REFUSAL_DRAINING);
    expect("");
    fd_close(&application);
}

static void an_idle_tunnel_keeps_no_buffers(void **state)
{
    struct h1_work *work;
    (void)state;

    assert_int_equal(hijack("POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcmore"),
                     0);
    assert_true(run(5));
    expect("more");
    work = conn->work;
    assert_int_equal(work->input.room + work->writer.lead.room, 0);
    assert_int_equal(work->exchange.request.body.memory.room, 0);
    assert_in_range(sizeof(*work) + sizeof(*conn) + sizeof(struct tunnel), 1, 4096);
    fd_close(&application);
    assert_false(run(5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hijacked_connection_is_the_applications_with_what_was_read),
        TEST(the_log_gets_the_status_that_the_application_wrote),
        TEST(a_raw_head_goes_first_and_says_that_the_connection_ends),
        TEST(a_raw_head_can_announce_chunks_of_the_sender),
        TEST(a_101_names_its_protocol),
        TEST(a_body_that_was_begun_cannot_become_a_tunnel),
        TEST(a_client_that_leaves_is_the_applications_business),
        TEST(a_connection_that_is_closed_ends_its_tunnel),
        TEST(an_idle_tunnel_keeps_no_buffers),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

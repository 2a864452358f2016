/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/backtraces.c"

#include "master_world.h"

#include <stdio.h>
#include <string.h>

/* A caller and what it was told; its type is the control socket's own, which only passes pointers. */
struct control_call {
    unsigned answers;
    bool ok;
    char text[300];
};

void control_answer(struct control_call *call, bool ok, struct span text, bool hold)
{
    (void)hold;
    call->answers++;
    call->ok = ok;
    (void)snprintf(call->text, sizeof call->text, "%.*s", SPAN_ARG(text));
}

/* PID 500 is worker 3. */
bool pool_backtrace(struct pool *pool, pid_t pid, uint32_t *ret_worker)
{
    (void)pool;
    *ret_worker = 3;
    return pid == 500;
}

static struct worker workers[] = {{.state = WORKER_SERVING, .pid = 500},
                                  {.state = WORKER_DEAD, .pid = 0},
                                  {.state = WORKER_RETIRING, .pid = 502}};
static struct mold mold = {.pid = 400};

static void open_world(struct world *world)
{
    world_open(world);
    world->pool.workers = workers;
    world->pool.instance.board.shape.workers = ARRAY_LEN(workers);
    list_init(&world->pool.molds);
    list_init(&mold.link);
    list_push_back(&world->pool.molds, &mold.link);
}

static void everybody_who_asked_for_a_worker_gets_its_answer_once(void **state)
{
    struct world world;
    struct control_call first = {.answers = 0}, second = {.answers = 0};

    (void)state;
    open_world(&world);
    backtraces_ask(&world.master, span_of("500"), &first);
    backtraces_ask(&world.master, span_of("500"), &second);
    backtraces_answer(&world.master_pool, 2, true, span_of("another's"));
    assert_int_equal(first.answers + second.answers, 0);
    backtraces_answer(&world.master_pool, 3, true, span_of("threads"));
    assert_true(first.ok && second.ok);
    assert_string_equal(second.text, "threads");
    backtraces_answer(&world.master_pool, 3, true, span_of("again"));
    assert_int_equal(first.answers, 1);
    world_close(&world);
}

static void who_is_no_worker_is_named_and_so_are_those_that_are(void **state)
{
    static const struct {
        const char *pid, *words;
    } rows[] = {{"77", "there is no worker 77. Workers now: 500 502\n"},
                {"0", "there is no worker 0. Workers now: 500 502\n"},
                {"4294967796", "there is no worker 4294967796. Workers now: 500 502\n"},
                {"400", "process 400 is a mold; only workers have backtraces to tell. Workers "
                        "now: 500 502\n"},
                {"", "backtrace needs the PID of a worker\n"},
                {"-5", "backtrace needs the PID of a worker\n"}};
    struct world world;

    (void)state;
    open_world(&world);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct control_call call = {.answers = 0};
        backtraces_ask(&world.master, span_of(rows[i].pid), &call);
        assert_int_equal(call.answers, 1);
        assert_false(call.ok);
        assert_string_equal(call.text, rows[i].words);
    }
    world_close(&world);
}

static void a_server_that_stops_leaves_nobody_waiting(void **state)
{
    struct world world;
    struct control_call call = {.answers = 0};

    (void)state;
    open_world(&world);
    backtraces_ask(&world.master, span_of("500"), &call);
    backtraces_stopped(&world.master);
    assert_int_equal(call.answers, 1);
    assert_false(call.ok);
    assert_true(list_is_empty(&world.master.backtraces));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_who_asked_for_a_worker_gets_its_answer_once),
        cmocka_unit_test(who_is_no_worker_is_named_and_so_are_those_that_are),
        cmocka_unit_test(a_server_that_stops_leaves_nobody_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

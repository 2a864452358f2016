/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/commands.c"

#include "master_world.h"

#include <stdio.h>

/* A caller and what it was told; its type is the control socket's own, which only passes pointers. */
struct control_call {
    unsigned answers;
    bool ok;
    bool hold;
    char text[300];
};

/* What was asked of the others. One per program, as the functions below are. */
static struct {
    uint32_t ticket; /* of the next restart */
    unsigned restarts, reopens, stops, stops_now;
    bool ready;
} seen;

void control_answer(struct control_call *call, bool ok, struct span text, bool hold)
{
    call->answers++;
    call->ok = ok;
    call->hold = hold;
    (void)snprintf(call->text, sizeof call->text, "%.*s", SPAN_ARG(text));
}

uint32_t pool_restart(struct pool *pool)
{
    (void)pool;
    seen.restarts++;
    return seen.ticket;
}

void logs_reopen(struct master *master)
{
    (void)master;
    seen.reopens++;
}

void phase_stop(struct master *master)
{
    master->phase = MASTER_DRAINING;
    seen.stops++;
}

void phase_stop_now(struct master *master, bool is_success)
{
    (void)master, (void)is_success;
    seen.stops_now++;
}

bool phase_is_ready(const struct master *master)
{
    (void)master;
    return seen.ready;
}

int report_write(const struct master *master, bool json, struct buf *out)
{
    (void)master;
    return buf_append(out, span_of(json ? "{}" : "text"));
}

static struct mold current = {.generation = 2, .release = (char[]){"/releases/2"}};

static void open_world(struct world *world)
{
    world_open(world);
    world->pool.current = &current;
    memset(&seen, 0, sizeof seen);
    seen.ticket = 1;
}

static void say(struct world *world, enum control_command command, const char *argument,
                struct control_call *call)
{
    commands_run(&world->master, command, span_of(argument), call);
}

static void status_and_readiness_are_answered_at_once(void **state)
{
    struct world world;
    struct control_call call = {.answers = 0};

    (void)state;
    open_world(&world);
    say(&world, CONTROL_STATUS, "json", &call);
    assert_string_equal(call.text, "{}");
    say(&world, CONTROL_STATUS, "", &call);
    assert_string_equal(call.text, "text");
    say(&world, CONTROL_READY, "", &call);
    assert_false(call.ok);
    seen.ready = true;
    say(&world, CONTROL_READY, "", &call);
    assert_true(call.ok);
    say(&world, CONTROL_REOPEN, "", &call);
    assert_int_equal(seen.reopens, 1);
    world_close(&world);
}

static void a_restart_is_answered_with_the_outcome_of_one_that_began_after_it(void **state)
{
    struct world world;
    struct control_call first = {.answers = 0};
    struct control_call second = {.answers = 0};

    (void)state;
    open_world(&world);
    say(&world, CONTROL_RESTART, "", &first);
    seen.ticket = 2;
    say(&world, CONTROL_RESTART, "shop", &second);
    commands_restarted(&world.master_pool, 1, NULL);
    assert_int_equal(first.answers, 1);
    assert_true(first.ok);
    assert_string_equal(first.text, "pool shop restarted: generation 2, /releases/2\n");
    assert_int_equal(second.answers, 0);
    commands_restarted(&world.master_pool, 2, "no database");
    assert_int_equal(second.answers, 1);
    assert_false(second.ok);
    assert_string_equal(second.text, "pool shop: restart failed, no database\n");
    world_close(&world);
}

static void a_restart_of_all_waits_for_every_pool(void **state)
{
    struct world world;
    struct master_pool other;
    struct control_call call = {.answers = 0};

    (void)state;
    open_world(&world);
    other = world.master_pool;
    world.pools[1] = &other;
    world.master.pool_size = 2;
    say(&world, CONTROL_RESTART, "", &call);
    assert_int_equal(seen.restarts, 2);
    commands_restarted(&other, 1, "broken");
    assert_int_equal(call.answers, 0);
    commands_restarted(&world.master_pool, 1, NULL);
    assert_int_equal(call.answers, 1);
    assert_false(call.ok);
    world_close(&world);
}

static void a_pool_that_is_not_there_and_a_server_of_files_answer_at_once(void **state)
{
    struct world world;
    struct control_call call = {.answers = 0};

    (void)state;
    open_world(&world);
    say(&world, CONTROL_RESTART, "shoe", &call);
    assert_false(call.ok);
    assert_int_equal(seen.restarts, 0);
    world.master.pool_size = 0;
    say(&world, CONTROL_RESTART, "", &call);
    assert_true(call.ok);
    assert_true(list_is_empty(&world.master.waiters));
    world_close(&world);
}

static void stops_are_answered_when_it_is_over_and_held_until_the_process_ends(void **state)
{
    struct world world;
    struct control_call stop = {.answers = 0};
    struct control_call again = {.answers = 0};
    struct control_call restart_call = {.answers = 0};
    struct control_call late = {.answers = 0};

    (void)state;
    open_world(&world);
    say(&world, CONTROL_RESTART, "", &restart_call);
    say(&world, CONTROL_STOP, "", &stop);
    say(&world, CONTROL_STOP, "", &again);
    assert_int_equal(seen.stops, 1);
    say(&world, CONTROL_STOP_NOW, "", &late);
    assert_int_equal(seen.stops_now, 1);
    assert_int_equal(stop.answers + again.answers + restart_call.answers, 0);
    world.master.cut = 3;
    commands_stopped(&world.master);
    assert_false(restart_call.ok);
    assert_non_null(strstr(restart_call.text, "stopped meanwhile"));
    assert_true(stop.ok && stop.hold && again.hold && late.hold);
    assert_string_equal(stop.text, "stopped; 3 requests were cut\n");
    world_close(&world);
}

static void one_cut_request_is_told_in_the_singular(void **state)
{
    struct world world;
    struct control_call stop = {.answers = 0};

    (void)state;
    open_world(&world);
    say(&world, CONTROL_STOP, "", &stop);
    world.master.cut = 1;
    commands_stopped(&world.master);
    assert_string_equal(stop.text, "stopped; 1 request was cut\n");
    world_close(&world);
}

static void nothing_is_restarted_during_a_stop(void **state)
{
    struct world world;
    struct control_call call = {.answers = 0};

    (void)state;
    open_world(&world);
    world.master.phase = MASTER_DRAINING;
    say(&world, CONTROL_RESTART, "", &call);
    assert_false(call.ok);
    commands_restart_all(&world.master);
    assert_int_equal(seen.restarts, 0);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_and_readiness_are_answered_at_once),
        cmocka_unit_test(a_restart_is_answered_with_the_outcome_of_one_that_began_after_it),
        cmocka_unit_test(a_restart_of_all_waits_for_every_pool),
        cmocka_unit_test(a_pool_that_is_not_there_and_a_server_of_files_answer_at_once),
        cmocka_unit_test(stops_are_answered_when_it_is_over_and_held_until_the_process_ends),
        cmocka_unit_test(one_cut_request_is_told_in_the_singular),
        cmocka_unit_test(nothing_is_restarted_during_a_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

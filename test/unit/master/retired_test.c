/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/retired.c"

#include "master_world.h"

/* What the fronts were told. One per program, as the function below is. */
static struct {
    pid_t pid;
    struct front_message message;
} told[8];
static unsigned told_size;

void fronts_tell(struct master_front *front, const struct front_message *message, const int *fds,
                 size_t count)
{
    (void)fds, (void)count;
    assert_true(told_size < ARRAY_LEN(told));
    told[told_size].pid = front->pid;
    told[told_size++].message = *message;
}

static struct master_listener kept = {.fd = 7}, closed = {.fd = -1};
static struct master_listener *listeners[] = {&kept, &closed};
static struct edition former = {.listeners = listeners, .listener_size = 2}, current;

/* All places taken by fronts that retire, each younger than the one before it, with one stream. */
static void open_full(struct world *world)
{
    world_open(world);
    told_size = 0;
    for (unsigned i = 0; i < BOARD_FRONTS; i++) {
        world->master.fronts[i] = (struct master_front){.pid = (pid_t)(100 + i),
                                                        .edition = &former,
                                                        .retiring = true,
                                                        .released = true,
                                                        .started_ms = i + 1};
        world->master.counters->gauges[i].open = 1;
        world->master.counters->gauges[i].streams[3] = 1;
    }
}

static void those_of_another_edition_retire_once_and_hear_what_was_given_up(void **state)
{
    struct world world;

    (void)state;
    world_open(&world);
    told_size = 0;
    world.master.fronts[0] = (struct master_front){.pid = 100, .edition = &former};
    world.master.fronts[1] = (struct master_front){.pid = 101, .edition = &current};
    world.master.fronts[0].accepting = world.master.fronts[1].accepting = true;
    retired_begin(&world.master, &current);
    retired_begin(&world.master, &current);
    assert_int_equal(told_size, 2);
    assert_int_equal(told[0].pid, 100);
    assert_int_equal(told[0].message.kind, FRONT_GIVE_UP);
    assert_int_equal(told[0].message.number, 1);
    assert_int_equal(told[1].message.kind, FRONT_RETIRE);
    assert_false(world.master.fronts[0].accepting);
    assert_true(world.master.fronts[1].accepting);
    assert_false(retired_are_released(&world.master));
    world.master.fronts[0].released = true;
    assert_true(retired_are_released(&world.master));
    world_close(&world);
}

static void the_oldest_that_has_streams_only_makes_room_and_no_other_meanwhile(void **state)
{
    struct world world;

    (void)state;
    open_full(&world);
    world.master.counters->gauges[0].open = 2; /* a request, too */
    assert_true(retired_make_room(&world.master));
    assert_true(retired_make_room(&world.master));
    assert_int_equal(told_size, 1);
    assert_int_equal(told[0].pid, 101);
    assert_int_equal(told[0].message.kind, FRONT_END_STREAMS);
    world.master.fronts[1].pid = 0; /* its place is not free yet */
    assert_true(retired_make_room(&world.master));
    assert_int_equal(told_size, 1);
    world_close(&world);
}

static void requests_are_never_ended_for_it(void **state)
{
    struct world world;

    (void)state;
    open_full(&world);
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        world.master.counters->gauges[i].open = 2;
    assert_false(retired_make_room(&world.master));
    world.master.counters->gauges[5].idle = 1; /* that one waits for its client */
    assert_true(retired_make_room(&world.master));
    assert_int_equal(told[0].pid, 105);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_another_edition_retire_once_and_hear_what_was_given_up),
        cmocka_unit_test(the_oldest_that_has_streams_only_makes_room_and_no_other_meanwhile),
        cmocka_unit_test(requests_are_never_ended_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Two parties between each other's steps: at a point of step.def the test does what the other party would
 * do just then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void on_step(int step);
#define BOARD_STEP(constant) on_step(STEP_##constant)

#include "board/bell.c"
#include "board/slot.c"

#define is_before is_ticket_before
#include "board/queue.c"

#include "world.h"

/* Who comes between: once, at this point. Of the process, as a step is told nothing else. */
static struct {
    int step;
    void (*act)(struct world *world);
    struct world *world;
} other;

static void on_step(int step)
{
    void (*act)(struct world * world) = other.act;

    if (step != other.step || !act)
        return;
    other.act = NULL;
    act(other.world);
}

static void meet(struct world *world, int step, void (*act)(struct world *world))
{
    other.step = step;
    other.world = world;
    other.act = act;
}

/* It published and loaded the mark just before the mark sank. */
static void publish_slot_30(struct world *world)
{
    atomic_store(&world->board.words[30], slot_pack((struct slot_word){SLOT_QUEUED, 1, 1, 77}));
}

static void a_request_published_while_the_mark_sinks_is_covered(void **state)
{
    struct world world;
    struct slot_word word;
    uint32_t slot;
    (void)state;

    world_open(&world, 64, 1, 1);
    slot = world_send(&world, 0, 0);
    atomic_store(&world.board.header->high, 40);
    assert_true(queue_cancel(&world.board, slot, 1));
    assert_true(slot_free(&world.board, slot));
    assert_int_equal(queue_high(&world.board), 40);
    meet(&world, STEP_HIGH_LOWERED, publish_slot_30);
    queue_lower(&world.board, 39);
    assert_null(other.act);
    assert_int_equal(queue_high(&world.board), 32);
    assert_int_equal(queue_take(&world.board, 0, &word), 30);
    world_close(&world);
}

/* It woke by itself and looked for its name just before it was named. */
static void wake_thread_1(struct world *world)
{
    atomic_store(&world->board.threads[1].asleep, BOARD_AWAKE);
    atomic_fetch_sub(&world->board.header->sleepers, 1);
}

static void a_thread_that_woke_by_itself_is_not_waited_for(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 8, 2, 1);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 1, BOARD_SLEEP_QUEUE);
    meet(&world, STEP_WAKE_NAMED, wake_thread_1);
    assert_true(bell_wake_worker(&world.board, 1000000, false));
    assert_int_equal(wake_thread(atomic_load(&world.board.header->wake)), 0);
    assert_int_equal(atomic_load(&world.board.threads[0].bell), 1);
    assert_int_equal(atomic_load(&world.board.threads[1].bell), 0);
    world_close(&world);
}

static void mark_the_old_turn(struct world *world)
{
    (void)slot_set_note_of_turn(&world->board, 0, 1, SLOT_LEFT);
}

static void a_note_for_the_last_turn_does_not_reach_the_next(void **state)
{
    struct world world;
    uint32_t turn;
    (void)state;

    world_open(&world, 8, 1, 1);
    assert_int_equal(slot_claim(&world.board, 0, &turn), 0);
    assert_true(slot_free(&world.board, 0));
    meet(&world, STEP_SLOT_CLAIMED, mark_the_old_turn);
    assert_int_equal(slot_claim(&world.board, 0, &turn), 0);
    assert_int_equal(slot_get_note(&world.board, 0), SLOT_WANTED);
    assert_false(slot_set_note_of_turn(&world.board, 0, 1, SLOT_LEFT));
    world_close(&world);
}

static void kill_front_0(struct world *world)
{
    atomic_store(&world->board.fronts[0].life, BOARD_DEAD);
    assert_int_equal(audit_front(&world->board, 0), 0);
}

static void only_kill_front_0(struct world *world)
{
    atomic_store(&world->board.fronts[0].life, BOARD_DEAD);
}

static void finish_while(void (*act)(struct world *world))
{
    struct world world;
    struct slot_word word;
    uint32_t slot;

    world_open(&world, 8, 1, 1);
    slot = world_send(&world, 0, 0);
    assert_int_equal(queue_take(&world.board, 0, &word), slot);
    meet(&world, STEP_SLOT_DONE, act);
    assert_true(slot_finish(&world.board, slot, 0));
    world_is_empty(&world);
    world_close(&world);
}

static void a_slot_is_freed_once_when_its_front_dies_as_it_is_done(void **state)
{
    (void)state;

    finish_while(only_kill_front_0);
    finish_while(kill_front_0);
}

static void notify(struct world *world)
{
    bell_notify_front(&world->board, 0, 0, 1);
}

static void a_notice_at_the_edge_of_sleep_keeps_the_loop_awake(void **state)
{
    struct world world;
    uint64_t count;
    (void)state;

    world_open(&world, 8, 2, 1);
    meet(&world, STEP_LOOP_ASLEEP, notify);
    assert_false(bell_front_sleep(&world.board, 0, 0));
    assert_int_equal(read(world.board.bells[0], &count, sizeof(count)), -1);
    assert_int_equal(bell_take_notices(&world.board, 0, 0, 0), 2);
    world_close(&world);
}

static void cancel_slot_0(struct world *world)
{
    if (queue_cancel(&world->board, 0, 1))
        assert_true(slot_free(&world->board, 0));
}

static void a_request_is_not_cancelled_after_it_was_taken(void **state)
{
    struct world world;
    struct slot_word word;
    (void)state;

    world_open(&world, 8, 1, 1);
    (void)world_send(&world, 0, 0);
    meet(&world, STEP_SLOT_TAKEN, cancel_slot_0);
    assert_int_equal(queue_take(&world.board, 0, &word), 0);
    assert_int_equal(slot_look(&world.board, 0).state, SLOT_TAKEN);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_published_while_the_mark_sinks_is_covered),
        cmocka_unit_test(a_thread_that_woke_by_itself_is_not_waited_for),
        cmocka_unit_test(a_note_for_the_last_turn_does_not_reach_the_next),
        cmocka_unit_test(a_slot_is_freed_once_when_its_front_dies_as_it_is_done),
        cmocka_unit_test(a_notice_at_the_edge_of_sleep_keeps_the_loop_awake),
        cmocka_unit_test(a_request_is_not_cancelled_after_it_was_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

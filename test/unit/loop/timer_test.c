/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/timer.c"

/* The loop as timers see it: a time that the test sets, and a heap. */
struct loop {
    uint64_t now_ms;
    struct timer_heap heap;
};

struct timer_heap *loop_timers(struct loop *loop)
{
    return &loop->heap;
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return loop->now_ms;
}

/* A timer that notes its calls; zeros are one that does nothing but count. */
struct noted {
    struct timer timer;
    struct loop *loop;
    struct timer *victim; /* stopped when called */
    bool again;           /* set again at once when called */
    int calls;
    uint64_t called_ms;
};

static void note(struct timer *timer)
{
    struct noted *noted = CONTAINER_OF(timer, struct noted, timer);

    noted->calls++;
    noted->called_ms = noted->loop->now_ms;
    if (noted->victim)
        timer_stop(noted->victim);
    if (noted->again)
        timer_set(noted->loop, timer, 0, note);
}

static void set(struct loop *loop, struct noted *noted, uint64_t delay_ms)
{
    noted->loop = loop;
    timer_set(loop, &noted->timer, delay_ms, note);
}

static void run_at(struct loop *loop, uint64_t now_ms)
{
    loop->now_ms = now_ms;
    timer_heap_run(&loop->heap, now_ms);
}

/* The invariants of the heap: order of keys, places, no key later than its timer. */
static void check_heap(const struct loop *loop)
{
    for (uint32_t i = 0; i < loop->heap.size; i++) {
        const struct timer_slot *slot = &loop->heap.slots[i];

        assert_int_equal(slot->timer->place, i);
        assert_ptr_equal(slot->timer->loop, loop);
        assert_true(slot->key_ms <= slot->timer->due_ms);
        if (i > 0)
            assert_true(loop->heap.slots[(i - 1) / 2].key_ms <= slot->key_ms);
    }
}

static void a_timer_is_called_once_and_never_before_its_delay_has_passed(void **state)
{
    struct loop loop = {.now_ms = 1000};
    struct noted noted = {0};
    (void)state;

    set(&loop, &noted, 10);
    run_at(&loop, 1010);
    assert_int_equal(noted.calls, 0);
    assert_true(timer_is_set(&noted.timer));
    run_at(&loop, 1011);
    assert_int_equal(noted.calls, 1);
    assert_false(timer_is_set(&noted.timer));
    run_at(&loop, 5000);
    assert_int_equal(noted.calls, 1);
    timer_heap_done(&loop.heap);
}

static void a_timer_moved_to_a_later_time_waits_for_that_time(void **state)
{
    struct loop loop = {.now_ms = 0};
    struct noted noted = {0};
    (void)state;

    set(&loop, &noted, 10);
    set(&loop, &noted, 100);
    assert_int_equal(loop.heap.size, 1);
    run_at(&loop, 50);
    assert_int_equal(noted.calls, 0);
    run_at(&loop, 101);
    assert_int_equal(noted.calls, 1);
    timer_heap_done(&loop.heap);
}

static void a_timer_moved_to_an_earlier_time_is_called_then(void **state)
{
    struct loop loop = {.now_ms = 0};
    struct noted first = {0}, second = {0};
    (void)state;

    set(&loop, &first, 50);
    set(&loop, &second, 100);
    set(&loop, &second, 5);
    check_heap(&loop);
    run_at(&loop, 6);
    assert_int_equal(second.calls, 1);
    assert_int_equal(first.calls, 0);
    timer_heap_done(&loop.heap);
}

static void moving_later_leaves_the_heap_as_it_is(void **state)
{
    struct loop loop = {.now_ms = 0};
    struct noted noted = {0};
    (void)state;

    set(&loop, &noted, 10);
    loop.now_ms = 5;
    set(&loop, &noted, 10);
    assert_int_equal(loop.heap.slots[0].key_ms, 11);
    assert_int_equal(noted.timer.due_ms, 16);
    timer_heap_done(&loop.heap);
}

static void the_wait_is_that_of_the_first_timer_also_after_it_was_moved(void **state)
{
    struct loop loop = {.now_ms = 0};
    struct noted first = {0}, second = {0};
    (void)state;

    assert_int_equal(timer_heap_wait(&loop.heap, 0), -1);
    set(&loop, &first, 9);
    set(&loop, &second, 49);
    assert_int_equal(timer_heap_wait(&loop.heap, 0), 10);
    set(&loop, &first, 99);
    assert_int_equal(timer_heap_wait(&loop.heap, 0), 50);
    assert_int_equal(timer_heap_wait(&loop.heap, 60), 0);
    timer_stop(&second.timer);
    assert_int_equal(timer_heap_wait(&loop.heap, 0), 100);
    timer_stop(&first.timer);
    assert_int_equal(timer_heap_wait(&loop.heap, 0), -1);
    timer_heap_done(&loop.heap);
}

static void a_wait_of_many_days_is_cut_to_what_the_system_takes(void **state)
{
    struct loop loop = {.now_ms = 7};
    struct noted noted = {0};
    (void)state;

    set(&loop, &noted, UINT64_MAX);
    assert_true(noted.timer.due_ms == UINT64_MAX);
    assert_int_equal(timer_heap_wait(&loop.heap, 7), INT_MAX);
    timer_heap_done(&loop.heap);
}

static void a_stopped_timer_is_never_called_even_by_one_that_is_due_with_it(void **state)
{
    struct loop loop = {.now_ms = 0};
    struct noted first = {0}, second = {0};
    (void)state;

    set(&loop, &first, 1);
    set(&loop, &second, 2);
    first.victim = &second.timer;
    run_at(&loop, 10);
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 0);
    assert_false(timer_is_set(&second.timer));
    timer_heap_done(&loop.heap);
}

static void a_timer_that_sets_itself_again_at_once_does_not_hold_the_loop(void **state)
{
    struct loop loop = {.now_ms = 0};
    struct noted noted = {.again = true};
    (void)state;

    set(&loop, &noted, 0);
    run_at(&loop, 1);
    assert_int_equal(noted.calls, 1);
    run_at(&loop, 2);
    assert_int_equal(noted.calls, 2);
    timer_heap_done(&loop.heap);
}

static void stopping_a_timer_that_is_not_set_is_harmless(void **state)
{
    struct timer timer = {0};
    (void)state;

    timer_stop(&timer);
    assert_false(timer_is_set(&timer));
}

static void the_end_of_the_loop_unsets_its_timers(void **state)
{
    struct loop loop = {.now_ms = 0};
    struct noted noted = {0};
    (void)state;

    set(&loop, &noted, 5);
    timer_heap_done(&loop.heap);
    assert_false(timer_is_set(&noted.timer));
}

static void thousands_set_moved_and_stopped_at_random_are_each_called_on_time(void **state)
{
    enum { COUNT = 2000 };
    struct loop loop = {.now_ms = 0};
    struct noted *noted = must_alloc(COUNT, sizeof(*noted));
    uint32_t random = 12345;
    (void)state;

    for (uint64_t now_ms = 0; now_ms < 300; now_ms++) {
        for (int i = 0; i < 200; i++) {
            random = random * 1664525 + 1013904223;
            if (random >> 28 == 0)
                timer_stop(&noted[(random >> 8) % COUNT].timer);
            else
                set(&loop, &noted[(random >> 8) % COUNT], (random >> 4) % 50);
        }
        check_heap(&loop);
        (void)timer_heap_wait(&loop.heap, now_ms);
        check_heap(&loop);
        run_at(&loop, now_ms + 1);
        for (int i = 0; i < COUNT; i++) {
            if (timer_is_set(&noted[i].timer))
                assert_true(noted[i].timer.due_ms > now_ms + 1);
            if (noted[i].called_ms == now_ms + 1)
                assert_true(noted[i].timer.due_ms == now_ms + 1);
        }
    }
    timer_heap_done(&loop.heap);
    free(noted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_is_called_once_and_never_before_its_delay_has_passed),
        cmocka_unit_test(a_timer_moved_to_a_later_time_waits_for_that_time),
        cmocka_unit_test(a_timer_moved_to_an_earlier_time_is_called_then),
        cmocka_unit_test(moving_later_leaves_the_heap_as_it_is),
        cmocka_unit_test(the_wait_is_that_of_the_first_timer_also_after_it_was_moved),
        cmocka_unit_test(a_wait_of_many_days_is_cut_to_what_the_system_takes),
        cmocka_unit_test(a_stopped_timer_is_never_called_even_by_one_that_is_due_with_it),
        cmocka_unit_test(a_timer_that_sets_itself_again_at_once_does_not_hold_the_loop),
        cmocka_unit_test(stopping_a_timer_that_is_not_set_is_harmless),
        cmocka_unit_test(the_end_of_the_loop_unsets_its_timers),
        cmocka_unit_test(thousands_set_moved_and_stopped_at_random_are_each_called_on_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

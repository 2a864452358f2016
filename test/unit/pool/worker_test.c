/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/worker.c"

static void walk(struct worker *worker, const enum worker_event *events, size_t size)
{
    for (size_t i = 0; i < size; i++)
        assert_true(worker_step(worker, events[i]));
}

static void a_worker_is_asked_for_serves_retires_and_its_entry_is_free_again(void **state)
{
    const enum worker_event events[] = {WORKER_ASK,    WORKER_FORK, WORKER_READY,
                                        WORKER_RETIRE, WORKER_END,  WORKER_AUDIT};
    struct worker worker = {.state = WORKER_EMPTY};

    (void)state;
    walk(&worker, events, 6);
    assert_int_equal(worker.state, WORKER_EMPTY);
}

static void an_entry_of_a_dead_worker_is_not_used_before_the_audit(void **state)
{
    struct worker worker = {.state = WORKER_DEAD};

    (void)state;
    assert_false(worker_step(&worker, WORKER_ASK));
    assert_false(worker_is_there(&worker));
    assert_true(worker_step(&worker, WORKER_AUDIT));
    assert_true(worker_step(&worker, WORKER_ASK));
}

static void one_that_is_unwanted_before_it_exists_is_killed_when_it_does(void **state)
{
    const enum worker_event events[] = {WORKER_ASK, WORKER_RETIRE, WORKER_FORK};
    struct worker worker = {.state = WORKER_EMPTY};

    (void)state;
    walk(&worker, events, 3);
    assert_int_equal(worker.state, WORKER_KILLED);
}

static void a_late_ready_does_not_bring_a_retiring_worker_back(void **state)
{
    struct worker worker = {.state = WORKER_RETIRING};

    (void)state;
    assert_true(worker_step(&worker, WORKER_READY));
    assert_int_equal(worker.state, WORKER_RETIRING);
}

static void a_refused_fork_leaves_an_empty_entry(void **state)
{
    struct worker worker = {.state = WORKER_EMPTY};

    (void)state;
    assert_true(worker_step(&worker, WORKER_ASK));
    assert_true(worker_step(&worker, WORKER_REFUSE));
    assert_int_equal(worker.state, WORKER_EMPTY);
    assert_false(worker_step(&worker, WORKER_REFUSE));
}

static void every_process_can_end_at_any_time(void **state)
{
    const enum worker_state with_process[] = {WORKER_STARTING, WORKER_SERVING, WORKER_RETIRING,
                                              WORKER_KILLED};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct worker worker = {.state = with_process[i]};
        assert_true(worker_is_there(&worker));
        assert_true(worker_step(&worker, WORKER_END));
        assert_int_equal(worker.state, WORKER_DEAD);
    }
}

static void status_has_four_words_for_it(void **state)
{
    struct worker worker = {.state = WORKER_ASKED};

    (void)state;
    assert_string_equal(worker_word(&worker, false), "starting");
    worker.state = WORKER_SERVING;
    assert_string_equal(worker_word(&worker, false), "idle");
    assert_string_equal(worker_word(&worker, true), "busy");
    worker.state = WORKER_KILLED;
    assert_string_equal(worker_word(&worker, true), "retiring");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_is_asked_for_serves_retires_and_its_entry_is_free_again),
        cmocka_unit_test(an_entry_of_a_dead_worker_is_not_used_before_the_audit),
        cmocka_unit_test(one_that_is_unwanted_before_it_exists_is_killed_when_it_does),
        cmocka_unit_test(a_late_ready_does_not_bring_a_retiring_worker_back),
        cmocka_unit_test(a_refused_fork_leaves_an_empty_entry),
        cmocka_unit_test(every_process_can_end_at_any_time),
        cmocka_unit_test(status_has_four_words_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

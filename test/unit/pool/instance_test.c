/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/instance.c"

#include <stdlib.h>
#include <unistd.h>

static const struct config config = {
    .limits = {.target = 16384, .header = 65536, .headers = 128},
};

static struct instance open_one(uint32_t max, uint32_t threads, uint64_t queue, uint32_t loops)
{
    struct config_pool settings = {.name = "shop", .threads = threads, .queue_length = queue};
    struct instance instance = {.board_fd = -1};
    struct faults faults = {.size = 0};

    assert_int_equal(
        instance_open(&config, &settings, max, loops, "/run/leat/1-0", &instance, &faults), 0);
    return instance;
}

static void there_are_places_for_the_queue_and_for_every_thread(void **state)
{
    struct instance instance = open_one(4, 3, 100, 1);

    (void)state;
    assert_int_equal(instance.board.shape.slots, 112);
    /* Twice as many as wanted, so that successors start before their forerunners are gone. */
    assert_int_equal(instance.board.shape.workers, 16);
    assert_int_equal(instance.board.shape.threads, 3);
    instance_close(&instance);
}

static void what_a_board_cannot_hold_is_cut_to_what_it_can(void **state)
{
    struct instance instance = open_one(1024, 64, UINT64_MAX / 2, 1);

    (void)state;
    assert_int_equal(instance.board.shape.slots, BOARD_SLOTS_MAX);
    assert_true(instance.board.shape.workers * 64 <= BOARD_THREADS_MAX);
    instance_close(&instance);
}

static void a_bell_is_there_for_each_loop_of_each_possible_front(void **state)
{
    struct instance instance = open_one(1, 1, 10, 2);
    int fds[INSTANCE_FIXED + BOARD_FRONTS * 2];

    (void)state;
    assert_int_equal(instance_descriptors(&instance, 77, fds), ARRAY_LEN(fds));
    assert_int_equal(fds[0], instance.report_peer);
    assert_int_equal(fds[1], 77);
    assert_int_equal(fds[2], instance.board_fd);
    for (size_t i = INSTANCE_FIXED; i < ARRAY_LEN(fds); i++)
        assert_int_equal(eventfd_write(fds[i], 1), 0);
    instance_close(&instance);
}

static void all_descriptors_of_a_hello_fit_into_one_message(void **state)
{
    (void)state;
    assert_true(INSTANCE_FIXED + INSTANCE_LOOPS_MAX * BOARD_FRONTS <= FD_PASS_MAX);
}

static void closing_gives_every_descriptor_back(void **state)
{
    int before = dup(0);
    struct instance instance;
    int after;

    (void)state;
    (void)close(before);
    instance = open_one(2, 2, 10, 3);
    instance_close(&instance);
    instance_close(&instance);
    after = dup(0);
    assert_int_equal(after, before);
    (void)close(after);
}

static void a_board_that_cannot_be_made_is_a_fault_with_its_numbers(void **state)
{
    struct config_pool settings = {.name = "shop", .threads = 3, .queue_length = 10};
    struct instance instance = {.board_fd = -1};
    struct faults faults = {.size = 0};
    char runtime[4096];

    (void)state;
    memset(runtime, 'x', sizeof runtime - 1);
    runtime[sizeof runtime - 1] = '\0';
    assert_int_equal(instance_open(&config, &settings, 2, 1, runtime, &instance, &faults), -1);
    assert_int_equal(instance.board_fd, -1);
    assert_non_null(strstr(faults.items[0].reason, "12 workers of 3 threads"));
    faults_done(&faults);
}

static void a_workers_life_is_written_for_all_to_see(void **state)
{
    struct instance instance = open_one(2, 2, 10, 1);
    struct board_worker *place = &instance.board.workers[1];

    (void)state;
    instance_begin(&instance, 1, 4711, 9);
    assert_int_equal(atomic_load(&place->life), BOARD_STARTING);
    assert_int_equal(atomic_load(&place->pid), 4711);
    assert_int_equal(atomic_load(&place->generation), 9);
    instance_serve(&instance, 1);
    assert_int_equal(atomic_load(&place->life), BOARD_ALIVE);
    atomic_store(&place->busy, 2);
    assert_int_equal(instance_busy(&instance, 1), 2);
    instance_end(&instance, 1);
    assert_int_equal(atomic_load(&place->life), BOARD_DEAD);
    assert_int_equal(atomic_load(&instance.board.workers[0].life), BOARD_FREE);
    instance_close(&instance);
}

static void every_thread_of_a_worker_hears_that_it_is_to_retire(void **state)
{
    struct instance instance = open_one(2, 2, 10, 1);
    uint32_t thread = board_thread_of(&instance.board, 1, 0);
    uint32_t other = board_thread_of(&instance.board, 0, 0);
    uint32_t before[2];

    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        before[i] = atomic_load(&instance.board.threads[thread + i].bell);
    instance_begin(&instance, 1, 4711, 9);
    instance_retire(&instance, 1);
    assert_int_equal(atomic_load(&instance.board.workers[1].life), BOARD_RETIRING);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_not_equal(atomic_load(&instance.board.threads[thread + i].bell), before[i]);
    assert_int_equal(atomic_load(&instance.board.threads[other].bell), 0);
    instance_close(&instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_places_for_the_queue_and_for_every_thread),
        cmocka_unit_test(what_a_board_cannot_hold_is_cut_to_what_it_can),
        cmocka_unit_test(a_bell_is_there_for_each_loop_of_each_possible_front),
        cmocka_unit_test(all_descriptors_of_a_hello_fit_into_one_message),
        cmocka_unit_test(closing_gives_every_descriptor_back),
        cmocka_unit_test(a_board_that_cannot_be_made_is_a_fault_with_its_numbers),
        cmocka_unit_test(a_workers_life_is_written_for_all_to_see),
        cmocka_unit_test(every_thread_of_a_worker_hears_that_it_is_to_retire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/bell.c"

#include "world.h"

#include <poll.h>
#include <pthread.h>

enum { NOW_US = 1000000 };

static uint32_t named(const struct world *world)
{
    return wake_thread(atomic_load(&world->board.header->wake));
}

static bool is_ringing(const struct world *world, uint32_t front, uint32_t loop)
{
    struct pollfd bell = {world->board.bells[front * WORLD_LOOPS + loop], POLLIN, 0};

    return poll(&bell, 1, 0) == 1;
}

static void nobody_is_woken_when_nobody_sleeps(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 2, 2);
    assert_false(bell_wake_worker(&world.board, 1000000, false));
    assert_int_equal(atomic_load(&world.board.header->wake), 0);
    world_close(&world);
}

static void nobody_need_be_woken_when_busy_workers_come_sooner(void **state)
{
    struct world world;
    uint32_t turn;
    (void)state;

    world_open(&world, 40, 2, 1);
    assert_false(bell_can_wait(&world.board, NOW_US));
    atomic_store(&world.board.workers[0].busy, 1);
    assert_false(bell_can_wait(&world.board, NOW_US));
    atomic_store(&world.board.workers[0].service_ns, 5000);
    atomic_store(&world.board.workers[0].taken_us, NOW_US);
    for (int queued = 0; queued < 11; queued++) {
        uint32_t slot = (uint32_t)slot_claim(&world.board, 0, &turn);

        slot_begin(&world.board, slot, 0, 0);
        assert_true(queue_push(&world.board, slot, 1));
        assert_true(bell_can_wait(&world.board, NOW_US));
    }
    /* Twelve requests of 5 us are as long as a wake; two workers have them done in half of it. */
    slot_begin(&world.board, (uint32_t)slot_claim(&world.board, 0, &turn), 0, 0);
    assert_true(queue_push(&world.board, 11, 1));
    assert_false(bell_can_wait(&world.board, NOW_US));
    atomic_store(&world.board.workers[1].busy, 1);
    atomic_store(&world.board.workers[1].service_ns, 1000);
    atomic_store(&world.board.workers[1].taken_us, NOW_US);
    assert_true(bell_can_wait(&world.board, NOW_US));
    atomic_store(&world.board.workers[1].service_ns, 2000000);
    assert_false(bell_can_wait(&world.board, NOW_US));
    world_close(&world);
}

static void set_serving(struct world *world, uint32_t worker, uint64_t service_ns,
                        uint64_t taken_us)
{
    struct board_worker *entry = &world->board.workers[worker];

    atomic_store(&entry->busy, 1);
    atomic_store(&entry->service_ns, service_ns);
    atomic_store(&entry->taken_us, taken_us);
}

static void a_thread_of_a_worker_that_computes_is_not_woken_however_long_the_queue(void **state)
{
    struct world world;
    uint32_t turn;
    (void)state;

    world_open(&world, 40, 2, 2);
    for (int queued = 0; queued < 30; queued++) {
        uint32_t slot = (uint32_t)slot_claim(&world.board, 0, &turn);

        slot_begin(&world.board, slot, 0, 0);
        assert_true(queue_push(&world.board, slot, 1));
    }
    set_serving(&world, 0, 20000, NOW_US);
    set_serving(&world, 1, 20000, NOW_US);
    assert_true(bell_can_wait(&world.board, NOW_US));
    /* A front's clock stands still during a batch. */
    assert_true(bell_can_wait(&world.board, NOW_US - 500));
    /* One whose request takes that much longer than usual is blocked by it. */
    assert_false(bell_can_wait(&world.board, NOW_US + BELL_WAKE_COST_US + 1));
    set_serving(&world, 1, 20000, NOW_US - BELL_WAKE_COST_US - 1);
    assert_false(bell_can_wait(&world.board, NOW_US));
    world_close(&world);
}

static void the_emptiest_worker_is_woken_and_its_latest_sleeper(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 3, 3);
    atomic_store(&world.board.workers[0].busy, 2);
    atomic_store(&world.board.workers[1].busy, 1);
    atomic_store(&world.board.workers[2].busy, 1);
    (void)bell_prepare(&world.board, 4, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 7, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 6, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 3, BOARD_SLEEP_PAGE);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    assert_false(bell_wake_worker(&world.board, 1000000, true));
    assert_true(bell_wake_worker(&world.board, 1000000, false));
    assert_int_equal(named(&world), 6);
    assert_int_equal(atomic_load(&world.board.threads[6].bell), 1);
    world_is_sound(&world);
    world_close(&world);
}

static void workers_that_take_nothing_are_not_woken(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 3, 1);
    for (uint32_t thread = 0; thread < 3; thread++)
        (void)bell_prepare(&world.board, thread, BOARD_SLEEP_QUEUE);
    atomic_store(&world.board.workers[0].ready, 0);
    atomic_store(&world.board.workers[1].life, BOARD_RETIRING);
    atomic_store(&world.board.workers[2].life, BOARD_DEAD);
    assert_false(bell_wake_worker(&world.board, 1000000, false));
    atomic_store(&world.board.workers[0].ready, 1);
    assert_true(bell_wake_worker(&world.board, 1000000, false));
    assert_int_equal(named(&world), 0);
    world_close(&world);
}

static void one_wake_is_in_flight_and_repeated_to_another(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 2, 1);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 1, BOARD_SLEEP_QUEUE);
    assert_true(bell_wake_worker(&world.board, 1000000, false));
    assert_int_equal(named(&world), 1);
    assert_true(bell_wake_worker(&world.board, 1004999, false));
    assert_int_equal(atomic_load(&world.board.threads[0].bell), 0);
    assert_true(bell_wake_worker(&world.board, 1005000, false));
    assert_int_equal(named(&world), 0);
    bell_stay(&world.board, 0);
    assert_int_equal(named(&world), NOBODY);
    assert_true(bell_wake_worker(&world.board, 1005000, false));
    assert_int_equal(named(&world), 1);
    assert_true(bell_wake_worker(&world.board, 1010000, false));
    assert_int_equal(atomic_load(&world.board.threads[1].bell), 3);
    world_close(&world);
}

static void the_time_of_a_wake_counts_on_through_zero(void **state)
{
    uint64_t wake = wake_pack(3, UINT32_MAX - 1);
    (void)state;

    assert_int_equal(wake_thread(wake), 3);
    assert_true(is_young(wake, 2));
    assert_false(is_young(wake, 3));
    assert_false(is_young(wake, UINT32_MAX - 2));
    assert_false(is_young(0, 0));
}

static void a_woken_thread_passes_on_while_requests_are_queued(void **state)
{
    struct world world;
    struct slot_word word;
    (void)state;

    world_open(&world, 4, 2, 1);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    (void)bell_prepare(&world.board, 1, BOARD_SLEEP_QUEUE);
    (void)world_send(&world, 0, 0);
    (void)world_send(&world, 0, 0);
    assert_true(bell_wake_worker(&world.board, 1000000, false));
    bell_stay(&world.board, 1);
    assert_int_equal(queue_take(&world.board, 1, &word), 0);
    bell_pass_on(&world.board, 1000000);
    assert_int_equal(named(&world), 0);
    bell_stay(&world.board, 0);
    assert_int_equal(queue_take(&world.board, 0, &word), 1);
    (void)bell_prepare(&world.board, 1, BOARD_SLEEP_QUEUE);
    bell_pass_on(&world.board, 1000000);
    assert_int_equal(named(&world), NOBODY);
    world_close(&world);
}

static void a_ring_before_the_sleep_ends_it_at_once(void **state)
{
    struct world world;
    uint32_t bell;
    (void)state;

    world_open(&world, 4, 1, 1);
    bell = bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    assert_int_equal(atomic_load(&world.board.header->sleepers), 1);
    bell_ring_thread(&world.board, 0);
    assert_int_equal(bell_sleep(&world.board, 0, bell, -1), 0);
    assert_int_equal(atomic_load(&world.board.header->sleepers), 0);
    assert_int_equal(atomic_load(&world.board.threads[0].asleep), BOARD_AWAKE);
    bell = bell_prepare(&world.board, 0, BOARD_SLEEP_PAGE);
    assert_int_equal(atomic_load(&world.board.header->sleepers), 0);
    assert_int_equal(bell_sleep(&world.board, 0, bell, 1), -ETIMEDOUT);
    world_close(&world);
}

static void *sleep_once(void *memory)
{
    struct world *world = memory;
    uint32_t bell = bell_prepare(&world->board, 0, BOARD_SLEEP_QUEUE);

    return (void *)(intptr_t)bell_sleep(&world->board, 0, bell, 20000);
}

static void a_sleeping_thread_is_woken(void **state)
{
    struct world world;
    pthread_t thread;
    void *result;
    (void)state;

    world_open(&world, 4, 1, 1);
    assert_int_equal(pthread_create(&thread, NULL, sleep_once, &world), 0);
    while (!bell_wake_worker(&world.board, 1000000, false))
        continue;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((intptr_t)result, 0);
    assert_int_equal(atomic_load(&world.board.header->wake), 0);
    world_is_sound(&world);
    world_close(&world);
}

static void *sleep_for_the_worker(void *memory)
{
    struct world *world = memory;

    bell_sleep_worker(&world->board, 1, 0);
    return memory;
}

static void the_main_thread_of_a_worker_has_a_bell_of_its_own(void **state)
{
    struct world world;
    pthread_t thread;
    void *result;
    (void)state;

    world_open(&world, 4, 2, 2);
    assert_int_equal(pthread_create(&thread, NULL, sleep_for_the_worker, &world), 0);
    bell_ring_worker(&world.board, 1);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &world);
    assert_int_equal(atomic_load(&world.board.workers[1].bell), 1);
    /* Rung before the sleep: there is none. */
    bell_sleep_worker(&world.board, 1, 0);
    world_close(&world);
}

static void only_a_thread_that_waits_for_a_page_is_rung_for_one(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 1, 1);
    bell_ring_page(&world.board, 0);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_QUEUE);
    bell_ring_page(&world.board, 0);
    assert_int_equal(atomic_load(&world.board.threads[0].bell), 0);
    bell_stay(&world.board, 0);
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_PAGE);
    bell_ring_page(&world.board, 0);
    assert_int_equal(atomic_load(&world.board.threads[0].bell), 1);
    world_close(&world);
}

static void a_loop_is_rung_once_and_only_when_it_sleeps(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 40, 2);
    bell_notify_front(&world.board, 1, 1, 3);
    assert_false(is_ringing(&world, 1, 1));
    assert_false(bell_front_sleep(&world.board, 1, 1));
    assert_int_equal(bell_take_notices(&world.board, 1, 1, 0), 8);
    assert_true(bell_front_sleep(&world.board, 1, 1));
    bell_notify_front(&world.board, 1, 1, 70);
    bell_notify_front(&world.board, 1, 1, 71);
    assert_true(is_ringing(&world, 1, 1));
    assert_false(is_ringing(&world, 1, 0));
    bell_front_wake(&world.board, 1, 1);
    assert_false(is_ringing(&world, 1, 1));
    assert_int_equal(bell_take_notices(&world.board, 1, 1, 0), 0);
    assert_int_equal(bell_take_notices(&world.board, 1, 1, 1), 0xc0);
    bell_ring_front(&world.board, 1, 1);
    assert_true(is_ringing(&world, 1, 1));
    bell_front_wake(&world.board, 1, 1);
    bell_front_wake(&world.board, 1, 1);
    assert_false(is_ringing(&world, 1, 1));
    world_close(&world);
}

static void a_ring_that_comes_late_can_be_emptied(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 1, 1);
    assert_true(bell_front_sleep(&world.board, 0, 0));
    atomic_store(board_asleep(&world.board, 0, 0), BOARD_LOOP_RUNG);
    bell_front_wake(&world.board, 0, 0);
    write_bell(&world.board, 0, 0);
    assert_true(is_ringing(&world, 0, 0));
    bell_front_empty(&world.board, 0, 0);
    assert_false(is_ringing(&world, 0, 0));
    world_close(&world);
}

static void notices_of_threads_that_are_not_there_are_left_out(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 4, 23, 3);
    for (uint32_t i = 0; i < world.board.notice_words; i++)
        atomic_store(&board_notices(&world.board, 0, 0)[i], UINT64_MAX);
    assert_true(bell_take_notices(&world.board, 0, 0, 0) == UINT64_MAX);
    assert_int_equal(bell_take_notices(&world.board, 0, 0, 1), 31);
    assert_int_equal(bell_take_notices(&world.board, 0, 0, 2), 0);
    assert_true(bell_front_sleep(&world.board, 0, 1));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_woken_when_nobody_sleeps),
        cmocka_unit_test(nobody_need_be_woken_when_busy_workers_come_sooner),
        cmocka_unit_test(a_thread_of_a_worker_that_computes_is_not_woken_however_long_the_queue),
        cmocka_unit_test(the_emptiest_worker_is_woken_and_its_latest_sleeper),
        cmocka_unit_test(workers_that_take_nothing_are_not_woken),
        cmocka_unit_test(one_wake_is_in_flight_and_repeated_to_another),
        cmocka_unit_test(the_time_of_a_wake_counts_on_through_zero),
        cmocka_unit_test(a_woken_thread_passes_on_while_requests_are_queued),
        cmocka_unit_test(a_ring_before_the_sleep_ends_it_at_once),
        cmocka_unit_test(a_sleeping_thread_is_woken),
        cmocka_unit_test(the_main_thread_of_a_worker_has_a_bell_of_its_own),
        cmocka_unit_test(only_a_thread_that_waits_for_a_page_is_rung_for_one),
        cmocka_unit_test(a_loop_is_rung_once_and_only_when_it_sleeps),
        cmocka_unit_test(a_ring_that_comes_late_can_be_emptied),
        cmocka_unit_test(notices_of_threads_that_are_not_there_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/crew.c"

#include "pool_world.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t index_of(const struct world *world, pid_t pid)
{
    for (uint32_t i = 0; i < world->pool->instance.board.shape.workers; i++)
        if (world->pool->workers[i].pid == pid)
            return i;
    return -1;
}

static uint32_t life_of(const struct world *world, int64_t index)
{
    return atomic_load(&world->pool->instance.board.workers[index].life);
}

static void a_worker_is_counted_by_what_it_is_and_by_its_generation(void **state)
{
    struct world world;
    struct crew_count count;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    (void)pool_restart(world.pool);
    world_run(&world);
    world_say_loaded(&world, 2);
    count = crew_count(world.pool);
    assert_int_equal(count.serving, 2);
    assert_int_equal(count.trial, 1);
    assert_int_equal(count.older, 0);
    assert_int_equal(count.there, 3);
    world_serve(&world);
    count = crew_count(world.pool);
    assert_int_equal(count.serving, 1);
    assert_int_equal(count.older, 1);
    assert_int_equal(count.starting, 1);
    /* And the old one that is leaving. */
    assert_int_equal(count.there, 4);
    world_close(&world);
}

static void a_worker_may_take_requests_only_when_it_has_said_ready(void **state)
{
    struct world world;
    int64_t index;

    (void)state;
    world_open(&world, 1, 1);
    world.settings.preload = CONFIG_PRELOAD_TRUE;
    world_start(&world);
    index = index_of(&world, 500);
    assert_int_equal(life_of(&world, index), BOARD_ALIVE);
    world_end(&world, 500, WORLD_CRASHED);
    world_fork(&world);
    index = index_of(&world, 501);
    assert_int_equal(life_of(&world, index), BOARD_STARTING);
    assert_int_equal(atomic_load(&world.pool->instance.board.workers[index].pid), 501);
    /* Somebody else's word counts for nothing. */
    world_say(&world, "ready\nindex=0\npid=999\n");
    assert_int_equal(life_of(&world, index), BOARD_STARTING);
    world_close(&world);
}

static void a_process_that_ends_before_it_is_known_as_a_worker_is_not_waited_for(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    assert_non_null(world_find(&world, WORKER_ASKED));
    assert_false(pool_child_ended(world.pool, 501, WORLD_CRASHED));
    world_fork(&world);
    assert_int_equal(index_of(&world, 501), -1);
    assert_int_equal(world.pool->exits[EXIT_CRASH], 1);
    world_close(&world);
}

static void a_worker_that_is_not_ready_in_time_is_killed_and_counts_as_timeout(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    world_fork(&world);
    world_wait(&world, 90000);
    assert_int_equal(played.killed, 501);
    world_end(&world, 501, WORLD_KILLED);
    assert_int_equal(world.pool->exits[EXIT_TIMEOUT], 1);
    assert_non_null(strstr(world.pool->error, "not ready within start_timeout"));
    world_close(&world);
}

static void ended_workers_are_counted_for_others_too(void **state)
{
    static _Atomic uint64_t counts[EXIT_REASONS];
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world.pool->options.exit_counts = counts;
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    world_fork(&world);
    world_wait(&world, 90000);
    world_end(&world, 501, WORLD_KILLED);
    for (unsigned i = 0; i < EXIT_REASONS; i++)
        assert_int_equal(counts[i], world.pool->exits[i]);
    assert_int_equal(counts[EXIT_TIMEOUT], 1);
    world_close(&world);
}

static void a_fork_that_takes_long_is_said_but_waited_for(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    world_wait(&world, 5000);
    assert_int_equal(world.pool->state, POOL_DEGRADED);
    assert_non_null(strstr(world.pool->error, "cannot start a worker"));
    assert_int_equal(played.kills, 0);
    world_serve(&world);
    assert_int_equal(world.pool->state, POOL_UP);
    assert_string_equal(world.pool->error, "");
    world_close(&world);
}

static void a_mold_that_never_forks_is_killed(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    world_wait(&world, 90000);
    assert_int_equal(played.killed, 101);
    assert_non_null(world_find(&world, WORKER_UNWANTED));
    world_end(&world, 101, WORLD_KILLED);
    assert_null(world_find(&world, WORKER_UNWANTED));
    assert_int_equal(played.execs, 2);
    world_close(&world);
}

static void a_retiring_worker_has_its_time_and_is_then_killed(void **state)
{
    struct world world;
    uint32_t index;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    index = (uint32_t)index_of(&world, 500);
    crew_retire(world.pool, index, EXIT_NORMAL, 2000);
    assert_int_equal(life_of(&world, index), BOARD_RETIRING);
    world_wait(&world, 1999);
    assert_int_equal(played.kills, 0);
    world_wait(&world, 1);
    assert_int_equal(played.killed, 500);
    world_end(&world, 500, WORLD_KILLED);
    assert_int_equal(world.pool->exits[EXIT_NORMAL], 1);
    world_close(&world);
}

static void a_second_retirement_may_shorten_the_time_but_keeps_the_reason(void **state)
{
    struct world world;
    uint32_t index;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    index = (uint32_t)index_of(&world, 500);
    crew_retire(world.pool, index, EXIT_TIMEOUT, 9000);
    crew_retire(world.pool, index, EXIT_NORMAL, 1000);
    world_wait(&world, 1000);
    assert_int_equal(played.killed, 500);
    world_end(&world, 500, WORLD_KILLED);
    assert_int_equal(world.pool->exits[EXIT_TIMEOUT], 1);
    world_close(&world);
}

static void a_worker_retired_before_it_was_forked_is_killed_when_it_is(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    crew_retire(world.pool, played.asked, EXIT_NORMAL, 1000);
    world_say(&world, "forked\nindex=0\npid=501\n");
    assert_int_equal(played.killed, 501);
    world_close(&world);
}

/* A thread of the worker has taken a request. */
static uint32_t take(struct world *world, uint32_t index, uint32_t thread)
{
    const struct board *board = &world->pool->instance.board;
    struct slot_word word;
    int64_t slot;

    world_queue(world);
    slot = queue_take(board, board_thread_of(board, index, thread), &word);
    assert_true(slot >= 0);
    atomic_fetch_add(&board->workers[index].busy, 1);
    return (uint32_t)slot;
}

/* It ran over its time: the front has said so to its client, and now says so to us. */
static void be_late(struct world *world, uint32_t index, uint32_t slot)
{
    slot_set_note(&world->pool->instance.board, slot, SLOT_LATE);
    pool_worker_late(world->pool, index, slot);
}

static void a_late_worker_goes_when_only_its_late_requests_are_left(void **state)
{
    struct world world;
    const struct board *board;
    uint32_t index, late, other;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    board = &world.pool->instance.board;
    index = (uint32_t)index_of(&world, 500);
    late = take(&world, index, 0);
    other = take(&world, index, 1);
    be_late(&world, index, late);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext=thread\n");
    /* However long the other one takes, if it is within its own limit. */
    world_wait(&world, 2900);
    assert_int_equal(played.kills, 0);
    assert_true(slot_finish(board, other, board_thread_of(board, index, 1)));
    atomic_fetch_sub(&board->workers[index].busy, 1);
    world_wait(&world, 50);
    assert_int_equal(played.killed, 500);
    world_end(&world, 500, WORLD_KILLED);
    assert_int_equal(world.pool->exits[EXIT_TIMEOUT], 1);
    world_close(&world);
}

static void streams_of_a_late_worker_are_waited_for(void **state)
{
    struct world world;
    uint32_t index;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    index = (uint32_t)index_of(&world, 500);
    atomic_store(&world.pool->instance.board.workers[index].streams, 2);
    be_late(&world, index, take(&world, index, 0));
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext=thread\n");
    world_wait(&world, 500);
    assert_int_equal(played.kills, 0);
    atomic_store(&world.pool->instance.board.workers[index].streams, 0);
    world_wait(&world, 50);
    assert_int_equal(played.killed, 500);
    world_close(&world);
}

static void a_late_request_that_ended_after_all_is_not_counted_against_another(void **state)
{
    struct world world;
    const struct board *board;
    uint32_t index, late;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    board = &world.pool->instance.board;
    index = (uint32_t)index_of(&world, 500);
    late = take(&world, index, 0);
    (void)take(&world, index, 1);
    be_late(&world, index, late);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext=thread\n");
    assert_true(slot_finish(board, late, board_thread_of(board, index, 0)));
    atomic_fetch_sub(&board->workers[index].busy, 1);
    world_wait(&world, 200);
    assert_int_equal(played.kills, 0);
    world_close(&world);
}

static void a_worker_whose_request_was_ended_by_hand_goes_the_same_way(void **state)
{
    struct world world;
    const struct board *board;
    uint32_t index, other, ended;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    board = &world.pool->instance.board;
    index = (uint32_t)index_of(&world, 500);
    ended = take(&world, index, 0);
    other = take(&world, index, 1);
    slot_set_note(board, ended, SLOT_LATE);
    pool_request_killed(world.pool, index);
    pool_request_killed(world.pool, 4000);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext=thread\n");
    world_wait(&world, 1000);
    assert_int_equal(played.kills, 0);
    assert_true(slot_finish(board, other, board_thread_of(board, index, 1)));
    atomic_fetch_sub(&board->workers[index].busy, 1);
    world_wait(&world, 50);
    assert_int_equal(played.killed, 500);
    world_end(&world, 500, WORLD_KILLED);
    /* Nothing ran into a limit. */
    assert_int_equal(world.pool->exits[EXIT_NORMAL], 1);
    world_close(&world);
}

static void a_late_worker_lives_until_it_was_asked_what_it_does(void **state)
{
    struct world world;
    uint32_t index;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    index = (uint32_t)index_of(&world, 500);
    be_late(&world, index, take(&world, index, 0));
    world_run(&world);
    /* Its successor is on its way at once. */
    assert_non_null(world_find(&world, WORKER_ASKED));
    world_wait(&world, 500);
    assert_int_equal(played.kills, 0);
    world_wait(&world, QUESTION_MS);
    assert_int_equal(played.killed, 500);
    world_close(&world);
}

/* A child of ours that is stopped. */
static pid_t make_stopped_child(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

/* The worker is that process from now on, as far as anybody knows. */
static void become(struct world *world, uint32_t index, pid_t pid)
{
    world->pool->workers[index].pid = pid;
    atomic_store(&world->pool->instance.board.workers[index].pid, (uint32_t)pid);
}

static void a_stopped_worker_is_replaced_when_requests_wait_for_it(void **state)
{
    struct world world;
    struct worker *worker;
    pid_t child = make_stopped_child();

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    worker = &world.pool->workers[index_of(&world, 500)];
    become(&world, (uint32_t)(worker - world.pool->workers), getpid());
    pool_want(world.pool);
    world_wait(&world, 1000);
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(worker->state, WORKER_SERVING);
    become(&world, (uint32_t)(worker - world.pool->workers), child);
    pool_want(world.pool);
    /* A stop for a moment is none. */
    assert_int_equal(worker->state, WORKER_SERVING);
    world_wait(&world, 1000);
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(worker->state, WORKER_RETIRING);
    assert_non_null(world_find(&world, WORKER_ASKED));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    world_close(&world);
}

static void the_line_of_a_timeout_has_no_query(void **state)
{
    char line[1024] = "";
    struct world world;
    const struct board *board;
    struct slot_request *request;
    uint32_t turn;
    int64_t slot;
    int file = memfd_create("log", MFD_CLOEXEC);

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    board = &world.pool->instance.board;
    slot = slot_claim(board, 0, &turn);
    assert_true(slot >= 0);
    slot_begin(board, (uint32_t)slot, 0, 0);
    request = slot_request(board, (uint32_t)slot);
    assert_true(slot_append(board, (uint32_t)slot, span_of("/sleep?secret"), &request->target));
    assert_true(slot_append(board, (uint32_t)slot, span_of("abc"), &request->request_id));
    log_to(file);
    pool_worker_late(world.pool, (uint32_t)index_of(&world, 500), (uint32_t)slot);
    log_to(-1);
    assert_true(pread(file, line, sizeof line - 1, 0) > 0);
    (void)close(file);
    assert_non_null(strstr(line, " /sleep id=abc; the client got 504"));
    world_close(&world);
}

static void a_worker_that_wrote_garbage_is_killed_as_a_crash(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    pool_worker_broken(world.pool, (uint32_t)index_of(&world, 500));
    assert_int_equal(played.killed, 500);
    world_end(&world, 500, WORLD_KILLED);
    assert_int_equal(world.pool->exits[EXIT_CRASH], 1);
    world_close(&world);
}

static void numbers_that_name_nobody_change_nothing(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    pool_worker_broken(world.pool, 4000);
    pool_worker_broken(world.pool, 5);
    pool_worker_late(world.pool, 4000, 0);
    pool_worker_late(world.pool, 0, 400000);
    pool_audited(world.pool, 4000);
    assert_int_equal(played.kills, 0);
    assert_int_equal(pool_serving(world.pool), 1);
    world_close(&world);
}

static void an_entry_is_used_again_only_when_every_front_has_given_back(void **state)
{
    struct world world;
    uint32_t index;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    index = (uint32_t)index_of(&world, 500);
    assert_true(crew_ended(world.pool, 500, WORLD_CRASHED));
    assert_int_equal(life_of(&world, index), BOARD_DEAD);
    assert_int_equal(played.dead, 1);
    world_run(&world);
    /* Its successor has another entry. */
    assert_int_not_equal(played.asked, index);
    assert_int_equal(world.pool->workers[index].state, WORKER_DEAD);
    crew_audited(world.pool, index);
    assert_int_equal(world.pool->workers[index].state, WORKER_EMPTY);
    world_close(&world);
}

static void the_oldest_worker_goes_first(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 3);
    world_start(&world);
    played.now_ms += 10;
    pool_adjust(world.pool, 1);
    world_run(&world);
    world_serve(&world);
    assert_int_equal(crew_find_surplus(world.pool), index_of(&world, 500));
    assert_int_equal(crew_find_older(world.pool), -1);
    world_close(&world);
}

static void a_storm_of_young_deaths_ends_in_pauses(void **state)
{
    struct world world;
    int replaced = 0;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    for (int i = 0; i < 40; i++) {
        struct worker *worker = world_find(&world, WORKER_SERVING);
        if (!worker)
            break;
        world_end(&world, worker->pid, WORLD_CRASHED);
        world_serve(&world);
        replaced++;
    }
    assert_in_range(replaced, 9, 12);
    assert_true(pool_wait_ms(world.pool) > 0);
    world_close(&world);
}

static void
what_answers_with_an_exception_is_a_start_and_is_followed_at_once_when_it_leaves(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    world.config.development = true;
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    for (pid_t pid = 101; pid < 121; pid++) {
        world_say(&world, "excuse\ngeneration=1\nindex=0\nclass=LoadError\nmessage=no such file\n");
        world_serve(&world);
        assert_int_equal(world.pool->state, POOL_DEGRADED);
        assert_string_equal(world.pool->error, "LoadError: no such file");
        world_end(&world, pid, WORLD_EXIT_0);
        assert_int_equal(played.last_pid, pid + 1);
    }
    assert_int_equal(played.started, 1);
    assert_string_equal(played.start_failure, "");
    assert_int_equal(world.pool->exits[EXIT_NORMAL], 20);
    world_serve(&world);
    assert_int_equal(world.pool->state, POOL_UP);
    assert_string_equal(world.pool->error, "");
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_is_counted_by_what_it_is_and_by_its_generation),
        cmocka_unit_test(a_worker_may_take_requests_only_when_it_has_said_ready),
        cmocka_unit_test(a_process_that_ends_before_it_is_known_as_a_worker_is_not_waited_for),
        cmocka_unit_test(a_worker_that_is_not_ready_in_time_is_killed_and_counts_as_timeout),
        cmocka_unit_test(ended_workers_are_counted_for_others_too),
        cmocka_unit_test(a_fork_that_takes_long_is_said_but_waited_for),
        cmocka_unit_test(a_mold_that_never_forks_is_killed),
        cmocka_unit_test(a_retiring_worker_has_its_time_and_is_then_killed),
        cmocka_unit_test(a_second_retirement_may_shorten_the_time_but_keeps_the_reason),
        cmocka_unit_test(a_worker_retired_before_it_was_forked_is_killed_when_it_is),
        cmocka_unit_test(a_late_worker_goes_when_only_its_late_requests_are_left),
        cmocka_unit_test(streams_of_a_late_worker_are_waited_for),
        cmocka_unit_test(a_late_request_that_ended_after_all_is_not_counted_against_another),
        cmocka_unit_test(a_worker_whose_request_was_ended_by_hand_goes_the_same_way),
        cmocka_unit_test(a_late_worker_lives_until_it_was_asked_what_it_does),
        cmocka_unit_test(a_stopped_worker_is_replaced_when_requests_wait_for_it),
        cmocka_unit_test(the_line_of_a_timeout_has_no_query),
        cmocka_unit_test(a_worker_that_wrote_garbage_is_killed_as_a_crash),
        cmocka_unit_test(numbers_that_name_nobody_change_nothing),
        cmocka_unit_test(an_entry_is_used_again_only_when_every_front_has_given_back),
        cmocka_unit_test(the_oldest_worker_goes_first),
        cmocka_unit_test(
            what_answers_with_an_exception_is_a_start_and_is_followed_at_once_when_it_leaves),
        cmocka_unit_test(a_storm_of_young_deaths_ends_in_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

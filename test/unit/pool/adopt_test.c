/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/saved.c"
#include "pool/adopt.c"

#include "pool_world.h"

#include <fcntl.h>

/* A process that is none of ours; 0 = all are. */
static pid_t stranger;

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    (void)type, (void)info, (void)options;
    return (pid_t)id == stranger ? -1 : 0;
}

/* What exec keeps of the pool: the descriptors that are named, the board, nothing else. */
static struct saved *exec_away(struct world *world)
{
    struct pool *pool = world->pool;
    struct saved_text text = {.error = 0};
    struct saved_out out = saved_begin(&text);
    struct saved *saved;
    unsigned line;

    pool_save(pool, &out);
    for (size_t i = 0; i < text.fd_count; i++)
        assert_int_equal(fd_set_cloexec(text.fds[i], false), 0);
    saved = saved_read(buf_span(&text.buf), &line);
    assert_non_null(saved);
    loop_unwatch(&pool->report_watch);
    pool->instance.board_fd = -1;
    list_for_each (link, &pool->molds)
        CONTAINER_OF(link, struct mold, link)->control = -1;
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        pool->workers[i].control = -1;
    board_unmap(&pool->instance.board);
    world->pool = NULL;
    pool->instance.board.shape.workers = 0;
    pool_free(pool);
    saved_text_done(&text);
    return saved;
}

static struct pool *adopt(struct world *world, struct saved *saved)
{
    struct saved_in in = saved_root(saved);
    struct faults faults = {.size = 0};
    struct pool_options options = {.loop = world->loop,
                                   .config = &world->config,
                                   .settings = &world->settings,
                                   .loops = 1,
                                   .runtime = "/run/test/1-0",
                                   .library = "/lib",
                                   .death_pipe = -1,
                                   .log_fd = -1,
                                   .host = &world_host};

    world->pool = pool_adopt(&options, &in, &faults);
    if (world->pool)
        world->pool->max_starts = 2;
    faults_done(&faults);
    return world->pool;
}

static void exchange(struct world *world)
{
    struct saved *saved = exec_away(world);

    assert_non_null(adopt(world, saved));
    saved_close_rest(saved);
    saved_free(saved);
    pool_resume(world->pool);
    world_run(world);
}

static void open_world(struct world *world, uint32_t min, uint32_t max)
{
    stranger = 0;
    world_open(world, min, max);
}

static void workers_and_molds_go_on_and_nothing_is_started(void **state)
{
    struct world world;
    unsigned asks, execs;
    (void)state;

    open_world(&world, 2, 2);
    world_start(&world);
    asks = played.asks;
    execs = played.execs;
    exchange(&world);
    assert_int_equal(pool_serving(world.pool), 2);
    assert_int_equal(world.pool->state, POOL_UP);
    assert_int_equal(world.pool->current->pid, 101);
    assert_int_equal(world.pool->current->state, MOLD_LOADED);
    assert_string_equal(world.pool->current->release, "/release");
    assert_int_equal(world.pool->workers[0].pid, 500);
    assert_int_equal(world.pool->workers[1].pid, 501);
    assert_int_equal(played.asks, asks);
    assert_int_equal(played.execs, execs);
    assert_int_equal(played.started, 1);
    world_close(&world);
}

static void a_worker_that_dies_afterwards_is_replaced(void **state)
{
    struct world world;
    unsigned asks;
    (void)state;

    open_world(&world, 2, 2);
    world_start(&world);
    exchange(&world);
    asks = played.asks;
    world_end(&world, 500, WORLD_KILLED);
    assert_int_equal(played.asks, asks + 1);
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 2);
    assert_int_equal(world.pool->exits[EXIT_KILLED], 1);
    world_close(&world);
}

static void generations_are_numbered_on(void **state)
{
    struct world world;
    uint32_t ticket;
    (void)state;

    open_world(&world, 1, 1);
    world_start(&world);
    exchange(&world);
    ticket = pool_restart(world.pool);
    world_run(&world);
    assert_int_equal(world.pool->next->generation, 2);
    world_say_loaded(&world, 2);
    world_serve(&world);
    world_end(&world, 500, WORLD_EXIT_0);
    assert_int_equal(played.restarted, 1);
    assert_int_equal(played.ticket, ticket);
    assert_int_equal(world.pool->current->generation, 2);
    world_close(&world);
}

static void a_worker_that_was_asked_for_is_known_when_it_comes(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 1, 1);
    world_start(&world);
    world_end(&world, 500, WORLD_KILLED);
    assert_non_null(world_find(&world, WORKER_ASKED));
    exchange(&world);
    assert_non_null(world_find(&world, WORKER_ASKED));
    world_serve(&world);
    assert_int_equal(pool_serving(world.pool), 1);
    world_close(&world);
}

static void what_the_fronts_may_have_missed_is_told_again(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 1, 1);
    world_start(&world);
    assert_true(pool_child_ended(world.pool, 500, WORLD_KILLED));
    assert_int_equal(played.dead, 1);
    exchange(&world);
    assert_int_equal(played.dead, 2);
    assert_non_null(world_find(&world, WORKER_DEAD));
    world_close(&world);
}

static void a_process_that_is_not_ours_any_more_has_ended(void **state)
{
    struct world world;
    struct saved *saved;
    unsigned kills;
    (void)state;

    open_world(&world, 2, 2);
    world_start(&world);
    saved = exec_away(&world);
    kills = played.kills;
    stranger = 501;
    assert_non_null(adopt(&world, saved));
    saved_free(saved);
    pool_resume(world.pool);
    world_run(&world);
    assert_int_equal(pool_serving(world.pool), 1);
    assert_int_equal(played.kills, kills);
    world_close(&world);
}

static void counts_signals_and_pauses_are_kept(void **state)
{
    struct world world;
    uint64_t until_ms;
    (void)state;

    open_world(&world, 1, 4);
    world_start(&world);
    pool_adjust(world.pool, 1);
    world_run(&world);
    world_serve(&world);
    world_end(&world, 500, WORLD_CRASHED);
    backoff_fail(&world.pool->backoff, clock_ms(), 0);
    until_ms = world.pool->backoff.until_ms;
    exchange(&world);
    assert_int_equal(pool_wanted(world.pool), 2);
    assert_int_equal(world.pool->exits[EXIT_CRASH], 1);
    assert_int_equal(world.pool->backoff.until_ms, until_ms);
    pool_adjust(world.pool, -1);
    assert_int_equal(pool_wanted(world.pool), 1);
    world_close(&world);
}

static void the_board_is_the_same_with_what_waits_in_it(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 1, 1);
    world_start(&world);
    world_queue(&world);
    exchange(&world);
    assert_int_equal(queue_length(&world.pool->instance.board), 1);
    assert_int_equal(world.pool->instance.board.workers[0].pid, 500);
    world_close(&world);
}

static void a_pool_on_demand_that_nobody_asked_for_stays_down(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};
    (void)state;

    open_world(&world, 0, 2);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    exchange(&world);
    assert_int_equal(world.pool->state, POOL_DOWN);
    assert_int_equal(played.execs, 0);
    pool_want(world.pool);
    world_run(&world);
    assert_int_equal(played.execs, 1);
    world_close(&world);
}

/* Changes one line of what was written down. */
static struct saved *with(struct world *world, const char *key, const char *value)
{
    struct saved *saved = exec_away(world);

    for (size_t i = 0; i < saved->size; i++)
        if (strcmp(saved->entries[i].key, key) == 0)
            saved->entries[i].value = value;
    return saved;
}

static void a_board_of_another_layout_is_refused(void **state)
{
    static const char *const keys[] = {"board.layout", "board.workers",   "board.loops",
                                       "board.slots",  "board.bell_3_fd", "board.board_fd"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct world world;
        struct saved *saved;

        open_world(&world, 1, 1);
        saved = with(&world, keys[i], "77777");
        struct saved_in in = saved_root(saved);
        assert_int_equal(pool_is_adoptable(&in), i != 0 && i != 2);
        assert_null(adopt(&world, saved));
        saved_close_rest(saved);
        saved_free(saved);
        loop_free(world.loop);
    }
}

static void states_that_this_build_does_not_know_are_nobody(void **state)
{
    struct world world;
    struct saved *saved;
    (void)state;

    open_world(&world, 2, 2);
    world_start(&world);
    saved = with(&world, "worker.1.state", "dreaming");
    assert_non_null(adopt(&world, saved));
    saved_free(saved);
    assert_int_equal(pool_serving(world.pool), 1);
    assert_int_equal(world.pool->workers[1].state, WORKER_EMPTY);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_and_molds_go_on_and_nothing_is_started),
        cmocka_unit_test(a_worker_that_dies_afterwards_is_replaced),
        cmocka_unit_test(generations_are_numbered_on),
        cmocka_unit_test(a_worker_that_was_asked_for_is_known_when_it_comes),
        cmocka_unit_test(what_the_fronts_may_have_missed_is_told_again),
        cmocka_unit_test(a_process_that_is_not_ours_any_more_has_ended),
        cmocka_unit_test(counts_signals_and_pauses_are_kept),
        cmocka_unit_test(the_board_is_the_same_with_what_waits_in_it),
        cmocka_unit_test(a_pool_on_demand_that_nobody_asked_for_stays_down),
        cmocka_unit_test(a_board_of_another_layout_is_refused),
        cmocka_unit_test(states_that_this_build_does_not_know_are_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

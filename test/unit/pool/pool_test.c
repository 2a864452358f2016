/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/pool.c"

#include "pool_world.h"

#include <sys/mman.h>

static void sizes_are_those_of_the_settings_and_never_none(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 6);
    assert_int_equal(world.pool->min, 2);
    assert_int_equal(world.pool->max, 6);
    assert_int_equal(pool_wanted(world.pool), 2);
    world_close(&world);
    world_open(&world, 0, 0);
    assert_int_equal(world.pool->max, 1);
    world_close(&world);
    world_open(&world, CONFIG_AUTO, CONFIG_AUTO);
    assert_true(world.pool->max >= 1);
    assert_int_equal(world.pool->min, world.pool->max);
    world_close(&world);
}

static void automatic_workers_are_as_many_as_fit_into_memory(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, CONFIG_AUTO, CONFIG_AUTO);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_say(&world, "loaded\ngeneration=1\npreload=true\nprivate_bytes=1099511627776000\n");
    assert_int_equal(world.pool->fits, 1);
    assert_int_equal(pool_wanted(world.pool), 1);
    world_close(&world);
}

static void what_a_mold_has_found_is_kept_with_its_generation(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    assert_true(world.pool->current->preloaded);
    assert_int_equal(world.pool->current->private_bytes, 1000);
    assert_int_equal(world.pool->current->state, MOLD_LOADED);
    /* A second time it means nothing. */
    world_say(&world, "loaded\ngeneration=1\npreload=false\nprivate_bytes=7\n");
    assert_int_equal(world.pool->current->private_bytes, 1000);
    world_close(&world);
}

static void a_failure_is_class_message_place_and_remedy(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_say(&world, "failed\ngeneration=1\nclass=ArgumentError\nmessage=two\\nlines\n"
                      "place=app.rb:7\nhint=set RAILS_MASTER_KEY\nbacktrace=a\\nb\n");
    assert_string_equal(world.pool->current->failure, "ArgumentError: two\nlines (app.rb:7)\n"
                                                      "set RAILS_MASTER_KEY");
    /* It has some time to leave by itself. */
    world_wait(&world, 5000);
    assert_int_equal(played.killed, 101);
    world_close(&world);
}

static void reports_that_make_no_sense_change_nothing(void **state)
{
    static const char *const reports[] = {
        "\n",
        "nonsense",
        "dance\nindex=0\n",
        "forked\nindex=0\n",
        "forked\nindex=0\npid=0\n",
        "forked\nindex=0\npid=99999999999\n",
        "forked\nindex=9999\npid=5\n",
        "forked\nindex=-1\npid=5\n",
        "forked\npid=5\n",
        "forked\nindex=5\npid=5\n",
        "ready\nindex=0\npid=1\n",
        "unforked\nindex=0\nmessage=x\n",
        "loaded\n",
        "loaded\ngeneration=7\n",
        "loaded\ngeneration=4294967297\n",
        "failed\ngeneration=12\nclass=A\nmessage=b\n",
        "failed\nno equals sign\n",
    };
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    for (size_t i = 0; i < ARRAY_LEN(reports); i++)
        world_say(&world, reports[i]);
    assert_int_equal(pool_serving(world.pool), 1);
    assert_int_equal(crew_count(world.pool).there, 1);
    assert_int_equal(world.pool->state, POOL_UP);
    assert_int_equal(played.kills, 0);
    world_close(&world);
}

static void a_process_that_nobody_knows_is_not_the_pools(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    assert_false(pool_child_ended(world.pool, 77, 0));
    assert_true(pool_child_ended(world.pool, 101, 0));
    world_close(&world);
}

static void a_process_handed_over_is_the_first_generation(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    world.config.development = true;
    world.pool->options.handed_pid = 321;
    world.pool->options.handed_control = -1;
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    assert_int_equal(played.execs, 0);
    assert_false(world.pool->current->solo);
    assert_int_equal(world.pool->current->pid, 321);
    world_say_loaded(&world, 1);
    assert_int_equal(played.asks, 1);
    world_close(&world);
}

static void a_pool_whose_folder_is_gone_does_not_start(void **state)
{
    struct world world;
    struct faults faults = {.size = 0};

    (void)state;
    world_open(&world, 1, 1);
    played.is_broken = true;
    assert_int_equal(pool_start(world.pool, &faults), -1);
    assert_string_equal(faults.items[0].reason, "the folder is gone");
    faults_done(&faults);
    world_close(&world);
}

static void a_stop_does_not_wait_for_what_is_still_loading(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 1);
    world_start(&world);
    (void)pool_restart(world.pool);
    world_run(&world);
    pool_stop(world.pool, 1000);
    assert_int_equal(played.killed, 102);
    assert_int_equal(played.quits, 2);
    world_close(&world);
}

static void killing_leaves_nobody(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    pool_kill(world.pool);
    assert_int_equal(played.kills, 3);
    world_end(&world, 500, WORLD_KILLED);
    world_end(&world, 501, WORLD_KILLED);
    world_end(&world, 101, WORLD_KILLED);
    world_wait(&world, 1);
    assert_int_equal(played.empty, 1);
    world_close(&world);
}

static void a_pool_that_runs_is_not_started_by_a_request(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 1, 2);
    world_start(&world);
    pool_want(world.pool);
    assert_false(world.pool->demanded);
    assert_int_equal(pool_wanted(world.pool), 1);
    world_close(&world);
}

static void memory_that_a_deep_queue_took_is_given_back_when_it_is_empty(void **state)
{
    struct world world;
    const struct board *board;
    int fd;

    (void)state;
    world_open(&world, 1, 1);
    board = &world.pool->instance.board;
    fd = world.pool->instance.board_fd;
    for (uint32_t slot = 0; slot < board->shape.slots; slot++)
        memset(slot_request(board, slot), 1, board->shape.slot_bytes / 2);
    if (file_bytes(fd) >= TIDY_BYTES) {
        uint64_t full = file_bytes(fd);
        world_queue(&world);
        pool_tidy(world.pool);
        assert_int_equal(file_bytes(fd), full);
        assert_true(queue_cancel(board, 0, slot_look(board, 0).turn));
        pool_tidy(world.pool);
        assert_true(file_bytes(fd) < full);
    }
    world_close(&world);
}

static void processes_open_a_rotated_log_anew_as_soon_as_they_can_be_told(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, 2, 2);
    world_start(&world);
    pool_reopen(world.pool);
    /* Their output is the terminal's. */
    assert_int_equal(played.hangups, 0);
    world.pool->options.log_fd = 5;
    world_end(&world, 500, WORLD_KILLED);
    pool_reopen(world.pool);
    /* The mold and the worker that serves. */
    assert_int_equal(played.hangups, 2);
    world_serve(&world);
    assert_int_equal(played.hangups, 3);
    played.now_ms += 10;
    world_end(&world, 501, WORLD_KILLED);
    world_serve(&world);
    assert_int_equal(played.hangups, 3);
    world_close(&world);
}

static void every_state_has_its_word(void **state)
{
    (void)state;
    assert_string_equal(pool_state_word(POOL_DOWN), "down");
    assert_string_equal(pool_state_word(POOL_DRAINING), "draining");
}

/* What the log says while the pool is killed. */
static void kill_and_read(struct world *world, char *line, size_t room)
{
    int file = memfd_create("log", MFD_CLOEXEC);
    ssize_t size;

    log_to(file);
    pool_kill(world->pool);
    world_wait(world, 1);
    log_to(-1);
    size = pread(file, line, room - 1, 0);
    line[size > 0 ? size : 0] = '\0';
    (void)close(file);
}

static void a_start_that_fails_is_not_called_draining(void **state)
{
    struct faults faults = {.size = 0};
    struct world world;
    char line[4096];
    (void)state;
    world_open(&world, 1, 1);
    assert_int_equal(pool_start(world.pool, &faults), 0);
    world_run(&world);
    kill_and_read(&world, line, sizeof line);
    assert_null(strstr(line, "draining"));
    assert_int_equal(world.pool->state, POOL_DRAINING);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_of_the_settings_and_never_none),
        cmocka_unit_test(automatic_workers_are_as_many_as_fit_into_memory),
        cmocka_unit_test(what_a_mold_has_found_is_kept_with_its_generation),
        cmocka_unit_test(a_failure_is_class_message_place_and_remedy),
        cmocka_unit_test(reports_that_make_no_sense_change_nothing),
        cmocka_unit_test(a_process_that_nobody_knows_is_not_the_pools),
        cmocka_unit_test(a_process_handed_over_is_the_first_generation),
        cmocka_unit_test(a_pool_whose_folder_is_gone_does_not_start),
        cmocka_unit_test(a_stop_does_not_wait_for_what_is_still_loading),
        cmocka_unit_test(killing_leaves_nobody),
        cmocka_unit_test(a_pool_that_runs_is_not_started_by_a_request),
        cmocka_unit_test(memory_that_a_deep_queue_took_is_given_back_when_it_is_empty),
        cmocka_unit_test(processes_open_a_rotated_log_anew_as_soon_as_they_can_be_told),
        cmocka_unit_test(a_start_that_fails_is_not_called_draining),
        cmocka_unit_test(every_state_has_its_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

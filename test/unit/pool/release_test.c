/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/release.c"

enum { WORKERS = 4 };

static struct worker workers[WORKERS];
static struct pool pool;
static const char *list[8];

static int setup(void **state)
{
    (void)state;
    memset(workers, 0, sizeof(workers));
    pool = (struct pool){.workers = workers};
    pool.instance.board.shape.workers = WORKERS;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    release_done(&pool);
    return 0;
}

/* The entry's worker is one of that generation, which was loaded from the folder. */
static void start(uint32_t index, uint32_t generation, const char *folder)
{
    struct mold mold = {.generation = generation, .release = strdup(folder)};

    release_note(&pool, &mold);
    free(mold.release);
    pool.generation = generation;
    workers[index] = (struct worker){.state = WORKER_SERVING, .generation = generation};
}

static void releases_with_workers_are_listed_newest_first_and_once(void **state)
{
    (void)state;
    assert_int_equal(release_list(&pool, list, 8), 0);
    start(0, 1, "/releases/1");
    start(1, 2, "/releases/2");
    start(2, 3, "/releases/2");
    start(3, 4, "/releases/3");
    assert_int_equal(release_list(&pool, list, 8), 3);
    assert_string_equal(list[0], "/releases/3");
    assert_string_equal(list[1], "/releases/2");
    assert_string_equal(list[2], "/releases/1");
    assert_int_equal(release_list(&pool, list, 2), 2);
    assert_string_equal(release_find(&pool, 1), "/releases/1");
    assert_null(release_find(&pool, 5));
}

static void a_release_goes_with_its_last_worker(void **state)
{
    (void)state;
    start(0, 1, "/releases/1");
    start(1, 1, "/releases/1");
    start(2, 2, "/releases/2");
    workers[0].state = WORKER_DEAD;
    assert_int_equal(release_list(&pool, list, 8), 2);
    workers[1].state = WORKER_DEAD;
    assert_int_equal(release_list(&pool, list, 8), 1);
    assert_string_equal(list[0], "/releases/2");
}

static void a_generation_that_moved_is_where_it_is_now(void **state)
{
    (void)state;
    start(0, 1, "/releases/1");
    start(0, 1, "/releases/2");
    assert_int_equal(release_list(&pool, list, 8), 1);
    assert_string_equal(list[0], "/releases/2");
}

static void generations_far_apart_do_not_pass_for_each_other(void **state)
{
    (void)state;
    start(0, 1, "/releases/1");
    start(1, 1 + POOL_RELEASES, "/releases/17");
    assert_int_equal(release_list(&pool, list, 8), 1);
    assert_string_equal(list[0], "/releases/17");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(releases_with_workers_are_listed_newest_first_and_once,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_release_goes_with_its_last_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(a_generation_that_moved_is_where_it_is_now, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(generations_far_apart_do_not_pass_for_each_other, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

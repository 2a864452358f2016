/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/open_cache.c"

#include "static_world.h"

static struct open_file *found;
static uint64_t batch_ms = 1;

/* In place of the loop's clock: time and batches pass when a test says so. */
uint64_t loop_now_ms(const struct loop *loop)
{
    (void)loop;
    return batch_ms;
}

uint64_t loop_now_us(const struct loop *loop)
{
    (void)loop;
    return batch_ms * 1000;
}

static struct cache_root *root(void)
{
    return open_cache_root(world.cache, &world.root);
}

static enum resolved look(const char *name)
{
    found = NULL;
    return open_cache_look(world.cache, root(), span_of(name), &found);
}

/* Does what a file thread does. */
static void adopt(const char *name)
{
    struct resolve_identity root_identity, identity;
    char words[RESOLVE_WORDS];
    bool in_memory = false;
    int fd = -1, root_fd = resolve_root(&world.root, true, &root_identity, &in_memory);
    struct open_file *file = NULL;

    if (name) {
        assert_int_equal(resolve_open(&world.root, root_fd, name, &fd, &identity, words),
                         RESOLVED_FILE);
        file = open_file_new(fd, &identity, span_of(name));
    }
    open_cache_adopt(world.cache, root(), root_fd, &root_identity, in_memory,
                     span_of(name ? name : ""), file);
}

static void a_root_is_opened_by_a_file_thread_first(void **state)
{
    (void)state;
    write_text("public/a", "a");
    assert_int_equal(look("a"), RESOLVED_LATER);
    adopt("a");
    batch_ms++;
    assert_int_equal(look("a"), RESOLVED_FILE);
    assert_ptr_equal(found->home, root());
}

static void one_batch_asks_the_system_once(void **state)
{
    struct open_file *first;
    (void)state;
    write_text("public/a", "a");
    adopt("a");
    batch_ms++;
    assert_int_equal(look("a"), RESOLVED_FILE);
    first = found;
    write_text("public/a", "other");
    assert_int_equal(look("a"), RESOLVED_FILE);
    assert_ptr_equal(found, first);
    batch_ms++;
    assert_int_equal(look("a"), RESOLVED_LATER);
}

static void a_deleted_file_is_closed_when_it_is_asked_for(void **state)
{
    (void)state;
    write_text("public/a", "a");
    adopt("a");
    batch_ms++;
    assert_int_equal(look("a"), RESOLVED_FILE);
    unlink(in_world("public/a"));
    batch_ms++;
    /* The system may have to look on the disk once before it knows. */
    if (look("a") == RESOLVED_LATER)
        assert_int_equal(access(in_world("public/a"), F_OK), -1);
    batch_ms++;
    assert_int_equal(look("a"), RESOLVED_MISSING);
    assert_int_equal(world.cache->size, 0);
}

static void a_successor_with_the_same_second_is_marked(void **state)
{
    struct timespec times[2] = {{1700000000, 1}, {1700000000, 1}};
    (void)state;
    write_text("public/a", "a");
    utimensat(AT_FDCWD, in_world("public/a"), times, 0);
    adopt("a");
    batch_ms++;
    assert_int_equal(look("a"), RESOLVED_FILE);
    assert_false(found->date_is_shared);
    write_text("public/a", "b");
    times[1].tv_nsec = 2;
    utimensat(AT_FDCWD, in_world("public/a"), times, 0);
    adopt("a");
    batch_ms++;
    assert_int_equal(look("a"), RESOLVED_FILE);
    assert_true(found->date_is_shared);
}

static void the_longest_unused_file_makes_room(void **state)
{
    char name[64];
    (void)state;
    for (int i = 0; i <= OPEN_CACHE_FILES; i++) {
        snprintf(name, sizeof(name), "public/%d", i);
        write_text(name, "x");
        adopt(name + strlen("public/"));
        batch_ms++;
    }
    assert_int_equal(world.cache->size, OPEN_CACHE_FILES);
    assert_null(map_find(&root()->files, span_of("0")));
    assert_non_null(map_find(&root()->files, span_of("1")));
}

static void unused_files_are_closed_after_a_while(void **state)
{
    (void)state;
    write_text("public/a", "a");
    adopt("a");
    assert_true(timer_is_set(&world.cache->sweep));
    timer_stop(&world.cache->sweep);
    batch_ms += OPEN_CACHE_IDLE_MS - 1;
    sweep(&world.cache->sweep);
    assert_int_equal(world.cache->size, 1);
    assert_true(timer_is_set(&world.cache->sweep));
    timer_stop(&world.cache->sweep);
    batch_ms++;
    sweep(&world.cache->sweep);
    assert_int_equal(world.cache->size, 0);
    assert_false(timer_is_set(&world.cache->sweep));
}

static void a_miss_is_remembered_for_its_batch_and_root_only(void **state)
{
    struct static_root other = world.root;
    char longest[OPEN_CACHE_NAME + 2] = {0};
    (void)state;
    open_cache_note_missing(world.cache, &world.root, span_of("api/pulse"));
    assert_true(open_cache_is_missing(world.cache, &world.root, span_of("api/pulse")));
    assert_false(open_cache_is_missing(world.cache, &world.root, span_of("api/puls")));
    assert_false(open_cache_is_missing(world.cache, &other, span_of("api/pulse")));
    batch_ms++;
    assert_false(open_cache_is_missing(world.cache, &world.root, span_of("api/pulse")));
    memset(longest, 'x', OPEN_CACHE_NAME + 1);
    open_cache_note_missing(world.cache, &world.root, span_of(longest));
    assert_false(open_cache_is_missing(world.cache, &world.root, span_of(longest)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_root_is_opened_by_a_file_thread_first),
        TEST(one_batch_asks_the_system_once),
        TEST(a_deleted_file_is_closed_when_it_is_asked_for),
        TEST(a_successor_with_the_same_second_is_marked),
        TEST(the_longest_unused_file_makes_room),
        TEST(unused_files_are_closed_after_a_while),
        TEST(a_miss_is_remembered_for_its_batch_and_root_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

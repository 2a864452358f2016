/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.c"

static char order[16]; /* names of the cleanups that ran, in order; emptied by each test */

static void note(void *name)
{
    order[strlen(order) + 1] = 0;
    order[strlen(order)] = *(char *)name;
}

static unsigned blocks_of(const struct arena *arena)
{
    unsigned count = 0;

    for (const struct arena_block *block = arena->block; block; block = block->older)
        count++;
    return count;
}

static void costs_nothing_before_the_first_take(void **state)
{
    struct arena arena = {0};
    (void)state;

    arena_reset(&arena);
    assert_null(arena.block);
    arena_done(&arena);
}

static void pieces_are_aligned_and_apart(void **state)
{
    struct arena arena = {0};
    char *pieces[500];
    (void)state;

    for (size_t i = 0; i < 500; i++) {
        pieces[i] = arena_take(&arena, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < 500; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_equal((unsigned char)pieces[i][j], (unsigned char)i);
    arena_done(&arena);
}

static void a_large_piece_does_not_end_the_block_in_use(void **state)
{
    struct arena arena = {0};
    char *before, *after;
    (void)state;

    before = arena_take(&arena, 16);
    assert_non_null(arena_take(&arena, 1000000));
    after = arena_take(&arena, 16);
    assert_ptr_equal(after, before + 16);
    arena_done(&arena);
}

static void copies_and_texts_end_in_a_nul_they_do_not_count(void **state)
{
    struct arena arena = {0};
    struct span copy = arena_copy(&arena, span_of("copy"));
    struct span text = arena_printf(&arena, "%s-%d", "text", 7);
    struct span empty = arena_copy(&arena, (struct span){NULL, 0});
    (void)state;

    assert_int_equal(copy.size, 4);
    assert_string_equal(copy.data, "copy");
    assert_int_equal(text.size, 6);
    assert_string_equal(text.data, "text-7");
    assert_non_null(empty.data);
    assert_int_equal(empty.size, 0);
    arena_done(&arena);
}

static void zeroed_memory_is_zero_also_when_used_again(void **state)
{
    struct arena arena = {0};
    char *piece = arena_take(&arena, 64);
    (void)state;

    memset(piece, 'x', 64);
    arena_reset(&arena);
    piece = arena_zero(&arena, 64);
    for (int i = 0; i < 64; i++)
        assert_int_equal(piece[i], 0);
    arena_done(&arena);
}

static void cleanups_run_once_and_backwards(void **state)
{
    struct arena arena = {0};
    (void)state;

    order[0] = '\0';
    assert_int_equal(arena_defer(&arena, note, "a"), 0);
    assert_int_equal(arena_defer(&arena, note, "b"), 0);
    arena_reset(&arena);
    assert_string_equal(order, "ba");
    assert_int_equal(arena_defer(&arena, note, "c"), 0);
    arena_done(&arena);
    arena_done(&arena);
    assert_string_equal(order, "bac");
}

static void a_reset_keeps_one_small_block(void **state)
{
    struct arena arena = {0};
    (void)state;

    for (int i = 0; i < 1000; i++)
        assert_non_null(arena_take(&arena, 500));
    assert_true(blocks_of(&arena) > 3);
    assert_int_equal(arena.taken, 1000 * 512);
    arena_reset(&arena);
    assert_int_equal(blocks_of(&arena), 1);
    assert_int_equal(arena.block->room, FIRST_ROOM);
    assert_int_equal(arena.taken, 0);
    assert_non_null(arena_take(&arena, FIRST_ROOM));
    assert_int_equal(blocks_of(&arena), 1);
    arena_done(&arena);
}

static void a_size_beyond_all_memory_is_refused(void **state)
{
    struct arena arena = {0};
    (void)state;

    assert_null(arena_take(&arena, SIZE_MAX));
    assert_null(arena_zero(&arena, SIZE_MAX - 8));
    assert_null(arena_copy(&arena, span_make("", SIZE_MAX)).data);
    assert_non_null(arena_take(&arena, 1));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_nothing_before_the_first_take),
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(a_large_piece_does_not_end_the_block_in_use),
        cmocka_unit_test(copies_and_texts_end_in_a_nul_they_do_not_count),
        cmocka_unit_test(zeroed_memory_is_zero_also_when_used_again),
        cmocka_unit_test(cleanups_run_once_and_backwards),
        cmocka_unit_test(a_reset_keeps_one_small_block),
        cmocka_unit_test(a_size_beyond_all_memory_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

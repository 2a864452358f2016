/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/board.c"

#include "world.h"

#include <sys/wait.h>

static const struct board_shape small = {5, 3, 2, 1, 4096};

static void a_board_of_zeros_has_every_slot_free(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 40, 3, 2);
    world_is_empty(&world);
    assert_string_equal(world.board.header->runtime, "/run/test/shop");
    world_close(&world);
}

static void parts_lie_apart_and_inside_the_file(void **state)
{
    struct board_shape shape = {17, 9, 7, 3, 12288};
    struct layout at = layout_of(&shape);
    (void)state;

    assert_true(at.fronts >= sizeof(struct board_header));
    assert_true(at.workers >= at.fronts + BOARD_FRONTS * sizeof(struct board_front));
    assert_true(at.threads >= at.workers + 9 * sizeof(struct board_worker));
    assert_true(at.asleep >= at.threads + 63 * sizeof(struct board_thread));
    assert_true(at.notices >= at.asleep + 24 * sizeof(uint32_t));
    assert_true(at.words >= at.notices + 24 * at.notice_words * sizeof(uint64_t));
    assert_true(at.notes >= at.words + 17 * sizeof(uint64_t));
    assert_true(at.pages >= at.notes + 17 * sizeof(uint32_t));
    assert_true(at.slots >= at.pages + (uint64_t)63 * BOARD_PAGES * BOARD_PAGE_BYTES);
    assert_int_equal(at.bytes, at.slots + 17 * 12288);
    assert_int_equal(at.words % BOARD_LINE, 0);
    assert_int_equal(at.slots % 4096, 0);
}

static void shapes_out_of_range_are_refused(void **state)
{
    static const struct board_shape wrong[] = {
        {0, 1, 1, 1, 4096},    {BOARD_SLOTS_MAX + 1, 1, 1, 1, 4096},
        {1, 0, 1, 1, 4096},    {1, BOARD_WORKERS_MAX + 1, 1, 1, 4096},
        {1, 1, 0, 1, 4096},    {1, 1, BOARD_THREADS_MAX + 1, 1, 4096},
        {1, 2000, 9, 1, 4096}, {1, 2, UINT32_MAX / 2 + 1, 1, 4096},
        {1, 1, 1, 0, 4096},    {1, 1, 1, BOARD_LOOPS_MAX + 1, 4096},
        {1, 1, 1, 1, 0},       {1, 1, 1, 1, 4097},
    };
    struct board board = {0};
    char long_path[BOARD_RUNTIME_BYTES + 1];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(board_make(&wrong[i], "/run/x", &board), -EINVAL);
    memset(long_path, 'x', sizeof(long_path));
    long_path[BOARD_RUNTIME_BYTES] = 0;
    assert_int_equal(board_make(&small, long_path, &board), -ENAMETOOLONG);
    assert_null(board.header);
}

static void the_file_can_neither_shrink_nor_grow_nor_be_unsealed(void **state)
{
    struct board board;
    int fd = board_make(&small, "/run/x", &board);
    (void)state;

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, (off_t)board.bytes + 4096), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    board_unmap(&board);
    (void)close(fd);
}

static void a_worker_maps_what_master_made(void **state)
{
    struct board made, mapped;
    int fd = board_make(&small, "/run/x", &made);
    (void)state;

    assert_true(fd >= 0);
    assert_int_equal(board_map(fd, true, &mapped), 0);
    assert_memory_equal(&mapped.shape, &small, sizeof(small));
    atomic_store(&made.words[4], 77);
    assert_int_equal(atomic_load(&mapped.words[4]), 77);
    mapped.slots[4 * 4096 + 4095] = 'z';
    assert_int_equal(made.slots[4 * 4096 + 4095], 'z');
    assert_int_equal(mapped.bells[0], -1);
    board_unmap(&mapped);
    board_unmap(&mapped);
    board_unmap(&made);
    (void)close(fd);
}

static void children_of_a_worker_do_not_inherit_the_mapping(void **state)
{
    struct board made, mapped;
    int fd = board_make(&small, "/run/x", &made);
    int status, result = -1;
    pid_t child;
    unsigned char resident;
    (void)state;

    assert_int_equal(board_map(fd, true, &mapped), 0);
    child = fork();
    if (child == 0) {
        result = mincore(mapped.header, 4096, &resident);
        _exit(result == -1 && errno == ENOMEM ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    board_unmap(&mapped);
    board_unmap(&made);
    (void)close(fd);
}

static int file_like(const struct board *board, off_t bytes, bool sealed)
{
    int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(pwrite(fd, board->header, sizeof(struct board_header), 0),
                     sizeof(struct board_header));
    if (sealed)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    return fd;
}

static void expect_refusal(int fd)
{
    struct board board = {0};

    assert_int_equal(board_map(fd, false, &board), -EPROTO);
    assert_null(board.header);
    (void)close(fd);
}

static void files_that_are_no_board_are_refused(void **state)
{
    struct board board;
    int fd = board_make(&small, "/run/x", &board);
    off_t bytes = (off_t)board.bytes;
    (void)state;

    expect_refusal(file_like(&board, bytes, false));
    expect_refusal(file_like(&board, bytes - 4096, true));
    expect_refusal(file_like(&board, bytes + 4096, true));
    expect_refusal(memfd_create("empty", MFD_CLOEXEC));
    board.header->version++;
    expect_refusal(file_like(&board, bytes, true));
    board.header->version--;
    board.header->shape.slots = UINT32_MAX;
    expect_refusal(file_like(&board, bytes, true));
    board.header->shape.slots = 6;
    expect_refusal(file_like(&board, bytes, true));
    board.header->shape.slots = 5;
    memset(board.header->runtime, 'x', BOARD_RUNTIME_BYTES);
    expect_refusal(file_like(&board, bytes, true));
    board_unmap(&board);
    (void)close(fd);
}

static void a_slot_holds_the_largest_head_and_a_small_body(void **state)
{
    uint32_t bytes = board_slot_bytes(16384, 65536, 128);
    (void)state;

    assert_int_equal(bytes % 4096, 0);
    assert_true(bytes >= 2 * 16384 + 65536 + 128 * sizeof(struct slot_field) + BOARD_BODY_INLINE);
    assert_true(bytes < 200 * 1024);
    assert_int_equal(board_slot_bytes(SIZE_MAX / 4, 0, 0) % 4096, 0);
}

static void trimming_gives_memory_back_and_leaves_used_slots_alone(void **state)
{
    struct world world;
    struct stat before, after;
    (void)state;

    world_open(&world, 200, 1, 1);
    memset(world.board.slots, 'x', (size_t)200 * 8192);
    for (int i = 0; i < 3; i++)
        (void)world_send(&world, 0, 0);
    atomic_store(&world.board.words[150], slot_pack((struct slot_word){SLOT_FILLING, 1, 9, 0}));
    assert_int_equal(fstat(world.fd, &before), 0);
    assert_int_equal(board_trim(&world.board, world.fd, 1), 200 - 3 - 1);
    assert_int_equal(fstat(world.fd, &after), 0);
    assert_true(before.st_blocks - after.st_blocks >= 196 * 8192 / 512);
    assert_int_equal(world.board.slots[149 * 8192], 0);
    assert_int_equal(world.board.slots[150 * 8192], 'x');
    assert_int_equal(slot_look(&world.board, 149).state, SLOT_FREE);
    assert_int_equal(queue_length(&world.board), 3);
    world_is_sound(&world);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_of_zeros_has_every_slot_free),
        cmocka_unit_test(parts_lie_apart_and_inside_the_file),
        cmocka_unit_test(shapes_out_of_range_are_refused),
        cmocka_unit_test(the_file_can_neither_shrink_nor_grow_nor_be_unsealed),
        cmocka_unit_test(a_worker_maps_what_master_made),
        cmocka_unit_test(children_of_a_worker_do_not_inherit_the_mapping),
        cmocka_unit_test(files_that_are_no_board_are_refused),
        cmocka_unit_test(a_slot_holds_the_largest_head_and_a_small_body),
        cmocka_unit_test(trimming_gives_memory_back_and_leaves_used_slots_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

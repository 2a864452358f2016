/* SPDX-License-Identifier: MIT */
/*
 * A small board with two fronts and some workers that all live, for the tests of this folder. Included
 * after the sources under test.
 */
#pragma once

#include "board/audit.h"
#include "board/bell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORLD_LOOPS = 2, WORLD_FRONTS = 2 };

struct world {
    struct board board;
    int fd;
};

static inline void world_open(struct world *world, uint32_t slots, uint32_t workers,
                              uint32_t threads)
{
    struct board_shape shape = {slots, workers, threads, WORLD_LOOPS, 8192};

    *world = (struct world){.fd = -1};
    world->fd = board_make(&shape, "/run/test/shop", &world->board);
    assert_true(world->fd >= 0);
    for (unsigned i = 0; i < WORLD_FRONTS * WORLD_LOOPS; i++)
        assert_true((world->board.bells[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) >= 0);
    for (unsigned i = 0; i < WORLD_FRONTS; i++)
        atomic_store(&world->board.fronts[i].life, BOARD_ALIVE);
    for (unsigned i = 0; i < workers; i++) {
        atomic_store(&world->board.workers[i].life, BOARD_ALIVE);
        atomic_store(&world->board.workers[i].ready, 1);
    }
}

static inline void world_close(struct world *world)
{
    for (unsigned i = 0; i < WORLD_FRONTS * WORLD_LOOPS; i++)
        assert_int_equal(close(world->board.bells[i]), 0);
    board_unmap(&world->board);
    assert_int_equal(close(world->fd), 0);
}

/* A request of front and loop, queued at 1 ms. Returns its slot. */
static inline uint32_t world_send(struct world *world, uint32_t front, uint32_t loop)
{
    uint32_t turn;
    int64_t slot = slot_claim(&world->board, front, &turn);

    assert_true(slot >= 0);
    slot_begin(&world->board, (uint32_t)slot, front, loop);
    assert_true(queue_push(&world->board, (uint32_t)slot, 1000));
    return (uint32_t)slot;
}

static inline void world_is_sound(struct world *world)
{
    const char *broken = board_audit(&world->board);

    if (broken)
        fail_msg("%s", broken);
}

static inline void world_is_empty(struct world *world)
{
    world_is_sound(world);
    for (uint32_t slot = 0; slot < world->board.shape.slots; slot++)
        assert_int_equal(slot_look(&world->board, slot).state, SLOT_FREE);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/check.c"

#include "world.h"

static void expect(struct world *world, const char *words)
{
    const char *broken = board_audit(&world->board);

    if (!broken)
        fail_msg("nothing found, expected: %s", words);
    assert_string_equal(broken, words);
}

static void put_word(struct world *world, uint32_t slot, struct slot_word word)
{
    atomic_store(&world->board.words[slot], slot_pack(word));
}

static void every_kind_of_broken_slot_is_named(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 16, 2, 2);
    atomic_store(&world.board.header->high, 8);
    atomic_store(&world.board.header->ticket, 5);
    put_word(&world, 3, (struct slot_word){SLOT_CANCELLED + 1, 0, 0, 0});
    expect(&world, "a slot's state is none");
    put_word(&world, 3, (struct slot_word){SLOT_FREE, 0, 7, 1});
    expect(&world, "a free slot has an owner or a ticket");
    put_word(&world, 3, (struct slot_word){SLOT_QUEUED, 0, 7, 5});
    expect(&world, "a slot has a ticket that was not yet drawn");
    put_word(&world, 3, (struct slot_word){SLOT_QUEUED, BOARD_FRONTS, 7, 1});
    expect(&world, "a slot's owner is no front");
    put_word(&world, 3, (struct slot_word){SLOT_QUEUED, 2, 7, 1});
    expect(&world, "a slot belongs to a front that is not there");
    put_word(&world, 3, (struct slot_word){SLOT_TAKEN, 4, 7, 1});
    expect(&world, "a slot's owner is no worker thread");
    put_word(&world, 3, (struct slot_word){SLOT_TAKEN, 3, 7, 1});
    slot_request(&world.board, 3)->front = 3;
    expect(&world, "a worker holds a slot of a front that is not there");
    slot_request(&world.board, 3)->front = 99;
    expect(&world, "a request names no front and loop");
    atomic_store(&world.board.workers[1].life, BOARD_FREE);
    atomic_store(&world.board.workers[1].ready, 0);
    expect(&world, "a slot belongs to a worker that is not there");
    put_word(&world, 3, (struct slot_word){SLOT_FREE, 0, 7, 0});
    put_word(&world, 8, (struct slot_word){SLOT_FILLING, 0, 7, 0});
    world_is_sound(&world);
    put_word(&world, 8, (struct slot_word){SLOT_QUEUED, 0, 7, 1});
    expect(&world, "a slot above the mark is neither FREE nor FILLING");
    world_close(&world);
}

static void every_kind_of_broken_table_is_named(void **state)
{
    struct world world;
    (void)state;

    world_open(&world, 16, 2, 2);
    world.board.header->shape.slots++;
    expect(&world, "the header's shape is not the one the board was made with");
    world.board.header->shape.slots--;
    atomic_store(&world.board.header->high, 17);
    expect(&world, "the mark lies above the last slot");
    atomic_store(&world.board.header->high, 0);
    atomic_store(&world.board.header->wake, UINT64_C(5) << 32);
    expect(&world, "the wake in flight names no thread");
    atomic_store(&world.board.header->wake, 0);
    atomic_store(&world.board.fronts[4].life, BOARD_DEAD + 1);
    expect(&world, "a front's life is none");
    atomic_store(&world.board.fronts[4].life, BOARD_FREE);
    atomic_store(&world.board.workers[0].busy, 3);
    expect(&world, "a worker is busier than it has threads");
    atomic_store(&world.board.workers[0].busy, 1);
    atomic_store(&world.board.workers[0].life, BOARD_FREE);
    expect(&world, "an unused worker entry is not empty");
    atomic_store(&world.board.workers[0].life, BOARD_ALIVE);
    atomic_store(&world.board.threads[0].asleep, BOARD_SLEEP_QUEUE);
    expect(&world, "more threads sleep than are counted");
    atomic_store(&world.board.threads[0].asleep, BOARD_SLEEP_PAGE + 1);
    expect(&world, "a thread sleeps for nothing known");
    atomic_store(&world.board.threads[0].asleep, BOARD_AWAKE);
    world.board.header->magic = 0;
    expect(&world, "the header is not that of a board");
    world_close(&world);
}

static void every_kind_of_broken_page_is_named(void **state)
{
    struct world world;
    _Atomic uint64_t *page;
    (void)state;

    world_open(&world, 16, 2, 2);
    page = &world.board.threads[3].pages[2];
    atomic_store(page, page_pack((struct page_word){16, 1, 0, 8}));
    expect(&world, "a page belongs to no slot");
    atomic_store(page, page_pack((struct page_word){1, 1, 0, 7}));
    expect(&world, "a page has an impossible size");
    atomic_store(page, page_pack((struct page_word){1, 1, 0, 8}));
    expect(&world, "a page outlived its slot's turn");
    atomic_store(&world.board.workers[1].life, BOARD_DEAD);
    world_is_sound(&world);
    atomic_store(&world.board.workers[1].ready, 0);
    atomic_store(&world.board.workers[1].life, BOARD_FREE);
    expect(&world, "a worker that is not there has a full page");
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_broken_slot_is_named),
        cmocka_unit_test(every_kind_of_broken_table_is_named),
        cmocka_unit_test(every_kind_of_broken_page_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/page.c"

#include "board/queue.h"
#include "world.h"

/* A request of front 0, loop 1, taken by the thread, and its writer. */
static struct page_writer start(struct world *world, uint32_t thread)
{
    uint32_t slot = world_send(world, 0, 1);
    struct slot_word word;

    assert_int_equal(queue_take(&world->board, thread, &word), slot);
    return (struct page_writer){
        .board = &world->board, .thread = thread, .slot = slot, .turn = word.turn};
}

static void put_text(struct page_writer *writer, uint8_t type, const char *text)
{
    memcpy(page_put(writer, type, 0, (uint32_t)strlen(text)), text, strlen(text));
}

static void a_word_packs_and_unpacks_every_part(void **state)
{
    struct page_word word = {BOARD_SLOTS_MAX - 1, 16383, 16383, 65535};
    struct page_word back = page_unpack(page_pack(word));
    (void)state;

    assert_memory_equal(&word, &back, sizeof(word));
    assert_int_equal(page_pack((struct page_word){1, 2, 3, 4}), UINT64_C(0x0000100080030004));
}

static void records_go_through_a_page_in_order(void **state)
{
    struct world world;
    struct page_writer writer;
    struct page_word word;
    struct page_record record;
    struct span bytes, payload;
    char copy[BOARD_PAGE_BYTES];
    bool broken;
    int page;
    (void)state;

    world_open(&world, 4, 2, 1);
    writer = start(&world, 1);
    put_text(&writer, PAGE_HEAD, "head");
    put_text(&writer, PAGE_DATA, "body of more than eight");
    put_text(&writer, PAGE_END, "");
    page_publish(&writer);
    page_publish(&writer);
    assert_int_equal(bell_take_notices(&world.board, 0, 1, 0), 2);

    page = page_find(&world.board, 1, writer.slot, writer.turn, &word);
    assert_int_equal(page, 0);
    memcpy(copy, page_bytes(&world.board, 1, 0), word.bytes);
    bytes = span_make(copy, word.bytes);
    assert_true(page_next(&bytes, &record, &payload, &broken));
    assert_int_equal(record.type, PAGE_HEAD);
    assert_true(span_is(payload, "head"));
    assert_true(page_next(&bytes, &record, &payload, &broken));
    assert_true(span_is(payload, "body of more than eight"));
    assert_true(page_next(&bytes, &record, &payload, &broken));
    assert_int_equal(record.type, PAGE_END);
    assert_false(page_next(&bytes, &record, &payload, &broken));
    assert_false(broken);
    world_is_sound(&world);
    world_close(&world);
}

static void a_page_is_full_to_the_last_byte_and_then_takes_nothing(void **state)
{
    struct world world;
    struct page_writer writer;
    (void)state;

    world_open(&world, 4, 1, 1);
    writer = start(&world, 0);
    assert_int_equal(page_room(&writer), BOARD_PAGE_BYTES - 8);
    (void)page_put(&writer, PAGE_DATA, 0, BOARD_PAGE_BYTES - 8 - 9);
    assert_int_equal(page_room(&writer), 0);
    (void)page_put(&writer, PAGE_END, 0, 0);
    assert_int_equal(writer.used, BOARD_PAGE_BYTES);
    assert_int_equal(page_room(&writer), 0);
    page_publish(&writer);
    assert_int_equal(page_room(&writer), BOARD_PAGE_BYTES - 8);
    assert_false(page_is_broken(&world.board, 0));
    world_close(&world);
}

static void pages_are_filled_in_turn_until_the_front_takes_one(void **state)
{
    struct world world;
    struct page_writer writer;
    struct page_word word, list[BOARD_PAGES];
    (void)state;

    world_open(&world, 4, 1, 1);
    writer = start(&world, 0);
    writer.sequence = PAGE_SEQUENCES - 2;
    writer.page = 3;
    for (int i = 0; i < BOARD_PAGES; i++) {
        assert_true(page_can_write(&writer));
        put_text(&writer, PAGE_DATA, "12345678");
        page_publish(&writer);
    }
    assert_false(page_can_write(&writer));
    assert_int_equal(page_list(&world.board, 0, list), BOARD_PAGES);
    for (uint32_t i = 0; i < BOARD_PAGES; i++)
        assert_int_equal(list[i].sequence, (PAGE_SEQUENCES - 2 + i) % PAGE_SEQUENCES);
    assert_int_equal(page_find(&world.board, 0, writer.slot, writer.turn, &word), 3);
    page_release(&world.board, 0, 3, word);
    assert_true(page_can_write(&writer));
    assert_int_equal(page_find(&world.board, 0, writer.slot, writer.turn, &word), 4);
    world_close(&world);
}

static void a_thread_that_waits_is_rung_when_half_of_its_pages_are_empty(void **state)
{
    struct world world;
    struct page_writer writer;
    struct page_word word;
    (void)state;

    world_open(&world, 4, 1, 1);
    writer = start(&world, 0);
    for (int i = 0; i < BOARD_PAGES; i++) {
        put_text(&writer, PAGE_DATA, "12345678");
        page_publish(&writer);
    }
    (void)bell_prepare(&world.board, 0, BOARD_SLEEP_PAGE);
    for (int i = 1; i <= BOARD_PAGES / 2; i++) {
        int page = page_find(&world.board, 0, writer.slot, writer.turn, &word);

        assert_int_equal(atomic_load(&world.board.threads[0].bell), 0);
        page_release(&world.board, 0, (unsigned)page, word);
    }
    assert_int_equal(atomic_load(&world.board.threads[0].bell), 1);
    world_close(&world);
}

static void a_page_is_released_only_as_it_was_seen(void **state)
{
    struct world world;
    struct page_writer writer;
    struct page_word word;
    uint32_t bell;
    (void)state;

    world_open(&world, 4, 1, 1);
    writer = start(&world, 0);
    put_text(&writer, PAGE_DATA, "x");
    page_publish(&writer);
    assert_int_equal(page_find(&world.board, 0, writer.slot, writer.turn, &word), 0);
    word.sequence++;
    page_release(&world.board, 0, 0, word);
    assert_int_equal(page_list(&world.board, 0, (struct page_word[BOARD_PAGES]){{0}}), 1);
    word.sequence--;
    bell = bell_prepare(&world.board, 0, BOARD_SLEEP_PAGE);
    page_release(&world.board, 0, 0, word);
    assert_int_equal(bell_sleep(&world.board, 0, bell, 10000), 0);
    assert_int_equal(page_list(&world.board, 0, (struct page_word[BOARD_PAGES]){{0}}), 0);
    world_close(&world);
}

static void pages_of_other_slots_and_turns_are_not_found(void **state)
{
    struct world world;
    struct page_writer writer;
    struct page_word word;
    (void)state;

    world_open(&world, 4, 1, 1);
    writer = start(&world, 0);
    put_text(&writer, PAGE_DATA, "x");
    page_publish(&writer);
    assert_int_equal(page_find(&world.board, 0, writer.slot + 1, writer.turn, &word), -1);
    assert_int_equal(page_find(&world.board, 0, writer.slot, writer.turn + 1, &word), -1);
    page_drop(&world.board, 0, writer.slot, writer.turn + 1);
    assert_int_equal(page_find(&world.board, 0, writer.slot, writer.turn, &word), 0);
    page_drop(&world.board, 0, writer.slot, writer.turn);
    assert_int_equal(page_find(&world.board, 0, writer.slot, writer.turn, &word), -1);
    world_close(&world);
}

static void words_that_cannot_be_are_skipped_and_told(void **state)
{
    static const struct page_word wrong[] = {{4, 1, 1, 8},
                                             {0, 1, 1, 0},
                                             {0, 1, 1, 9},
                                             {0, 1, 1, BOARD_PAGE_BYTES + 8},
                                             {0, 1, 1, 65528}};
    struct world world;
    struct page_word word, list[BOARD_PAGES];
    (void)state;

    world_open(&world, 4, 1, 1);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        atomic_store(&world.board.threads[0].pages[2], page_pack(wrong[i]));
        assert_int_equal(page_find(&world.board, 0, wrong[i].slot, 1, &word), -1);
        assert_int_equal(page_list(&world.board, 0, list), 0);
        assert_true(page_is_broken(&world.board, 0));
    }
    atomic_store(&world.board.threads[0].pages[2], 0);
    assert_false(page_is_broken(&world.board, 0));
    world_close(&world);
}

static void pages_are_lost_when_nobody_waits_for_them(void **state)
{
    struct world world;
    struct page_writer writer;
    (void)state;

    world_open(&world, 4, 1, 1);
    writer = start(&world, 0);
    assert_false(page_is_lost(&writer));
    atomic_store(&world.board.fronts[0].life, BOARD_DEAD);
    assert_true(page_is_lost(&writer));
    atomic_store(&world.board.fronts[0].life, BOARD_RETIRING);
    assert_false(page_is_lost(&writer));
    slot_set_note(&world.board, writer.slot, SLOT_LEFT);
    assert_true(page_is_lost(&writer));
    world_close(&world);
}

static void expect_broken(const void *data, size_t size)
{
    struct span bytes = span_make(data, size), payload;
    struct page_record record;
    bool broken = false;

    assert_false(page_next(&bytes, &record, &payload, &broken));
    assert_true(broken);
}

static void bytes_that_are_no_records_are_broken(void **state)
{
    struct {
        struct page_record record;
        char payload[8];
    } page = {{PAGE_DATA, 0, 0, 8}, {0}};
    (void)state;

    expect_broken(&page, 7);
    expect_broken(&page, 15);
    page.record.size = 9;
    expect_broken(&page, 16);
    page.record.size = UINT32_MAX;
    expect_broken(&page, 16);
    page.record.size = 5;
    expect_broken(&page, 13);
    page.record.zero = 1;
    expect_broken(&page, 16);
    page.record.zero = 0;
    page.record.type = 0;
    expect_broken(&page, 16);
    page.record.type = PAGE_END + 1;
    expect_broken(&page, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_packs_and_unpacks_every_part),
        cmocka_unit_test(records_go_through_a_page_in_order),
        cmocka_unit_test(a_page_is_full_to_the_last_byte_and_then_takes_nothing),
        cmocka_unit_test(pages_are_filled_in_turn_until_the_front_takes_one),
        cmocka_unit_test(a_thread_that_waits_is_rung_when_half_of_its_pages_are_empty),
        cmocka_unit_test(a_page_is_released_only_as_it_was_seen),
        cmocka_unit_test(pages_of_other_slots_and_turns_are_not_found),
        cmocka_unit_test(words_that_cannot_be_are_skipped_and_told),
        cmocka_unit_test(pages_are_lost_when_nobody_waits_for_them),
        cmocka_unit_test(bytes_that_are_no_records_are_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.c"

#include <stdio.h>

static struct span key_of(unsigned number, char room[16])
{
    return span_make(room, (size_t)snprintf(room, 16, "key %u", number));
}

/* Every entry can be found from its home place on, and the count is right. */
static void check_map(const struct map *map)
{
    size_t size = 0;

    map_for_each (entry, map) {
        assert_ptr_equal(place_of(map, entry->key, entry->hash), entry);
        size++;
    }
    assert_int_equal(size, map->size);
}

static void an_empty_map_has_nothing(void **state)
{
    struct map map = {0};
    (void)state;

    assert_null(map_find(&map, span_of("a")));
    assert_null(map_remove(&map, span_of("a")));
    map_for_each (entry, &map)
        fail();
    map_done(&map);
}

static void finds_what_was_set_and_gives_the_former_value(void **state)
{
    struct map map = {0};
    char first, second;
    (void)state;

    assert_null(map_set(&map, span_of("a"), &first));
    assert_null(map_set(&map, span_of(""), &second));
    assert_ptr_equal(map_find(&map, span_of("a")), &first);
    assert_ptr_equal(map_find(&map, span_of("")), &second);
    assert_null(map_find(&map, span_of("A")));
    assert_ptr_equal(map_set(&map, span_of("a"), &second), &first);
    assert_int_equal(map.size, 2);
    map_done(&map);
    assert_int_equal(map.size, 0);
}

static void copies_its_keys(void **state)
{
    struct map map = {0};
    char name[] = "name";
    (void)state;

    assert_null(map_set(&map, span_of(name), name));
    name[0] = 'x';
    assert_ptr_equal(map_find(&map, span_of("name")), name);
    map_done(&map);
}

static void many_keys_come_and_go_in_any_order(void **state)
{
    static char values[2000];
    struct map map = {0};
    char room[16];
    (void)state;

    for (unsigned i = 0; i < 2000; i++)
        assert_null(map_set(&map, key_of(i, room), &values[i]));
    check_map(&map);
    for (unsigned i = 0; i < 2000; i += 3)
        assert_ptr_equal(map_remove(&map, key_of(i, room)), &values[i]);
    check_map(&map);
    for (unsigned i = 0; i < 2000; i++)
        assert_ptr_equal(map_find(&map, key_of(i, room)), i % 3 ? &values[i] : NULL);
    map_done(&map);
}

static void removing_closes_the_hole_in_a_run_of_equal_places(void **state)
{
    struct map map = {0};
    char room[16];
    (void)state;

    /* Twelve entries in sixteen places share runs for any seed; each is removed first once. */
    for (unsigned removed = 0; removed < 12; removed++) {
        for (unsigned i = 0; i < 12; i++)
            assert_null(map_set(&map, key_of(i, room), &map));
        assert_int_equal(map.room, FIRST_ROOM);
        assert_ptr_equal(map_remove(&map, key_of(removed, room)), &map);
        check_map(&map);
        map_done(&map);
    }
}

static void hashes_depend_on_every_byte_and_the_size(void **state)
{
    char bytes[24] = {0};
    (void)state;

    assert_int_equal(map_hash(span_of("same")), map_hash(span_of("same")));
    for (size_t size = 1; size <= sizeof(bytes); size++) {
        uint64_t hash = map_hash(span_make(bytes, size));

        assert_true(hash != map_hash(span_make(bytes, size - 1)));
        for (size_t i = 0; i < size; i++) {
            bytes[i] = 1;
            assert_true(hash != map_hash(span_make(bytes, size)));
            bytes[i] = 0;
        }
    }
}

static void the_seed_is_random(void **state)
{
    uint64_t former = seed[0];
    (void)state;

    make_seed();
    assert_true(seed[0] != former);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(finds_what_was_set_and_gives_the_former_value),
        cmocka_unit_test(copies_its_keys),
        cmocka_unit_test(many_keys_come_and_go_in_any_order),
        cmocka_unit_test(removing_closes_the_hole_in_a_run_of_equal_places),
        cmocka_unit_test(hashes_depend_on_every_byte_and_the_size),
        cmocka_unit_test(the_seed_is_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/origin.c"

static void the_newest_note_counts(void **state)
{
    struct config config = {0};
    (void)state;

    assert_null(origin_find(&config, "workers"));
    assert_string_equal(origin_text(&config.arena, NULL), "default");
    origin_note_place(&config, "workers", "leat.yml", 3, 1);
    assert_string_equal(origin_text(&config.arena, origin_find(&config, "workers")), "leat.yml:3");
    origin_note_source(&config, "workers", "option -w");
    assert_string_equal(origin_text(&config.arena, origin_find(&config, "workers")), "option -w");
    arena_done(&config.arena);
}

static void a_fault_names_the_place_or_what_was_typed(void **state)
{
    struct config config = {0};
    struct faults faults = {0};
    char text[128];
    (void)state;

    origin_note_place(&config, "user", "leat.yml", 3, 7);
    origin_fault(&config, &faults, "user", "there is no %s", "x");
    origin_note_source(&config, "user", "option -u");
    origin_fault(&config, &faults, "user", "there is no %s", "y");
    origin_fault(&config, &faults, "group", "there is no %s", "z");
    (void)fault_format(&faults.items[0], text, sizeof(text));
    assert_string_equal(text, "leat.yml:3:7: user: there is no x");
    (void)fault_format(&faults.items[1], text, sizeof(text));
    assert_string_equal(text, "-u: there is no y");
    (void)fault_format(&faults.items[2], text, sizeof(text));
    assert_string_equal(text, "group: there is no z");
    faults_done(&faults);
    arena_done(&config.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_note_counts),
        cmocka_unit_test(a_fault_names_the_place_or_what_was_typed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/memory_table.c"

#include <string.h>

static void a_rollup_gives_what_is_private_shared_and_resident(void **state)
{
    struct memory_use use = {.rss_bytes = 1};
    struct span text = SPAN("55d0c0-7ffd0 ---p 00000000 00:00 0    [rollup]\n"
                            "Rss:               10240 kB\n"
                            "Pss:                5120 kB\n"
                            "Pss_Anon:           4000 kB\n"
                            "Private_Clean:       100 kB\n"
                            "Private_Dirty:      2048 kB\n"
                            "Private_Hugetlb:    1024 kB\n");

    (void)state;
    assert_true(memory_parse_rollup(text, &use));
    assert_int_equal(use.rss_bytes, 10240 * 1024);
    assert_int_equal(use.pss_bytes, 5120 * 1024);
    assert_int_equal(use.private_bytes, 3072 * 1024);
    assert_true(use.is_whole);
}

static void what_is_no_rollup_changes_nothing(void **state)
{
    struct memory_use use = {.rss_bytes = 1};

    (void)state;
    assert_false(memory_parse_rollup(span_of(""), &use));
    assert_false(memory_parse_rollup(span_of("Rss: 1 kB\nPss: much kB\n"), &use));
    assert_int_equal(use.rss_bytes, 1);
}

static void statm_says_how_many_pages_are_resident(void **state)
{
    uint64_t pages = 7;

    (void)state;
    assert_true(memory_parse_statm(span_of("5000 120 30 1 0 2 0\n"), &pages));
    assert_int_equal(pages, 120);
    assert_false(memory_parse_statm(span_of(""), &pages));
    assert_false(memory_parse_statm(span_of("5000"), &pages));
    assert_int_equal(pages, 120);
}

#define MEGABYTES(count) ((uint64_t)(count) << 20)

static struct memory_process processes[] = {
    {1, "master", NULL, "", "", 0, {MEGABYTES(1), MEGABYTES(2), MEGABYTES(3), true}},
    {2, "front", NULL, "accepting", "", 0, {0, 0, MEGABYTES(4), false}},
    {3, "mold", "shop", "ready", "7", 2, {MEGABYTES(10), MEGABYTES(20), MEGABYTES(30), true}},
    {4, "worker", "shop", "busy", "7", 2, {MEGABYTES(1), MEGABYTES(2), MEGABYTES(3), true}},
    {5, "worker", "blog", "idle", "b\"g", 1, {MEGABYTES(5) / 2, MEGABYTES(5), MEGABYTES(6), true}},
};

static const struct memory_table table = {processes, ARRAY_LEN(processes)};

static void people_see_each_process_each_pool_and_all(void **state)
{
    struct buf buf = {.size = 0};

    (void)state;
    assert_int_equal(memory_text(&table, &buf), 0);
    assert_int_equal(buf_append_byte(&buf, '\0'), 0);
    assert_string_equal(
        buf_span(&buf).data,
        "process                                   PID    private        PSS        RSS\n"
        "master                                      1      1.0 M      2.0 M      3.0 M\n"
        "front accepting                             2          -          -      4.0 M\n"
        "pool shop\n"
        "  mold @2 (7) ready                         3     10.0 M     20.0 M     30.0 M\n"
        "  worker @2 (7) busy                        4      1.0 M      2.0 M      3.0 M\n"
        "  together                                  2     11.0 M     22.0 M     33.0 M\n"
        "pool blog\n"
        "  worker @1 (b\"g) idle                      5      2.5 M      5.0 M      6.0 M\n"
        "  together                                  1      2.5 M      5.0 M      6.0 M\n"
        "all processes                               5     14.5 M     29.0 M     46.0 M\n"
        "-: this user may not read it; the sums are without it\n");
    buf_done(&buf);
}

static void programs_get_bytes_and_null_for_what_is_unknown(void **state)
{
    struct memory_table two = {processes + 1, 2};
    struct buf buf = {.size = 0};

    (void)state;
    assert_int_equal(memory_json(&two, &buf), 0);
    assert_int_equal(buf_append_byte(&buf, '\0'), 0);
    assert_string_equal(
        buf_span(&buf).data,
        "{\"processes\":["
        "{\"pid\":2,\"role\":\"front\",\"pool\":null,\"state\":\"accepting\",\"generation\":null,"
        "\"private_dirty_bytes\":null,\"pss_bytes\":null,\"rss_bytes\":4194304},"
        "{\"pid\":3,\"role\":\"mold\",\"pool\":\"shop\",\"state\":\"ready\",\"generation\":2,"
        "\"private_dirty_bytes\":10485760,\"pss_bytes\":20971520,\"rss_bytes\":31457280}],"
        "\"pools\":[{\"name\":\"shop\",\"processes\":1,"
        "\"private_dirty_bytes\":10485760,\"pss_bytes\":20971520,\"rss_bytes\":31457280}],"
        "\"total\":{\"processes\":2,"
        "\"private_dirty_bytes\":10485760,\"pss_bytes\":20971520,\"rss_bytes\":35651584}}\n");
    buf_done(&buf);
}

static void names_of_any_kind_are_strings(void **state)
{
    struct buf buf = {.size = 0};

    (void)state;
    assert_int_equal(add_string(&buf, "a\"b\\c\n"), 0);
    assert_true(span_is(buf_span(&buf), "\"a\\\"b\\\\c\\u000a\""));
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollup_gives_what_is_private_shared_and_resident),
        cmocka_unit_test(what_is_no_rollup_changes_nothing),
        cmocka_unit_test(statm_says_how_many_pages_are_resident),
        cmocka_unit_test(people_see_each_process_each_pool_and_all),
        cmocka_unit_test(programs_get_bytes_and_null_for_what_is_unknown),
        cmocka_unit_test(names_of_any_kind_are_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "master/request_table.c"

static void list(struct buf *out, uint32_t stage, uint32_t pid, uint64_t age_ms, const char *id)
{
    struct listing_entry entry = {.stage = stage,
                                  .pid = pid,
                                  .age_us = age_ms * 1000,
                                  .run_us = pid ? 1000 : 0,
                                  .pool = span_of("shop"),
                                  .method = span_of("GET"),
                                  .path = span_of("/a\x1b[2J\xff"),
                                  .client = span_of("192.0.2.7"),
                                  .id = span_of(id)};

    assert_true(listing_add(out, &entry));
}

static void assert_text(struct buf *text, const char *expected)
{
    assert_int_equal(buf_append_byte(text, '\0'), 0);
    assert_string_equal(buf_span(text).data, expected);
    buf_done(text);
}

static void the_oldest_of_all_fronts_comes_first(void **state)
{
    struct buf first = {.size = 0}, second = {.size = 0}, text = {.size = 0};
    struct request_table table = {.size = 0};
    (void)state;

    list(&first, RACK_QUEUED, 0, 100, "young");
    list(&first, RACK_STAGES, 0, 99000, "no-such-stage");
    list(&second, RACK_RUNNING, 42, 2500, "old");
    request_table_add(&table, buf_span(&first));
    request_table_add(&table, buf_span(&second));
    request_table_sort(&table);
    assert_int_equal(request_table_text(&table, &text), 0);
    assert_text(&text, "     AGE  STATE      POOL  WORKER   CLIENT     ID     METHOD  PATH\n"
                       "     2.5s  running    shop  42       192.0.2.7  old    GET     /a?[2J?\n"
                       "     0.1s  queued     shop  -        192.0.2.7  young  GET     /a?[2J?\n");
    assert_int_equal(request_table_ended(&table, &text), 0);
    assert_text(&text, "ended: GET /a?[2J? pool=shop was running for 0.0 s; worker 42 is "
                       "replaced\n"
                       "ended: GET /a?[2J? pool=shop was queued for 0.1 s\n");
    request_table_done(&table);
    buf_done(&first);
    buf_done(&second);
}

static void json_says_all_of_it(void **state)
{
    struct buf listing = {.size = 0}, text = {.size = 0};
    struct request_table table = {.left_out = 3, .silent = {7, 8}, .silent_size = 2};
    (void)state;

    list(&listing, RACK_LEFT, 42, 2500, "old");
    request_table_add(&table, buf_span(&listing));
    assert_int_equal(request_table_json(&table, &text), 0);
    assert_text(
        &text,
        "{\"requests\":[{\"id\":\"old\",\"pool\":\"shop\",\"state\":\"left\",\"age_ms\":2500,"
        "\"queue_ms\":2499,\"app_ms\":1,\"worker\":42,\"method\":\"GET\","
        "\"path\":\"/a\\u001b[2J\xef\xbf\xbd\",\"client\":\"192.0.2.7\"}],"
        "\"left_out\":3,\"silent_fronts\":[7,8]}\n");
    request_table_done(&table);
    buf_done(&listing);
}

static void what_is_missing_is_said(void **state)
{
    struct request_table table = {.left_out = 3, .silent = {7}, .silent_size = 1};
    struct buf text = {.size = 0};
    (void)state;

    assert_int_equal(request_table_text(&table, &text), 0);
    assert_text(&text, "no request waits or runs\n3 more are not shown\n"
                       "front 7 does not answer: what it has is not shown\n");
    table = (struct request_table){.size = 0};
    assert_int_equal(request_table_json(&table, &text), 0);
    assert_text(&text, "{\"requests\":[],\"left_out\":0,\"silent_fronts\":[]}\n");
}

static void a_table_grows_as_far_as_the_listing_goes(void **state)
{
    struct request_table table = {.size = 0};
    struct buf listing = {.size = 0};
    (void)state;

    for (unsigned i = 0; i < 1000; i++)
        list(&listing, RACK_QUEUED, 0, i, "x");
    request_table_add(&table, buf_span(&listing));
    request_table_sort(&table);
    assert_int_equal(table.size, 1000);
    assert_int_equal(table.entries[0].age_us, 999000);
    request_table_done(&table);
    buf_done(&listing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_of_all_fronts_comes_first),
        cmocka_unit_test(json_says_all_of_it),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(a_table_grows_as_far_as_the_listing_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/snapshot.c"

static const struct snapshot_exits exits[] = {{"normal", 1}, {"killed", 2}};

static struct snapshot_request request = {
    .id = SPAN("ab\"c"), .method = SPAN("GET"), .path = SPAN("/caf\xc3\xa9/\xff\n"), .age_ms = 3};

static struct snapshot_worker worker = {.pid = 42,
                                        .state = "busy",
                                        .generation = 1,
                                        .requests = 57,
                                        .busy = 1,
                                        .threads = 3,
                                        .age_s = 11,
                                        .rss_bytes = 3,
                                        .pss_bytes = 2,
                                        .private_bytes = 1,
                                        .current = &request,
                                        .current_size = 1};

static const struct snapshot_helper mold = {41, "ready", 1, "/srv/shop/releases/7"};

static const struct snapshot_helper front = {.pid = 40, .state = "accepting"};

static struct snapshot_pool pool = {
    .name = "shop",
    .kind = "rack",
    .state = "up",
    .release = "/srv/shop/releases/7",
    .ruby = "/usr/bin/ruby 3.1.2",
    .min = 2,
    .max = 6,
    .queue = {.length = 1, .oldest_ms = 2, .limit = 1000, .shed = 3, .expired = 4, .abandoned = 5},
    .busy = 1,
    .total = 6,
    .molds = &mold,
    .mold_size = 1,
    .workers = &worker,
    .worker_size = 1,
    .exits = exits,
    .exit_size = 2};

static const struct snapshot_listener listener = {"[::]:3000", false};

static struct snapshot full(void)
{
    return (struct snapshot){.version = "0.1.0",
                             .pid = 1,
                             .uptime_s = 12.5,
                             .environment = "production",
                             .generation = 1,
                             .listeners = &listener,
                             .listener_size = 1,
                             .fronts = &front,
                             .front_size = 1,
                             .open = 3,
                             .idle = 2,
                             .accepted = 120,
                             .requests = 118,
                             .statuses = {0, 0, 110, 1, 6, 1},
                             .aborted = 0,
                             .pools = &pool,
                             .pool_size = 1};
}

static void assert_json(const struct snapshot *snapshot, const char *expected)
{
    struct buf buf = {.size = 0};

    assert_int_equal(snapshot_json(snapshot, &buf), 0);
    assert_int_equal(buf_append_byte(&buf, '\0'), 0);
    assert_string_equal(buf_span(&buf).data, expected);
    buf_done(&buf);
}

static void the_names_are_those_that_programs_rely_on(void **state)
{
    struct snapshot snapshot = full();

    (void)state;
    assert_json(
        &snapshot,
        "{\"version\":\"0.1.0\",\"pid\":1,\"uptime_s\":12.5,\"environment\":\"production\","
        "\"generation\":1,\"listeners\":[{\"address\":\"[::]:3000\",\"tls\":false}],"
        "\"fronts\":[{\"pid\":40,\"state\":\"accepting\"}],"
        "\"connections\":{\"open\":3,\"idle\":2,\"accepted\":120},"
        "\"requests\":{\"total\":118,\"2xx\":110,\"3xx\":1,\"4xx\":6,\"5xx\":1,\"aborted\":0},"
        "\"pools\":[{\"name\":\"shop\",\"kind\":\"rack\",\"state\":\"up\","
        "\"release\":\"/srv/shop/releases/7\",\"ruby\":\"/usr/bin/ruby 3.1.2\",\"min\":2,"
        "\"max\":6,\"queue\":{\"length\":1,\"oldest_ms\":2,\"limit\":1000,\"shed\":3,"
        "\"expired\":4,\"abandoned\":5},\"slots\":{\"busy\":1,\"total\":6},\"streams\":0,"
        "\"molds\":[{\"pid\":41,\"state\":\"ready\",\"generation\":1,"
        "\"release\":\"/srv/shop/releases/7\"}],"
        "\"workers\":[{\"pid\":42,\"state\":\"busy\",\"generation\":1,\"requests\":57,\"busy\":1,"
        "\"threads\":3,\"age_s\":11.0,\"rss_bytes\":3,\"pss_bytes\":2,\"private_dirty_bytes\":1,"
        "\"current\":[{\"id\":\"ab\\\"c\",\"method\":\"GET\","
        "\"path\":\"/caf\xc3\xa9/\xef\xbf\xbd\\u000a\",\"age_ms\":3}]}],"
        "\"exits\":{\"normal\":1,\"killed\":2}}]}\n");
}

static void without_pools_the_lists_are_empty(void **state)
{
    struct snapshot snapshot = full();

    (void)state;
    snapshot.pool_size = 0;
    snapshot.listener_size = 0;
    snapshot.front_size = 0;
    assert_json(&snapshot,
                "{\"version\":\"0.1.0\",\"pid\":1,\"uptime_s\":12.5,\"environment\":\"production\","
                "\"generation\":1,\"listeners\":[],\"fronts\":[],"
                "\"connections\":{\"open\":3,\"idle\":2,\"accepted\":120},"
                "\"requests\":{\"total\":118,\"2xx\":110,\"3xx\":1,\"4xx\":6,\"5xx\":1,"
                "\"aborted\":0},\"pools\":[]}\n");
}

static void what_a_terminal_would_obey_never_gets_there(void **state)
{
    struct snapshot_request odd = {
        .id = SPAN("a"),
        .method = SPAN("GET"),
        .path = SPAN("/\x1b[2J\x7f\xc2\x9b\xef\xbb\xbf\xef\xbf\xbe\xc2\xa0")};
    struct snapshot snapshot = full();
    struct buf buf = {.size = 0};

    (void)state;
    worker.current = &odd;
    assert_int_equal(snapshot_json(&snapshot, &buf), 0);
    assert_int_equal(buf_append_byte(&buf, '\0'), 0);
    assert_non_null(
        strstr(buf_span(&buf).data, "\"/\\u001b[2J\\u007f\\u009b\\ufeff\\ufffe\xc2\xa0\""));
    buf_clear(&buf);
    assert_int_equal(snapshot_text(&snapshot, &buf), 0);
    assert_int_equal(buf_append_byte(&buf, '\0'), 0);
    assert_non_null(strstr(buf_span(&buf).data, "GET /?[2J????\xc2\xa0 "));
    worker.current = &request;
    buf_done(&buf);
}

static void people_read_the_reason_beside_the_state(void **state)
{
    struct snapshot snapshot = full();
    struct buf buf = {.size = 0};

    (void)state;
    pool.state = "crashing";
    pool.error = "no database";
    assert_int_equal(snapshot_text(&snapshot, &buf), 0);
    assert_int_equal(buf_append_byte(&buf, '\0'), 0);
    assert_non_null(strstr(buf_span(&buf).data, "pool shop (rack): crashing: no database\n"));
    assert_non_null(strstr(buf_span(&buf).data, "listening on [::]:3000\n"));
    buf_done(&buf);
    pool.error = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_names_are_those_that_programs_rely_on),
        cmocka_unit_test(without_pools_the_lists_are_empty),
        cmocka_unit_test(what_a_terminal_would_obey_never_gets_there),
        cmocka_unit_test(people_read_the_reason_beside_the_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

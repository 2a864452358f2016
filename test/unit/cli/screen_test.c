/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/screen.c"

/* A status with one pool and one worker, as the server writes it. */
#define STATUS(pid, uptime, total, accepted, requests)                                         \
    "{\"version\":\"0.1.0\",\"pid\":" pid ",\"uptime_s\":" uptime                              \
    ",\"environment\":\"production\",\"connections\":{\"open\":3,\"idle\":2,"                  \
    "\"accepted\":" accepted "},\"requests\":{\"total\":" total                                \
    ",\"2xx\":10,\"3xx\":0,\"4xx\":0,\"5xx\":0,\"aborted\":1},\"pools\":[{\"name\":\"shop\","  \
    "\"state\":\"up\",\"release\":\"/srv/${HOME}/7\",\"min\":1,\"max\":2,"                     \
    "\"queue\":{\"length\":4,\"oldest_ms\":5,\"limit\":1000,\"shed\":6,\"expired\":7,"         \
    "\"abandoned\":8},\"slots\":{\"busy\":2,\"total\":3},\"streams\":9,\"workers\":["          \
    "{\"pid\":42,\"state\":\"busy\",\"generation\":2,\"requests\":" requests                   \
    ",\"busy\":2,\"threads\":3,\"age_s\":90061.5,\"rss_bytes\":3145728,\"pss_bytes\":2097152," \
    "\"private_dirty_bytes\":1048576,\"current\":[{\"id\":\"a\",\"method\":\"GET\","           \
    "\"path\":\"/caf\xc3\xa9\\u001b[2J\\u009b\",\"age_ms\":3},"                                \
    "{\"id\":\"b\",\"method\":\"POST\",\"path\":\"/slow\",\"age_ms\":70}]}]}]}\n"

static struct reading parse(const char *json)
{
    struct reading reading;

    assert_true(reading_parse(span_of(json), &reading));
    return reading;
}

/* The lines of a look, as text that the next call replaces. */
static const char *show(const char *now, const char *before, unsigned columns, unsigned rows)
{
    static char text[8192];
    struct reading newer = parse(now);
    struct reading older = parse(before ? before : now);
    struct screen_look look = {.now = newer.root,
                               .before = before ? older.root : NULL,
                               .elapsed_ms = 2000,
                               .columns = columns,
                               .rows = rows};
    struct buf out = {.size = 0};

    screen_write(&look, &out);
    (void)snprintf(text, sizeof text, "%.*s", SPAN_ARG(buf_span(&out)));
    buf_done(&out);
    reading_done(&newer);
    reading_done(&older);
    return text;
}

static void two_readings_make_rates(void **state)
{
    (void)state;
    assert_string_equal(
        show(STATUS("7", "62.5", "150", "44", "57"), STATUS("7", "60.5", "125", "41", "50"), 0, 0),
        "leat 0.1.0, PID 7, production, up 1m02s\n"
        "requests     12.5/s  (2xx 0.0/s, 3xx 0.0/s, 4xx 0.0/s, 5xx 0.0/s)  aborted 1\n"
        "connections  3 open, 2 idle, 1.5/s new\n"
        "\n"
        "pool shop: up  /srv/${HOME}/7\n"
        "  slots 2 of 3 busy  queue 4 of 1000 (oldest 5 ms)  shed 6  expired 7  abandoned 8  "
        "streams 9  workers 1 (1..2)\n"
        "       PID STATE      GEN THREADS  REQUESTS      RATE  PRIVATE     PSS     RSS      UP  "
        "NOW\n"
        "        42 busy         2     2/3        57     3.5/s       1M      2M      3M   1d01h  "
        "70 "
        "ms POST /slow and 1 more\n");
}

static void one_reading_or_another_server_makes_none(void **state)
{
    (void)state;
    assert_non_null(
        strstr(show(STATUS("7", "1", "9", "9", "9"), NULL, 0, 0), "requests     -  (2xx -,"));
    assert_non_null(
        strstr(show(STATUS("8", "3", "9", "9", "9"), STATUS("7", "1", "1", "1", "1"), 0, 0),
               "requests     -  ("));
    assert_non_null(
        strstr(show(STATUS("7", "1", "9", "9", "9"), STATUS("7", "3", "1", "1", "1"), 0, 0),
               "requests     -  ("));
    /* A counter that went back is one of another process. */
    assert_non_null(
        strstr(show(STATUS("7", "3", "9", "9", "1"), STATUS("7", "1", "1", "1", "5"), 0, 0),
               "        1         -"));
}

static void lines_end_at_the_edge_and_at_the_bottom(void **state)
{
    const char *text = show(STATUS("7", "1", "9", "9", "9"), NULL, 20, 2);

    (void)state;
    assert_string_equal(text, "leat 0.1.0, PID 7, p\nrequests     -  (2xx\n");
    assert_int_equal(fitting("caf\xc3\xa9s", 4), 5);
    assert_int_equal(fitting("caf\xc3\xa9s", 0), 6);
}

static void what_a_client_sent_does_not_reach_the_terminal(void **state)
{
    char text[] = "/\x1b[2J\x7f\xc2\x9b\xc3\xa9\n";

    (void)state;
    make_harmless(text);
    assert_string_equal(text, "/?[2J???\xc3\xa9?");
}

static void ages_have_two_units(void **state)
{
    char out[WORD];

    (void)state;
    assert_string_equal(age(0, out), "0s");
    assert_string_equal(age(59, out), "59s");
    assert_string_equal(age(3599, out), "59m59s");
    assert_string_equal(age(3600, out), "1h00m");
    assert_string_equal(age(86400 * 3 + 3600 * 4, out), "3d04h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_readings_make_rates),
        cmocka_unit_test(one_reading_or_another_server_makes_none),
        cmocka_unit_test(lines_end_at_the_edge_and_at_the_bottom),
        cmocka_unit_test(what_a_client_sent_does_not_reach_the_terminal),
        cmocka_unit_test(ages_have_two_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

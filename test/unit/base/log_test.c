/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.c"

#include <fcntl.h>
#include <stdlib.h>

static int ends[2]; /* a pipe that takes the lines */

static int open_pipe(void **state)
{
    (void)state;
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) == -1)
        return -1;
    log_to(ends[1]);
    log_level(LOG_INFO);
    log_name("test");
    return 0;
}

static int close_pipe(void **state)
{
    (void)state;
    log_to(-1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return 0;
}

/* What was written since the last call, without its time of 25 bytes, in memory of its own. */
static const char *written(void)
{
    static char text[3 * LINE_ROOM];
    ssize_t size = read(ends[0], text, sizeof(text) - 1);

    text[size > 0 ? size : 0] = '\0';
    return size > 25 ? text + 25 : text;
}

static const char *with_pid(const char *format)
{
    static char text[256];

    (void)snprintf(text, sizeof(text), format, (long)getpid());
    return text;
}

static void a_line_has_time_role_process_level_and_words(void **state)
{
    struct tm utc = {0};
    char text[256] = {0};
    (void)state;

    log_warn("pool=%s %d workers", "shop", 3);
    assert_true(read(ends[0], text, sizeof(text) - 1) > 25);
    assert_non_null(strptime(text, "%Y-%m-%dT%H:%M:%S.", &utc));
    assert_in_range(time(NULL) - timegm(&utc), 0, 2);
    assert_int_equal(text[23], 'Z');
    assert_string_equal(text + 25, with_pid("test %ld warn pool=shop 3 workers\n"));
}

static void lines_below_the_level_are_dropped_without_count(void **state)
{
    unsigned long before = log_dropped();
    (void)state;

    log_debug("not this");
    assert_string_equal(written(), "");
    log_level(LOG_ERROR);
    log_warn("nor this");
    log_error("but this");
    assert_string_equal(written(), with_pid("test %ld error but this\n"));
    assert_int_equal(log_dropped(), before);
}

static void control_bytes_cannot_forge_a_line(void **state)
{
    (void)state;

    log_info("a\nb\x1b[2J\x7f\xc3\xa4");
    assert_string_equal(written(), with_pid("test %ld info a\\x0ab\\x1b[2J\\x7f\xc3\xa4\n"));
}

static void a_long_text_is_cut_to_one_write(void **state)
{
    char text[2 * LINE_ROOM];
    const char *line;
    (void)state;

    memset(text, '\n', sizeof(text));
    log_info("%.*s", (int)sizeof(text), text);
    line = written();
    assert_true(strlen(line) + 25 <= LINE_ROOM);
    assert_string_equal(line + strlen(line) - 8, "\\x0a...\n");
}

static void what_a_full_pipe_does_not_take_is_dropped_and_counted(void **state)
{
    unsigned long before = log_dropped();
    (void)state;

    while (write(ends[1], "x", 1) == 1)
        continue;
    /* Also when the descriptor would block. */
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    log_info("lost");
    log_info("lost");
    assert_int_equal(log_dropped(), before + 2);
}

static void a_full_disk_is_counted_too(void **state)
{
    unsigned long before = log_dropped();
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)state;

    if (full == -1)
        skip();
    log_to(full);
    assert_int_equal(log_fd(), full);
    log_info("lost");
    assert_int_equal(log_dropped(), before + 1);
    (void)close(full);
}

static void errno_survives(void **state)
{
    (void)state;

    errno = ENOTTY;
    log_info("something");
    assert_int_equal(errno, ENOTTY);
}

static void a_key_is_allowed_once_per_interval(void **state)
{
    struct recent keys[RECENT_KEYS] = {0};
    unsigned suppressed = 99;
    (void)state;

    assert_true(allow(keys, 1, 1000, 5000, &suppressed));
    assert_int_equal(suppressed, 0);
    assert_false(allow(keys, 1, 1000, 5001, &suppressed));
    assert_false(allow(keys, 1, 1000, 5999, NULL));
    assert_true(allow(keys, 2, 1000, 5999, NULL));
    assert_true(allow(keys, 1, 1000, 6000, &suppressed));
    assert_int_equal(suppressed, 2);
    assert_false(allow(keys, 1, 1000, 6001, NULL));
}

static void of_many_keys_the_one_of_longest_ago_is_forgotten(void **state)
{
    struct recent keys[RECENT_KEYS] = {0};
    (void)state;

    for (uint64_t i = 0; i <= RECENT_KEYS; i++)
        assert_true(allow(keys, i, 1000000, 100 + i, NULL));
    assert_false(allow(keys, 1, 1000000, 1000, NULL));
    assert_true(allow(keys, 0, 1000000, 1000, NULL));
}

static void the_public_question_knows_its_keys_by_content(void **state)
{
    char key[] = "peer 127.0.0.1";
    (void)state;

    assert_true(log_allow(span_of("peer 127.0.0.1"), 3600, NULL));
    assert_false(log_allow(span_of(key), 3600, NULL));
    assert_true(log_allow(span_of("peer 127.0.0.2"), 3600, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_time_role_process_level_and_words, open_pipe,
                                        close_pipe),
        cmocka_unit_test_setup_teardown(lines_below_the_level_are_dropped_without_count, open_pipe,
                                        close_pipe),
        cmocka_unit_test_setup_teardown(control_bytes_cannot_forge_a_line, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(a_long_text_is_cut_to_one_write, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(what_a_full_pipe_does_not_take_is_dropped_and_counted,
                                        open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(a_full_disk_is_counted_too, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(errno_survives, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(a_key_is_allowed_once_per_interval, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(of_many_keys_the_one_of_longest_ago_is_forgotten, open_pipe,
                                        close_pipe),
        cmocka_unit_test_setup_teardown(the_public_question_knows_its_keys_by_content, open_pipe,
                                        close_pipe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

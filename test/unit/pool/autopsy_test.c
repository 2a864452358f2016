/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/autopsy.c"

#include <fcntl.h>
#include <sys/stat.h>

static void a_name_may_hold_brackets_and_blanks(void **state)
{
    struct autopsy_thread thread = {.state = '?'};

    (void)state;
    assert_true(autopsy_parse_stat(span_of("42 (leat 0) S 1 42 42"), &thread));
    assert_string_equal(thread.name, "leat 0");
    assert_int_equal(thread.state, 'S');
    assert_true(autopsy_parse_stat(span_of("42 (a) R (b)) T 1\n"), &thread));
    assert_string_equal(thread.name, "a) R (b)");
    assert_int_equal(thread.state, 'T');
    assert_true(autopsy_parse_stat(span_of("42 () D"), &thread));
    assert_string_equal(thread.name, "");
}

static void what_is_no_stat_line_is_refused(void **state)
{
    const char *const lines[] = {"", "42", "42 (", "42 (a", "42 a)", "42 )a(", "42 (a)", "42 (a) "};
    struct autopsy_thread thread = {.state = '?'};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        assert_false(autopsy_parse_stat(span_of(lines[i]), &thread));
    assert_int_equal(thread.state, '?');
}

static void a_long_name_is_cut(void **state)
{
    struct autopsy_thread thread;
    char line[300] = "42 (";

    (void)state;
    memset(line + 4, 'x', 200);
    memcpy(line + 204, ") S 1", 6);
    assert_true(autopsy_parse_stat(span_of(line), &thread));
    assert_int_equal(strlen(thread.name), AUTOPSY_NAME - 1);
}

static void a_system_call_has_a_number_and_a_first_argument(void **state)
{
    struct autopsy_thread thread = {.state = 'S'};

    (void)state;
    autopsy_parse_call(span_of("0 0x7 0x7ffd 0x1 0x0 0x0 0x0 0x7ffd10 0x7f20\n"), &thread);
    assert_int_equal(thread.call, AUTOPSY_INSIDE);
    assert_int_equal(thread.number, 0);
    assert_int_equal(thread.argument, 7);
    autopsy_parse_call(span_of("running\n"), &thread);
    assert_int_equal(thread.call, AUTOPSY_RUNNING);
    autopsy_parse_call(span_of("-1 0x7ffd10 0x7f20\n"), &thread);
    assert_int_equal(thread.call, AUTOPSY_OUTSIDE);
    for (const char *const *text =
             (const char *const[]){"", "0", "0 7", "x 0x1", "99999999999 0x1", "-2 0x1", NULL};
         *text; text++) {
        autopsy_parse_call(span_of(*text), &thread);
        assert_int_equal(thread.call, AUTOPSY_UNKNOWN);
    }
}

static void names_of_calls_are_those_of_this_processor(void **state)
{
    bool takes_file = false;

    (void)state;
    assert_string_equal(autopsy_call_name(SYS_read, &takes_file), "read");
    assert_true(takes_file);
    assert_string_equal(autopsy_call_name(SYS_futex, &takes_file), "futex");
    assert_false(takes_file);
    assert_null(autopsy_call_name(1000000, &takes_file));
}

/* ---- a process made of files */

static void put(const char *folder, const char *name, const char *text)
{
    char path[200];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, span_of(text)), 0);
    assert_int_equal(close(fd), 0);
}

static void make_folder(const char *folder, const char *name, char out[200])
{
    (void)snprintf(out, 200, "%s/%s", folder, name);
    assert_int_equal(mkdir(out, 0700), 0);
}

static void remove_all(const char *folder)
{
    char command[300];

    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void each_thread_is_a_line_with_what_could_be_read(void **state)
{
    char root[] = "/tmp/autopsy-XXXXXX";
    char process[200], task[200], first[200], second[200], gone[200], files[200], link[210];
    struct buf text = {.size = 0};

    (void)state;
    assert_non_null(mkdtemp(root));
    make_folder(root, "42", process);
    make_folder(process, "task", task);
    make_folder(process, "fd", files);
    make_folder(task, "42", first);
    put(first, "stat", "42 (ruby) S 1");
    put(first, "wchan", "wait_for_it");
    put(first, "syscall", "0 0x7 0x0");
    (void)snprintf(link, sizeof link, "%s/7", files);
    assert_int_equal(symlink("socket:[99]", link), 0);
    make_folder(task, "43", second);
    put(second, "stat", "43 (leat 0) T 1");
    put(second, "wchan", "0");
    /* One that ended while we looked. */
    make_folder(task, "44", gone);
    assert_int_equal(autopsy_write(root, 42, &text), 2);
    assert_int_equal(buf_append_byte(&text, '\0'), 0);
#ifdef __x86_64__
    assert_non_null(strstr(buf_span(&text).data, "thread \"ruby\": sleeping, wchan wait_for_it, in "
                                                 "read(7 socket:[99])\n"));
#endif
    assert_non_null(strstr(buf_span(&text).data, "thread \"leat 0\": stopped by a signal\n"));
    buf_done(&text);
    remove_all(root);
}

static void a_process_that_is_gone_has_no_threads(void **state)
{
    struct buf text = {.size = 0};

    (void)state;
    assert_int_equal(autopsy_write("/nowhere", 42, &text), 0);
    assert_int_equal(text.size, 0);
    assert_int_equal(autopsy_write("/proc", getpid(), &text), 1);
    assert_true(text.size > 0);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_may_hold_brackets_and_blanks),
        cmocka_unit_test(what_is_no_stat_line_is_refused),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(a_system_call_has_a_number_and_a_first_argument),
        cmocka_unit_test(names_of_calls_are_those_of_this_processor),
        cmocka_unit_test(each_thread_is_a_line_with_what_could_be_read),
        cmocka_unit_test(a_process_that_is_gone_has_no_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

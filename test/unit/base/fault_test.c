/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.c"

#include <fcntl.h>
#include <unistd.h>

static struct faults faults;

static const char *formatted(const struct fault *fault)
{
    static char text[256];
    int length = fault_format(fault, text, sizeof(text));

    assert_int_equal(length, strlen(text));
    return text;
}

static void parts_it_lacks_are_left_out(void **state)
{
    (void)state;

    faults_add(&faults, "leat.yml", 3, 7, "workers", "%d is %s", 0, "too few");
    faults_add(&faults, "leat.yml", 3, 0, NULL, "no mapping");
    faults_add(&faults, "leat.yml", 0, 0, NULL, "cannot be read");
    faults_add(&faults, NULL, 0, 0, "listen", "port taken");
    faults_add(&faults, NULL, 0, 0, NULL, "no application");
    assert_int_equal(faults.size, 5);
    assert_string_equal(formatted(&faults.items[0]), "leat.yml:3:7: workers: 0 is too few");
    assert_string_equal(formatted(&faults.items[1]), "leat.yml:3: no mapping");
    assert_string_equal(formatted(&faults.items[2]), "leat.yml: cannot be read");
    assert_string_equal(formatted(&faults.items[3]), "listen: port taken");
    assert_string_equal(formatted(&faults.items[4]), "no application");
    faults_done(&faults);
    assert_int_equal(faults.size, 0);
}

static void a_short_room_cuts_and_the_length_is_that_of_the_whole(void **state)
{
    char text[5];
    (void)state;

    faults_add(&faults, NULL, 0, 0, NULL, "0123456789");
    assert_int_equal(fault_format(&faults.items[0], text, sizeof(text)), 10);
    assert_string_equal(text, "0123");
    faults_done(&faults);
}

static void all_are_printed_each_on_a_line(void **state)
{
    char text[100] = {0};
    int ends[2];
    (void)state;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    faults_add(&faults, "a.yml", 1, 2, "key", "one");
    faults_add(&faults, NULL, 0, 0, NULL, "two");
    faults_print(&faults, ends[1], "leat: ");
    fd_close(&ends[1]);
    assert_true(fd_read_all(ends[0], text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "leat: a.yml:1:2: key: one\nleat: two\n");
    fd_close(&ends[0]);
    faults_done(&faults);
}

static void copies_what_it_is_given(void **state)
{
    char file[] = "a.yml";
    (void)state;

    faults_add(&faults, file, 1, 1, file, "%s", file);
    file[0] = 'x';
    assert_string_equal(formatted(&faults.items[0]), "a.yml:1:1: a.yml: a.yml");
    faults_done(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_it_lacks_are_left_out),
        cmocka_unit_test(a_short_room_cuts_and_the_length_is_that_of_the_whole),
        cmocka_unit_test(all_are_printed_each_on_a_line),
        cmocka_unit_test(copies_what_it_is_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

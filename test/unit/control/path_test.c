/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/path.c"

#include <stdlib.h>
#include <unistd.h>

static void root_has_its_folder_first(void **state)
{
    struct control_place place = {.uid = 0, .runtime = NULL, .temporary = NULL};
    char out[CONTROL_FOLDERS][CONTROL_PATH];

    (void)state;
    assert_int_equal(control_folders(&place, false, out), 2);
    assert_string_equal(out[0], "/run/leat");
    assert_string_equal(out[1], "/tmp/leat-0");
}

static void a_user_has_the_runtime_folder_then_the_temporary_one(void **state)
{
    struct control_place place = {
        .uid = 1000, .runtime = "/run/user/1000", .temporary = "/var/tmp"};
    char out[CONTROL_FOLDERS][CONTROL_PATH];

    (void)state;
    assert_int_equal(control_folders(&place, false, out), 2);
    assert_string_equal(out[0], "/run/user/1000/leat");
    assert_string_equal(out[1], "/var/tmp/leat-1000");
    assert_int_equal(control_folders(&place, true, out), 3);
    assert_string_equal(out[2], "/run/leat");
}

static void a_link_has_a_readable_part_and_differs_by_the_whole_path(void **state)
{
    char one[CONTROL_PATH];
    char other[CONTROL_PATH];

    (void)state;
    control_link_path("/run/leat", "/srv/a/my shop", one);
    control_link_path("/run/leat", "/srv/b/my shop", other);
    assert_memory_equal(one, "/run/leat/app-my-shop-", 22);
    assert_string_not_equal(one, other);
    control_link_path("/run/leat", "/srv/a/my shop", other);
    assert_string_equal(one, other);
}

static void a_long_folder_name_stays_a_file_name(void **state)
{
    char folder[400];
    char out[CONTROL_PATH];

    (void)state;
    memset(folder, 'x', sizeof folder - 1);
    folder[0] = '/';
    folder[sizeof folder - 1] = '\0';
    control_link_path("/run/leat", folder, out);
    assert_in_range(strlen(out), 20, 107);
}

static void the_socket_stands_beside_the_pid_file(void **state)
{
    char out[CONTROL_PATH];

    (void)state;
    control_beside_path("/srv/tmp/pids/leat.pid", out);
    assert_string_equal(out, "/srv/tmp/pids/leat.sock");
    control_beside_path("/srv/leat", out);
    assert_string_equal(out, "/srv/leat.sock");
}

static void a_folder_that_others_may_write_is_refused(void **state)
{
    char folder[] = "/tmp/path-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(control_make_folder(folder, geteuid()), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(control_make_folder(folder, geteuid()), -EPERM);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(control_make_folder(folder, geteuid() + 1), -EPERM);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(control_make_folder(folder, geteuid()), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_has_its_folder_first),
        cmocka_unit_test(a_user_has_the_runtime_folder_then_the_temporary_one),
        cmocka_unit_test(a_link_has_a_readable_part_and_differs_by_the_whole_path),
        cmocka_unit_test(a_long_folder_name_stays_a_file_name),
        cmocka_unit_test(the_socket_stands_beside_the_pid_file),
        cmocka_unit_test(a_folder_that_others_may_write_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/files.c"

#include <stdio.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/files-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[120];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static const char *below(const char *name)
{
    static char path[160];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void missing_folders_of_a_log_are_made_and_it_is_appended_to(void **state)
{
    struct account account = {.change = false};
    struct stat info;

    (void)state;
    for (int i = 0; i < 2; i++) {
        int fd = files_open_log(below("a/b/server.log"), &account);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, "line\n", 5), 5);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        (void)close(fd);
    }
    assert_int_equal(stat(below("a/b/server.log"), &info), 0);
    assert_int_equal(info.st_size, 10);
}

static void the_standard_streams_are_copied(void **state)
{
    struct account account = {.change = false};
    int fd = files_open_log("stderr", &account);

    (void)state;
    assert_true(fd > STDERR_FILENO);
    (void)close(fd);
}

static void root_follows_no_link_that_a_user_put_into_his_folder(void **state)
{
    struct account account = {.change = true, .uid = 12345, .gid = 12345};
    struct stat info;
    int fd;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(folder, 12345, 12345), 0);
    assert_int_equal(symlink("/etc/leat-test-must-not-be", below("x.log")), 0);
    assert_int_equal(files_open_log(below("x.log"), &account), -ELOOP);
    fd = files_open_log(below("y.log"), &account);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_uid, 12345);
    assert_int_equal(geteuid(), 0);
    (void)close(fd);
}

static void a_log_in_a_place_that_takes_none_is_told(void **state)
{
    struct account account = {.change = false};

    (void)state;
    assert_int_equal(files_open_log("/proc/nonexistent/x.log", &account), -ENOENT);
}

static void what_could_not_be_made_is_told_and_nothing_is_made(void **state)
{
    struct stat info;

    (void)state;
    assert_int_equal(files_probe(below("a/b/x.pid")), 0);
    assert_int_equal(stat(below("a"), &info), -1);
    assert_int_equal(files_probe("/proc/x.pid"), -ENOENT);
    assert_int_equal(files_probe("/proc/x/y.log"), -ENOENT);
    assert_int_equal(files_probe("/sys/x.pid"), -ENOENT);
    assert_int_equal(files_probe(below("")), -EISDIR);
    assert_int_equal(files_probe("/dev/null/x.log"), -ENOTDIR);
}

static void a_log_is_probed_with_the_rights_of_its_account(void **state)
{
    struct account account = {.change = true, .uid = 12345, .gid = 12345};

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(folder, 12346, 12346), 0);
    assert_int_equal(files_probe_log(below("x.log"), &account), -EACCES);
    assert_int_equal(chown(folder, 12345, 12345), 0);
    assert_int_equal(files_probe_log(below("x.log"), &account), 0);
    assert_int_equal(geteuid(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(missing_folders_of_a_log_are_made_and_it_is_appended_to),
        TEST(the_standard_streams_are_copied),
        TEST(root_follows_no_link_that_a_user_put_into_his_folder),
        TEST(a_log_in_a_place_that_takes_none_is_told),
        TEST(what_could_not_be_made_is_told_and_nothing_is_made),
        TEST(a_log_is_probed_with_the_rights_of_its_account),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

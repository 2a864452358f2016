/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/spool.c"

#include <stdio.h>
#include <stdlib.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/spool-XXXXXX");
    return mkdtemp(folder) && chmod(folder, 0755) == 0 ? 0 : -1;
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

static void a_missing_folder_is_made_for_the_account(void **state)
{
    struct account account = {.change = geteuid() == 0, .uid = 12345, .gid = 12345};
    struct stat info;

    (void)state;
    assert_int_equal(spool_probe(below("a/spool"), &account), 0);
    assert_int_equal(stat(below("a"), &info), -1);
    assert_int_equal(spool_prepare(below("a/spool"), &account), 0);
    assert_int_equal(stat(below("a/spool"), &info), 0);
    assert_int_equal(info.st_uid, account.change ? 12345 : geteuid());
    assert_int_equal(spool_prepare(below("a/spool"), &account), 0);
    assert_int_equal(spool_probe(below("a/spool"), &account), 0);
}

static void a_folder_that_the_account_may_not_write_is_refused(void **state)
{
    struct account account = {.change = true, .uid = 12345, .gid = 12345};

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(spool_prepare(folder, &account), -EACCES);
    assert_int_equal(spool_probe(folder, &account), -EACCES);
    assert_int_equal(geteuid(), 0);
}

static void what_can_be_no_folder_is_refused(void **state)
{
    struct account account = {.change = false};

    (void)state;
    assert_int_equal(spool_prepare("/proc/nospool", &account), -ENOENT);
    assert_int_equal(spool_probe("/proc/nospool", &account), -ENOENT);
    assert_int_equal(spool_prepare("/dev/null", &account), -ENOTDIR);
    assert_int_equal(spool_probe("/dev/null", &account), -ENOTDIR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_missing_folder_is_made_for_the_account),
        TEST(a_folder_that_the_account_may_not_write_is_refused),
        TEST(what_can_be_no_folder_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/account.c"

#include <stdio.h>

static void without_a_user_nothing_changes_but_the_names_are_known(void **state)
{
    struct account account;
    struct faults faults = {.size = 0};

    (void)state;
    assert_int_equal(account_find(NULL, NULL, NULL, "user", &account, &faults), 0);
    assert_false(account.change);
    assert_int_equal(account.uid, geteuid());
    assert_non_null(account.home);
    assert_int_equal(account_apply(&account), 0);
    account_done(&account);
}

static void a_user_that_nobody_knows_is_a_fault_with_its_key(void **state)
{
    struct account account;
    struct faults faults = {.size = 0};

    (void)state;
    assert_int_equal(account_find("no-such-user", NULL, NULL, "user", &account, &faults), -1);
    assert_string_equal(faults.items[0].key, "user");
    faults_done(&faults);
    assert_int_equal(account_find(NULL, "no-such-group", NULL, "group", &account, &faults), -1);
    assert_int_equal(faults.size, 1);
    faults_done(&faults);
}

static void only_root_becomes_somebody_else(void **state)
{
    struct account account;
    struct faults faults = {.size = 0};
    int result = account_find("12345", NULL, NULL, "user", &account, &faults);

    (void)state;
    if (geteuid() != 0) {
        assert_int_equal(result, -1);
        faults_done(&faults);
        return;
    }
    assert_int_equal(result, 0);
    assert_true(account.change);
    assert_int_equal(account.uid, 12345);
    assert_int_equal(account.group_size, 1);
    account_done(&account);
}

static void root_becomes_the_owner_of_the_application(void **state)
{
    char path[] = "/tmp/account-XXXXXX";
    int fd = mkstemp(path);
    struct account account;
    struct faults faults = {.size = 0};

    (void)state;
    assert_true(fd >= 0);
    if (geteuid() == 0)
        assert_int_equal(fchown(fd, 12345, 54321), 0);
    assert_int_equal(account_find(NULL, NULL, path, "user", &account, &faults), 0);
    assert_int_equal(account.change, geteuid() == 0);
    if (account.change) {
        assert_int_equal(account.uid, 12345);
        assert_int_equal(account.gid, 54321);
    }
    account_done(&account);
    (void)unlink(path);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_user_nothing_changes_but_the_names_are_known),
        cmocka_unit_test(a_user_that_nobody_knows_is_a_fault_with_its_key),
        cmocka_unit_test(only_root_becomes_somebody_else),
        cmocka_unit_test(root_becomes_the_owner_of_the_application),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

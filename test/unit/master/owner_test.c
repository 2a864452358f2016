/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/owner.c"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void the_file_that_counts_is_the_rackup_of_the_first_pool(void **state)
{
    struct config_pool pool = {.app = "/srv/shop"};
    struct config_pool *pools[] = {&pool};
    struct config config = {.folder = "/srv/files"};
    struct faults faults = {.size = 0};
    struct account account;
    char path[PATH_MAX];

    (void)state;
    config.pools = pools;
    assert_int_equal(owner_find(&config, &account, path, &faults), 0);
    assert_string_equal(path, "/srv/files");
    account_done(&account);
    config.pool_size = 1;
    assert_int_equal(owner_find(&config, &account, path, &faults), 0);
    assert_string_equal(path, "/srv/shop/config.ru");
    account_done(&account);
    pool.rackup = "/etc/other.ru";
    assert_int_equal(owner_find(&config, &account, path, &faults), 0);
    assert_string_equal(path, "/etc/other.ru");
    account_done(&account);
}

static void root_becomes_the_owner_of_that_file(void **state)
{
    char folder[] = "/tmp/owner-XXXXXX", path[PATH_MAX], file[64];
    struct config_pool pool = {.app = folder};
    struct config_pool *pools[] = {&pool};
    struct config config = {.folder = folder, .pools = pools, .pool_size = 1};
    struct faults faults = {.size = 0};
    struct account account;
    int fd;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/config.ru", folder);
    fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fchown(fd, 12345, 12345), 0);
    assert_int_equal(owner_find(&config, &account, path, &faults), 0);
    assert_true(account.change);
    assert_int_equal(account.uid, 12345);
    account_done(&account);
    (void)close(fd);
    (void)unlink(file);
    (void)rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_that_counts_is_the_rackup_of_the_first_pool),
        cmocka_unit_test(root_becomes_the_owner_of_that_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

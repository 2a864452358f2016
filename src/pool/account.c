/* SPDX-License-Identifier: MIT */
#include "pool/account.h"

#include "base/num.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUPS_MAX = 256 };

static struct passwd *find_user(const char *user)
{
    struct passwd *entry = getpwnam(user);
    uint64_t number;

    if (!entry && num_decimal(span_of(user), &number) && number < UINT32_MAX)
        entry = getpwuid((uid_t)number);
    return entry;
}

static int find_group(const char *group, const char *key, gid_t *ret_gid, struct faults *faults)
{
    struct group *entry = getgrnam(group);
    uint64_t number;

    if (entry) {
        *ret_gid = entry->gr_gid;
        return 0;
    }
    if (num_decimal(span_of(group), &number) && number < UINT32_MAX) {
        *ret_gid = (gid_t)number;
        return 0;
    }
    faults_add(faults, NULL, 0, 0, key, "there is no group \"%s\"", group);
    return -1;
}

static void fill(struct account *account, const struct passwd *entry, uid_t uid, gid_t gid)
{
    account->uid = uid;
    account->gid = gid;
    account->name = must_copy(entry ? entry->pw_name : "");
    account->home = must_copy(entry && entry->pw_dir && *entry->pw_dir ? entry->pw_dir : "/");
}

static void fill_groups(struct account *account)
{
    int size = GROUPS_MAX;

    account->groups = must_alloc(GROUPS_MAX, sizeof *account->groups);
    account->groups[0] = account->gid;
    account->group_size = 1;
    if (*account->name && getgrouplist(account->name, account->gid, account->groups, &size) >= 0)
        account->group_size = size;
}

static int fill_named(struct account *account, const char *user, const char *key,
                      struct faults *faults)
{
    struct passwd *entry = find_user(user);
    uint64_t number;

    if (entry) {
        fill(account, entry, entry->pw_uid, entry->pw_gid);
        return 0;
    }
    /* A container may run under a number that no file knows. */
    if (num_decimal(span_of(user), &number) && number < UINT32_MAX) {
        fill(account, NULL, (uid_t)number, (gid_t)number);
        return 0;
    }
    faults_add(faults, NULL, 0, 0, key, "there is no user \"%s\"", user);
    return -1;
}

static void fill_owner(struct account *account, const char *path)
{
    struct passwd *entry;
    struct stat info;

    if (geteuid() != 0 || !path || stat(path, &info) == -1 || info.st_uid == 0) {
        fill(account, getpwuid(geteuid()), geteuid(), getegid());
        return;
    }
    /* The group is the user's own: the file's may be one that he is not in. */
    entry = getpwuid(info.st_uid);
    fill(account, entry, info.st_uid, entry ? entry->pw_gid : info.st_gid);
}

int account_find(const char *user, const char *group, const char *path, const char *key,
                 struct account *ret_account, struct faults *faults)
{
    struct account account = {.change = false};

    if (!user)
        fill_owner(&account, path);
    else if (fill_named(&account, user, key, faults) != 0)
        return -1;
    if (group && find_group(group, key, &account.gid, faults) != 0) {
        account_done(&account);
        return -1;
    }
    account.change = account.uid != geteuid() || account.gid != getegid();
    if (account.change && geteuid() != 0) {
        faults_add(faults, NULL, 0, 0, key, "only root can become user \"%s\"",
                   user ? user : account.name);
        account_done(&account);
        return -1;
    }
    fill_groups(&account);
    *ret_account = account;
    return 0;
}

void account_done(struct account *account)
{
    free(account->groups);
    free(account->name);
    free(account->home);
    *account = (struct account){.change = false};
}

int account_apply(const struct account *account)
{
    if (!account->change)
        return 0;
    if (setgroups((size_t)account->group_size, account->groups) == -1 ||
        setresgid(account->gid, account->gid, account->gid) == -1 ||
        setresuid(account->uid, account->uid, account->uid) == -1)
        return -errno;
    return 0;
}

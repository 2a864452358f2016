/* SPDX-License-Identifier: MIT */
#include "master/files.h"

#include "base/span.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int files_make_parents(const char *path)
{
    char *copy = must_copy(path);
    int result = 0;

    for (char *slash = strchr(copy + 1, '/'); slash && result == 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) == -1 && errno != EEXIST)
            /* An existing folder may stand where making one is forbidden. */
            result = access(copy, F_OK) == 0 ? 0 : -errno;
        *slash = '/';
    }
    free(copy);
    return result;
}

static int open_append(const char *path, bool follow)
{
    int result = files_make_parents(path);
    int fd;

    if (result != 0)
        return result;
    fd =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | (follow ? 0 : O_NOFOLLOW),
             0640);
    return fd == -1 ? -errno : fd;
}

/* Kernel interfaces look like folders that root may write, and take no new files. */
static bool is_made_by_kernel(const char *folder)
{
    static const unsigned kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
                                     CGROUP2_SUPER_MAGIC};
    struct statfs found;

    for (size_t i = 0; statfs(folder, &found) == 0 && i < ARRAY_LEN(kinds); i++)
        if ((unsigned)found.f_type == kinds[i])
            return true;
    return false;
}

/* A socket or a PID file that is there already is its opener's to judge. */
static int probe_existing(const char *path, const struct stat *info)
{
    if (S_ISDIR(info->st_mode))
        return -EISDIR;
    return S_ISREG(info->st_mode) && eaccess(path, W_OK) == -1 ? -errno : 0;
}

static int probe_folder(const char *folder)
{
    struct stat info;

    if (stat(folder, &info) == -1)
        return -errno;
    if (!S_ISDIR(info.st_mode))
        return -ENOTDIR;
    if (is_made_by_kernel(folder))
        return -ENOENT;
    return eaccess(folder, W_OK | X_OK) == -1 ? -errno : 0;
}

int files_probe(const char *path)
{
    char *folder = must_copy(path);
    struct stat info;
    int result;

    if (stat(path, &info) == 0) {
        result = probe_existing(path, &info);
    } else {
        do {
            char *slash = strrchr(folder, '/');
            CHECK(slash);
            slash[slash == folder] = '\0';
            result = probe_folder(folder);
        } while (result == -ENOENT && folder[1] && !is_made_by_kernel(folder));
    }
    free(folder);
    return result;
}

/* Whether nobody but root could have put something into the path's folder. */
static bool only_root_writes(const char *path)
{
    struct span folder = span_first(span_of(path), span_find_last(span_of(path), '/'));
    char *name = folder.size ? strndup(folder.data, folder.size) : must_copy("/");
    struct stat info;
    bool safe = name && stat(name, &info) == 0 && info.st_uid == 0 && !(info.st_mode & 022);

    free(name);
    return safe;
}

static int open_unfollowed(const char *path)
{
    return open_append(path, false);
}

/* This process has one thread, so that changing its effective user for a moment is seen by nobody. */
static int do_as(const struct account *account, int (*act)(const char *path), const char *path)
{
    int result = -EPERM;

    if (setegid(account->gid) == 0) {
        if (seteuid(account->uid) == 0) {
            result = act(path);
            CHECK(seteuid(0) == 0);
        }
        CHECK(setegid(0) == 0);
    }
    return result;
}

static bool is_for_account(const char *path, const struct account *account)
{
    return account->change && geteuid() == 0 && !only_root_writes(path);
}

int files_probe_log(const char *path, const struct account *account)
{
    return is_for_account(path, account) ? do_as(account, files_probe, path) : files_probe(path);
}

int files_open_log(const char *path, const struct account *account)
{
    int fd;

    if (strcmp(path, "stdout") == 0 || strcmp(path, "stderr") == 0) {
        fd = fcntl(path[3] == 'o' ? STDOUT_FILENO : STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        return fd == -1 ? -errno : fd;
    }
    if (is_for_account(path, account))
        return do_as(account, open_unfollowed, path);
    return open_append(path, true);
}

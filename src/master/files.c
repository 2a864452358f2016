/* SPDX-License-Identifier: MIT */
#include "master/files.h"

#include "base/span.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* This process has one thread, so that changing its effective user for a moment is seen by nobody. */
static int open_as(const char *path, const struct account *account)
{
    int fd = -EPERM;

    if (setegid(account->gid) == 0) {
        if (seteuid(account->uid) == 0) {
            fd = open_append(path, false);
            CHECK(seteuid(0) == 0);
        }
        CHECK(setegid(0) == 0);
    }
    return fd;
}

int files_open_log(const char *path, const struct account *account)
{
    int fd;

    if (strcmp(path, "stdout") == 0 || strcmp(path, "stderr") == 0) {
        fd = fcntl(path[3] == 'o' ? STDOUT_FILENO : STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        return fd == -1 ? -errno : fd;
    }
    if (account->change && geteuid() == 0 && !only_root_writes(path))
        return open_as(path, account);
    return open_append(path, true);
}

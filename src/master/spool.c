/* SPDX-License-Identifier: MIT */
#include "master/spool.h"

#include "base/fd.h"
#include "master/files.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0 or a negative errno of this very process. */
static int try_file(const char *folder)
{
    int fd = fd_temporary(folder);

    if (fd < 0)
        return fd;
    fd_close(&fd);
    return 0;
}

/* In a child, because there is no way back from another user and his groups. An errno fits into an exit
 * status. */
static int try_as(const char *folder, const struct account *account)
{
    pid_t child = fork();
    int status, error;

    if (child == 0) {
        error = account_apply(account);
        _exit(-(error ? error : try_file(folder)));
    }
    if (child == -1)
        return -errno;
    while (waitpid(child, &status, 0) == -1)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int try_folder(const char *folder, const struct account *account)
{
    return account->change ? try_as(folder, account) : try_file(folder);
}

int spool_prepare(const char *folder, const struct account *account)
{
    int result = files_make_parents(folder);

    if (result != 0)
        return result;
    if (mkdir(folder, 0700) == 0) {
        if (account->change && chown(folder, account->uid, account->gid) == -1)
            return -errno;
    } else if (errno != EEXIST && access(folder, F_OK) == -1) {
        return -errno;
    }
    return try_folder(folder, account);
}

int spool_probe(const char *folder, const struct account *account)
{
    return access(folder, F_OK) == 0 ? try_folder(folder, account) : files_probe(folder);
}

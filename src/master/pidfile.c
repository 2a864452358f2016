/* SPDX-License-Identifier: MIT */
#include "master/pidfile.h"

#include "base/fd.h"
#include "base/num.h"
#include "base/span.h"
#include "master/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the name still means the file that is open. */
static bool is_same(int fd, const char *path)
{
    struct stat opened;
    struct stat named;

    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* Locks; 0, -EAGAIN with the holder, or negative errno. */
static int lock(int fd, pid_t *ret_holder)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_SETLK, &lock) == 0)
        return 0;
    if (errno != EAGAIN && errno != EACCES)
        return -errno;
    if (fcntl(fd, F_GETLK, &lock) == -1)
        return -errno;
    *ret_holder = lock.l_type == F_UNLCK ? 0 : lock.l_pid;
    return -EAGAIN;
}

/* Opens and locks; again when the file was removed between the two steps by a server that ended. */
static int open_locked(const char *path, pid_t *ret_holder)
{
    for (int tries = 0; tries < 20; tries++) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
        int result = fd == -1 ? -errno : lock(fd, ret_holder);
        if (fd == -1)
            return result;
        if (result == 0 && is_same(fd, path))
            return fd;
        (void)close(fd);
        if (result != 0 && !(result == -EAGAIN && *ret_holder == 0))
            return result;
    }
    return -EBUSY;
}

/* rackup and `rails server` write the file before they become this program. */
static bool holds_own_number(int fd)
{
    char text[32] = "";
    uint64_t number;

    return pread(fd, text, sizeof text - 1, 0) > 0 &&
           num_decimal(span_make(text, strspn(text, "0123456789")), &number) &&
           number == (uint64_t)getpid();
}

static int write_number(int fd, bool *ret_own, bool *ret_stale)
{
    char text[32];
    struct stat info;

    if (fstat(fd, &info) == -1)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return -EINVAL;
    *ret_own = holds_own_number(fd);
    *ret_stale = info.st_size > 0;
    (void)snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) == -1)
        return -errno;
    return fd_write_all(fd, span_of(text));
}

/* An empty file has no size, but was there before us: whoever made it did not get to the number. */
static bool was_there(const char *path)
{
    return access(path, F_OK) == 0;
}

enum pidfile_result pidfile_take(const char *path, struct pidfile *ret_pidfile, pid_t *ret_holder,
                                 struct faults *faults)
{
    bool there = was_there(path);
    bool stale = false;
    bool own = false;
    int result = files_make_parents(path);
    int fd = result == 0 ? open_locked(path, ret_holder) : result;

    if (fd == -EAGAIN)
        return PIDFILE_TAKEN;
    result = fd < 0 ? fd : write_number(fd, &own, &stale);
    if (result != 0) {
        faults_add(faults, NULL, 0, 0, "pid", "%s: %s", path, strerror(-result));
        if (fd >= 0)
            (void)close(fd);
        return PIDFILE_FAILED;
    }
    *ret_pidfile = (struct pidfile){.path = must_copy(path), .fd = fd};
    return !own && (stale || there) ? PIDFILE_STALE : PIDFILE_OWNED;
}

void pidfile_give(struct pidfile *pidfile)
{
    if (!pidfile->path)
        return;
    if (is_same(pidfile->fd, pidfile->path))
        (void)unlink(pidfile->path);
    fd_close(&pidfile->fd);
    free(pidfile->path);
    pidfile->path = NULL;
}

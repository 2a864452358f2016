/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* musl has no wrapper, and its headers of some years lack the number; it is the same everywhere. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* The most descriptors the kernel puts into one message (SCM_MAX_FD). Room for all of them is always
 * offered, since those that do not fit would be lost without a word. */
enum { KERNEL_PASS_MAX = 253 };

void fd_close(int *fd)
{
    if (*fd != -1)
        (void)close(*fd);
    *fd = -1;
}

int fd_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags == -1)
        return -errno;
    if (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
        return -errno;
    return 0;
}

int fd_set_cloexec(int fd, bool on)
{
    return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) == -1 ? -errno : 0;
}

int fd_write_all(int fd, struct span bytes)
{
    while (bytes.size) {
        ssize_t written = write(fd, bytes.data, bytes.size);

        if (written == -1) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        bytes = span_skip(bytes, (size_t)written);
    }
    return 0;
}

ssize_t fd_read_all(int fd, char *out, size_t room)
{
    size_t size = 0;

    while (size < room) {
        ssize_t got = read(fd, out + size, room - size);

        if (got == 0)
            break;
        if (got == -1) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        size += (size_t)got;
    }
    return (ssize_t)size;
}

/* Reads to the end in growing steps: what fstat says is wrong for /proc and pipes. */
static int read_whole(int fd, size_t limit, char **ret_text, size_t *ret_size)
{
    size_t room = 0, size = 0;
    char *text = NULL;
    ssize_t got;

    do {
        room = room ? room * 2 : 4096;
        if (room > limit)
            room = limit + 1;
        text = must_resize(text, room + 1);
        got = fd_read_all(fd, text + size, room - size);
        if (got < 0) {
            free(text);
            return (int)got;
        }
        size += (size_t)got;
    } while (size == room && size <= limit);

    if (size > limit) {
        free(text);
        return -EFBIG;
    }
    text[size] = '\0';
    *ret_text = text;
    *ret_size = size;
    return 0;
}

int fd_read_file(const char *path, size_t limit, char **ret_text, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int error;

    CHECK(limit < SSIZE_MAX / 2);
    if (fd == -1)
        return -errno;
    error = read_whole(fd, limit, ret_text, ret_size);
    fd_close(&fd);
    return error;
}

int fd_send(int socket, struct span message, const int *fds, size_t count)
{
    union {
        struct cmsghdr header; /* for its alignment */
        char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
    } control;
    struct iovec part = {(char *)message.data, message.size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    CHECK(count <= FD_PASS_MAX && message.size > 0);
    if (count) {
        /* The first part of a control message stands at its beginning. */
        memset(&control, 0, sizeof(control));
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    }

    do
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (sent == -1 && errno == EINTR);
    if (sent == -1)
        return -errno;
    return (size_t)sent == message.size ? 0 : -EMSGSIZE;
}

/* Collects the descriptors of a received message, in order; returns how many there are. */
static size_t collect(struct msghdr *header, int fds[KERNEL_PASS_MAX])
{
    size_t count = 0;

    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        size_t size = part->cmsg_len - CMSG_LEN(0);

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        CHECK(count + size / sizeof(int) <= KERNEL_PASS_MAX);
        memcpy(fds + count, CMSG_DATA(part), size);
        count += size / sizeof(int);
    }
    return count;
}

static void close_from(int *fds, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++)
        fd_close(&fds[i]);
}

ssize_t fd_receive(int socket, char *out, size_t room, int *ret_fds, size_t room_fds,
                   size_t *ret_count)
{
    union {
        struct cmsghdr header; /* for its alignment */
        char bytes[CMSG_SPACE(KERNEL_PASS_MAX * sizeof(int))];
    } control;
    struct iovec part = {out, room};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof(control.bytes)};
    int fds[KERNEL_PASS_MAX];
    size_t count, kept;
    ssize_t size;

    do
        size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (size == -1 && errno == EINTR);
    if (size == -1)
        return -errno;

    count = collect(&header, fds);
    kept = size == 0 || (header.msg_flags & MSG_TRUNC) ? 0 : count < room_fds ? count : room_fds;
    close_from(fds, kept, count);
    if (header.msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    if (kept)
        memcpy(ret_fds, fds, kept * sizeof(int));
    *ret_count = kept;
    return size;
}

/* For file systems without O_TMPFILE: a file whose name is gone at once. */
static int temporary_by_name(const char *folder)
{
    char path[PATH_MAX];
    int fd;

    if ((size_t)snprintf(path, sizeof(path), "%s/.leat-XXXXXX", folder) >= sizeof(path))
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd == -1)
        return -errno;
    (void)unlink(path);
    return fd;
}

int fd_temporary(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd != -1)
        return fd;
    /* What kernels and file systems that do not know the flag say (open(2)). */
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT)
        return temporary_by_name(folder);
    return -errno;
}

static bool is_kept(const int *keep, size_t count, int fd)
{
    for (size_t i = 0; i < count; i++)
        if (keep[i] == fd)
            return true;
    return false;
}

/* The lowest kept descriptor from low up, or -1. */
static int next_kept(const int *keep, size_t count, int low)
{
    int next = -1;

    for (size_t i = 0; i < count; i++)
        if (keep[i] >= low && (next == -1 || keep[i] < next))
            next = keep[i];
    return next;
}

/* Closes the gaps between the kept ones; false when the kernel (before 5.9) or a sandbox refuses. */
static bool close_gaps(const int *keep, size_t count)
{
    int low = 3;

    for (;;) {
        int kept = next_kept(keep, count, low);

        if (kept != low && syscall(SYS_close_range, low, kept == -1 ? INT_MAX : kept - 1, 0) == -1)
            return false;
        if (kept == -1)
            return true;
        low = kept + 1;
    }
}

/* An entry of getdents64(2), which opendir is not used for as it allocates. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

/* The number a name of /proc/self/fd stands for, or -1 for "." and "..". */
static int fd_of_name(const char *name)
{
    int fd = 0;

    if (*name < '0' || *name > '9')
        return -1;
    for (; *name >= '0' && *name <= '9'; name++)
        fd = fd * 10 + (*name - '0');
    return fd;
}

/* Closes what /proc lists; its positions are descriptor numbers, so closing skips none. */
static bool close_listed(const int *keep, size_t count)
{
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct entry) char entries[2048];
    long size;

    if (folder == -1)
        return false;
    while ((size = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0)
        for (long at = 0; at < size;) {
            const struct entry *entry = (const struct entry *)(entries + at);
            int fd = fd_of_name(entry->name);

            if (fd >= 3 && fd != folder && !is_kept(keep, count, fd))
                (void)close(fd);
            at += entry->size;
        }
    (void)close(folder);
    return size == 0;
}

void fd_close_others(const int *keep, size_t count)
{
    long highest;

    if (close_gaps(keep, count) || close_listed(keep, count))
        return;
    highest = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (highest > 0 && highest < 65536 ? highest : 65536); fd++)
        if (!is_kept(keep, count, fd))
            (void)close(fd);
}

/* SPDX-License-Identifier: MIT */
/*
 * A disk that is slow over some files, put in front of libc by LD_PRELOAD: opening or reading a file whose
 * name has SLOW_NAME in it, and making or writing an unnamed one in a folder with that name, waits until
 * the file SLOW_GATE is there. What asks not to wait (RESOLVE_CACHED, RWF_NOWAIT) or only looks (O_PATH)
 * does not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LOOK_MS = 5, ARGUMENTS = 6 };

long syscall(long number, ...);
ssize_t pread(int fd, void *out, size_t size, off_t offset);
ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags);
ssize_t write(int fd, const void *bytes, size_t size);
int open(const char *path, int flags, ...);

static bool is_slow(const char *path)
{
    const char *name = getenv("SLOW_NAME"), *gate = getenv("SLOW_GATE");

    return name && gate && *gate && path && strstr(path, name) && access(gate, F_OK) == -1;
}

static void wait_for_gate(const char *path)
{
    while (is_slow(path))
        (void)poll(NULL, 0, LOOK_MS);
}

static bool name_of(int fd, char path[static 512])
{
    char link[64];
    ssize_t size;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    size = readlink(link, path, 511);
    path[size > 0 ? size : 0] = 0;
    return size > 0;
}

static void wait_for_file(int fd)
{
    char path[512];

    if (name_of(fd, path))
        wait_for_gate(path);
}

static void wait_for_open(const long arguments[static ARGUMENTS])
{
    const struct open_how *how = (const struct open_how *)arguments[2];

    if (!(how->resolve & RESOLVE_CACHED) && !(how->flags & O_PATH))
        wait_for_gate((const char *)arguments[1]);
}

long syscall(long number, ...)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long arguments[ARGUMENTS];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < ARGUMENTS; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2)
        wait_for_open(arguments);
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}

ssize_t pread(int fd, void *out, size_t size, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t) =
        (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");

    wait_for_file(fd);
    return real(fd, out, size, offset);
}

ssize_t pread64(int fd, void *out, size_t size, off_t offset) __attribute__((alias("pread")));

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    ssize_t (*real)(int, const struct iovec *, int, off_t, int) =
        (ssize_t(*)(int, const struct iovec *, int, off_t, int))dlsym(RTLD_NEXT, "preadv2");
    char path[512];

    if ((flags & RWF_NOWAIT) && name_of(fd, path) && is_slow(path)) {
        errno = EAGAIN;
        return -1;
    }
    return real(fd, parts, count, offset, flags);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");

    wait_for_file(fd);
    return real(fd, bytes, size);
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list list;
    mode_t mode;

    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
    if (!(flags & O_PATH))
        wait_for_gate(path);
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

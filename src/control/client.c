/* SPDX-License-Identifier: MIT */
#include "control/client.h"

#include "base/fd.h"
#include "loop/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 5000 };

static int try_path(const char *path)
{
    struct address address;
    char text[CONTROL_PATH + 8];

    (void)snprintf(text, sizeof text, "unix:%s", path);
    if (!address_parse(span_of(text), &address))
        return -ENAMETOOLONG;
    return address_connect(&address, CONNECT_MS);
}

pid_t client_lock_holder(const char *pid_file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(pid_file, O_RDONLY | O_CLOEXEC);
    pid_t holder;

    if (fd == -1)
        return -errno;
    if (fcntl(fd, F_GETLK, &lock) == -1)
        holder = -errno;
    else
        holder = lock.l_type == F_UNLCK ? 0 : lock.l_pid;
    (void)close(fd);
    return holder;
}

static int try_pid_file(const char *pid_file, bool *ret_stale)
{
    char path[CONTROL_PATH];
    int fd;

    control_beside_path(pid_file, path);
    fd = try_path(path);
    if (fd < 0 && client_lock_holder(pid_file) == 0)
        *ret_stale = true;
    return fd;
}

static int try_run(const char *application, const struct control_place *place)
{
    char folders[CONTROL_FOLDERS][CONTROL_PATH];
    char path[CONTROL_PATH];
    size_t count = control_folders(place, true, folders);
    int fd = -ENOENT;

    for (size_t i = 0; i < count && fd < 0 && fd != -EACCES; i++) {
        control_link_path(folders[i], application, path);
        fd = try_path(path);
    }
    return fd;
}

/* A socket without a server behind it is no server. */
static int settle(int fd)
{
    return fd == -ECONNREFUSED || fd == -ENOTDIR || fd == -ENOTSOCK ? -ENOENT : fd;
}

int client_connect(const struct client_target *target, const struct control_place *place,
                   bool *ret_stale)
{
    char path[CONTROL_PATH];
    int fd;

    *ret_stale = false;
    if (target->control)
        return settle(try_path(target->control));
    if (target->pid_file)
        return settle(try_pid_file(target->pid_file, ret_stale));
    if (!target->application)
        return -ENOENT;
    fd = try_run(target->application, place);
    if (fd >= 0 || fd == -EACCES)
        return fd;
    (void)snprintf(path, sizeof path, "%s/tmp/pids/leat.pid", target->application);
    return settle(try_pid_file(path, ret_stale));
}

int client_ask(int fd, const char *line, struct buf *ret_text)
{
    struct span answer;
    int result = fd_write_all(fd, span_of(line));

    if (result != 0)
        return result;
    for (;;) {
        char *room = buf_reserve(ret_text, 16384);
        ssize_t size;
        if (!room)
            return -ENOMEM;
        size = read(fd, room, 16384);
        if (size == -1 && errno == EINTR)
            continue;
        if (size == -1 && errno != ECONNRESET)
            return -errno;
        if (size <= 0)
            break;
        buf_grow(ret_text, (size_t)size);
    }
    answer = buf_span(ret_text);
    if (span_starts_with(answer, span_of("ok\n"))) {
        buf_consume(ret_text, 3);
        return 1;
    }
    if (span_starts_with(answer, span_of("failed\n"))) {
        buf_consume(ret_text, 7);
        return 0;
    }
    return -EPIPE;
}

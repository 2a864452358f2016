/* SPDX-License-Identifier: MIT */
#include "cli/server.h"

#include "base/fd.h"
#include "control/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { END_MS = 5000 }; /* a process that has answered that it ends is gone by then */

/* Paths of options are relative to the application folder, that is what the server did with them. */
static char *absolute(const char *path, const char *folder)
{
    size_t room;
    char *full;

    if (!path || *path == '/' || !folder)
        return path ? must_copy(path) : NULL;
    room = strlen(path) + strlen(folder) + 2;
    full = must_alloc(1, room);
    (void)snprintf(full, room, "%s/%s", folder, path);
    return full;
}

static int connect_server(const struct cli_call *call, bool *ret_stale)
{
    struct control_place place = {
        .uid = geteuid(), .runtime = getenv("XDG_RUNTIME_DIR"), .temporary = getenv("TMPDIR")};
    struct faults faults = {.size = 0};
    char *folder = config_find_folder(&call->options, &faults);
    char *control = absolute(call->options.control, folder);
    char *pid_file = absolute(call->options.pid, folder);
    struct client_target target = {.control = control, .pid_file = pid_file, .application = folder};
    int fd;

    /* A folder that is gone, an old release, may still be served: its name is enough. */
    if (!folder && call->options.target && !control && !pid_file)
        target.application = call->options.target;
    fd = client_connect(&target, &place, ret_stale);
    if (fd < 0 && fd != -ENOENT)
        cli_complain("the server cannot be reached: %s", strerror(-fd));
    faults_done(&faults);
    free(folder);
    free(control);
    free(pid_file);
    return fd;
}

/* A descriptor that becomes readable when the process at the other end has ended, or -1. */
static int watch_process(int socket_fd)
{
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;

    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1 || peer.pid <= 0)
        return -1;
    return (int)syscall(SYS_pidfd_open, peer.pid, 0);
}

/* The connection closes a moment before the process is gone. */
static void wait_for_end(int process_fd)
{
    struct pollfd waiting = {.fd = process_fd, .events = POLLIN};

    if (process_fd < 0)
        return;
    while (poll(&waiting, 1, END_MS) == -1 && errno == EINTR)
        continue;
    (void)close(process_fd);
}

static enum server_outcome ask(const struct cli_call *call, const char *line, bool ends,
                               struct buf *ret_text)
{
    bool stale;
    int fd = connect_server(call, &stale);
    int result, process_fd;

    if (fd == -ENOENT)
        return stale ? SERVER_STALE : SERVER_NONE;
    if (fd < 0)
        return SERVER_UNREACHABLE;
    process_fd = ends ? watch_process(fd) : -1;
    result = client_ask(fd, line, ret_text);
    (void)close(fd);
    wait_for_end(process_fd);
    if (result == 1)
        return SERVER_OK;
    if (result == 0)
        return SERVER_FAILED;
    if (result == -EPIPE || result == -ECONNRESET)
        return SERVER_ENDED;
    cli_complain("the server cannot be asked: %s", strerror(-result));
    return SERVER_UNREACHABLE;
}

enum server_outcome server_ask(const struct cli_call *call, const char *line, struct buf *ret_text)
{
    return ask(call, line, false, ret_text);
}

enum server_outcome server_ask_end(const struct cli_call *call, const char *line,
                                   struct buf *ret_text)
{
    return ask(call, line, true, ret_text);
}

void server_print(int fd, const struct buf *text)
{
    (void)fd_write_all(fd, buf_span(text));
}

void server_say_none(enum server_outcome outcome)
{
    printf(outcome == SERVER_STALE ? "not running (stale PID file)\n" : "not running\n");
}

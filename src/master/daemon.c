/* SPDX-License-Identifier: MIT */
#include "master/daemon.h"

#include "base/base.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTCOME_BYTES = 65536 };

static const char lost[] = "leat: the server ended before it was ready\n";

_Noreturn static void wait_for_outcome(int fd)
{
    char *text = must_alloc(1, OUTCOME_BYTES);
    ssize_t size = fd_read_all(fd, text, OUTCOME_BYTES);

    if (size < 1) {
        (void)fd_write_all(STDERR_FILENO, span_of(lost));
        _exit(1);
    }
    (void)fd_write_all(text[0] == '+' ? STDOUT_FILENO : STDERR_FILENO,
                       span_make(text + 1, (size_t)size - 1));
    _exit(text[0] == '+' ? 0 : 1);
}

int daemon_start(void)
{
    int pair[2];
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) == -1)
        return -errno;
    pid = fork();
    if (pid == -1)
        return -errno;
    if (pid > 0) {
        (void)close(pair[1]);
        wait_for_outcome(pair[0]);
    }
    (void)close(pair[0]);
    (void)setsid();
    /* Not the leader of its session: it can never get a terminal again. */
    pid = fork();
    if (pid == -1)
        _exit(1);
    if (pid > 0)
        _exit(0);
    return pair[1];
}

void daemon_tell(int *pipe_fd, bool ok, struct span text)
{
    if (*pipe_fd == -1) {
        (void)fd_write_all(ok ? STDOUT_FILENO : STDERR_FILENO, text);
        return;
    }
    (void)fd_write_all(*pipe_fd, span_of(ok ? "+" : "-"));
    (void)fd_write_all(*pipe_fd, text);
    if (ok)
        fd_close(pipe_fd);
    /* Whoever started it hears of a failure when this process has ended and its end of the pipe with it:
     * the next start must not find it. */
    *pipe_fd = -1;
}

void daemon_leave_terminal(int log_fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int out = log_fd >= 0 ? log_fd : null;

    if (null == -1)
        return;
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)close(null);
}

/* SPDX-License-Identifier: MIT */
#include "pool/spawn.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEEP_MAX = 16 };

/* What the child says through a pipe that exec closes, when it does not get that far. */
struct failure {
    int error;
    char step[60];
};

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &action, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int spawn_settle(pid_t master, const int *keep, size_t keep_size, const struct rlimit *files,
                 const struct account *account, const char **ret_step)
{
    int result;

    fd_close_others(keep, keep_size);
    reset_signals();
    if (files && setrlimit(RLIMIT_NOFILE, files) == -1) {
        *ret_step = "cannot set the limit of open files";
        return -errno;
    }
    result = account ? account_apply(account) : 0;
    if (result != 0) {
        *ret_step = "cannot change the user";
        return result;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1) {
        *ret_step = "cannot tie its life to the server's";
        return -errno;
    }
    if (getppid() != master)
        _exit(70);
    return 0;
}

/* Puts a descriptor at a standard place; equal numbers only lose their close-on-exec flag. */
static int place(int fd, int target)
{
    if (fd == target)
        return fd_set_cloexec(fd, false);
    return dup2(fd, target) == -1 ? -errno : 0;
}

static int place_all(const struct spawn *spawn, const char **ret_step)
{
    int in = spawn->in >= 0 ? spawn->in : open("/dev/null", O_RDONLY | O_CLOEXEC);
    int result = in == -1 ? -errno : place(in, STDIN_FILENO);

    *ret_step = "cannot place its standard descriptors";
    if (result == 0 && spawn->out >= 0)
        result = place(spawn->out, STDOUT_FILENO);
    if (result == 0 && spawn->err >= 0)
        result = place(spawn->err, STDERR_FILENO);
    for (size_t i = 0; result == 0 && i < spawn->keep_size; i++)
        result = fd_set_cloexec(spawn->keep[i], false);
    return result;
}

static const char *find_path(char *const *environ_list)
{
    for (; environ_list && *environ_list; environ_list++)
        if (strncmp(*environ_list, "PATH=", 5) == 0)
            return *environ_list + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* execvpe looks into the caller's PATH; here the child's own counts. */
static int run(const struct spawn *spawn)
{
    char full[4096];
    struct span path = span_of(find_path(spawn->environ));
    struct span program = span_of(spawn->argv[0]);
    int result = -ENOENT;

    if (span_find(program, '/') < program.size) {
        (void)execve(spawn->argv[0], spawn->argv, spawn->environ);
        return -errno;
    }
    while (path.data) {
        struct span folder = span_split(&path, ':');
        if (folder.size + program.size + 2 > sizeof full)
            continue;
        memcpy(full, folder.data, folder.size);
        full[folder.size] = '/';
        memcpy(full + folder.size + 1, program.data, program.size + 1);
        (void)execve(folder.size ? full : program.data, spawn->argv, spawn->environ);
        if (errno != ENOENT && errno != ENOTDIR)
            result = -errno;
    }
    return result;
}

static int become(const struct spawn *spawn, pid_t master, int report, const char **ret_step)
{
    int keep[KEEP_MAX + 1];
    int result = place_all(spawn, ret_step);

    if (result != 0)
        return result;
    for (size_t i = 0; i < spawn->keep_size; i++)
        keep[i] = spawn->keep[i];
    keep[spawn->keep_size] = report;
    result =
        spawn_settle(master, keep, spawn->keep_size + 1, spawn->files, spawn->account, ret_step);
    if (result != 0)
        return result;
    if (spawn->umask != UINT32_MAX)
        (void)umask(spawn->umask);
    *ret_step = "cannot enter the folder";
    if (spawn->folder && chdir(spawn->folder) == -1)
        return -errno;
    *ret_step = "cannot run the program";
    return run(spawn);
}

_Noreturn static void child(const struct spawn *spawn, pid_t master, int report)
{
    struct failure failure = {.error = 0};
    const char *step = "";

    failure.error = -become(spawn, master, report, &step);
    (void)strncpy(failure.step, step, sizeof failure.step - 1);
    (void)fd_write_all(report, span_make((const char *)&failure, sizeof failure));
    _exit(127);
}

static const char *const steps[] = {
    "cannot set the limit of open files",
    "cannot change the user",
    "cannot tie its life to the server's",
    "cannot place its standard descriptors",
    "cannot enter the folder",
    "cannot run the program",
};

/* The step as a string of this process. */
static const char *find_step(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (strcmp(steps[i], text) == 0)
            return steps[i];
    return "cannot start";
}

static int wait_for_exec(pid_t pid, int report, const char **ret_step)
{
    struct failure failure;
    ssize_t size = fd_read_all(report, (char *)&failure, sizeof failure);

    if (size == 0)
        return 0;
    while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
        ;
    *ret_step = "cannot start";
    if (size != (ssize_t)sizeof failure)
        return -EIO;
    failure.step[sizeof failure.step - 1] = '\0';
    *ret_step = find_step(failure.step);
    return failure.error > 0 ? -failure.error : -EIO;
}

pid_t spawn_start(const struct spawn *spawn, const char **ret_step)
{
    pid_t master = getpid();
    int report[2];
    pid_t pid;
    int result;

    CHECK(spawn->keep_size <= KEEP_MAX);
    *ret_step = "cannot fork";
    if (pipe2(report, O_CLOEXEC) == -1)
        return -errno;
    pid = fork();
    if (pid == 0)
        child(spawn, master, report[1]);
    result = pid == -1 ? -errno : 0;
    fd_close(&report[1]);
    if (result == 0)
        result = wait_for_exec(pid, report[0], ret_step);
    fd_close(&report[0]);
    return result == 0 ? pid : result;
}

int spawn_signal(pid_t pid, int signal)
{
    siginfo_t info;

    /* Only a child of ours answers here; a number that was given to somebody else does not. */
    if (pid <= 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == -1)
        return -ECHILD;
    return kill(pid, signal) == -1 ? -errno : 0;
}

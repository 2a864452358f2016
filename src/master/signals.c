/* SPDX-License-Identifier: MIT */
#include "master/signals.h"

#include "base/fd.h"
#include "base/log.h"
#include "master/commands.h"
#include "master/fronts.h"
#include "master/logs.h"
#include "master/phase.h"
#include "master/reload.h"
#include "master/strays.h"
#include "master/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const int handled[] = {SIGTERM, SIGINT,  SIGQUIT, SIGHUP, SIGUSR1,
                              SIGUSR2, SIGTTIN, SIGTTOU, SIGCHLD};

/* Signals that mean nothing here but would end the process. */
static const int harmless[] = {SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF,
                               SIGIO,   SIGPWR,  SIGSTKFLT, SIGXFSZ};

static bool is_of_pool(struct master *master, pid_t pid, int status)
{
    list_for_each (link, &master->instances)
        if (pool_child_ended(CONTAINER_OF(link, struct master_pool, link)->pool, pid, status))
            return true;
    return false;
}

/* Children by whomever they were started; unknown ones are reaped too (PID 1 in a container). */
static void reap(struct master *master)
{
    int status;
    pid_t pid;

    for (;;) {
        bool known;
        /* First what they said, so that a worker is known before its end is told. */
        list_for_each (link, &master->instances)
            pool_read_reports(CONTAINER_OF(link, struct master_pool, link)->pool);
        pid = waitpid(-1, &status, WNOHANG);
        if (pid == -1 && errno == EINTR)
            continue;
        if (pid <= 0)
            return;
        known = fronts_ended(master, pid, status) || is_of_pool(master, pid, status) ||
                upgrade_child_ended(master, pid, status) || strays_ended(master, pid);
        if (!known)
            log_debug("process %d ended, which is none of ours", (int)pid);
    }
}

/* Whether the terminal that we were started from is gone (its hang-up comes from the kernel, or from a
 * shell that dies with it). */
static bool is_terminal_gone(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd == -1)
        return true;
    (void)close(fd);
    return false;
}

static void hang_up(struct master *master, const struct signalfd_siginfo *info)
{
    bool vanished = (uint32_t)info->ssi_code == (uint32_t)SI_KERNEL || is_terminal_gone();

    if (master->has_terminal && !master->hup_ignored && vanished) {
        log_info("the terminal is gone");
        phase_stop(master);
        return;
    }
    logs_reopen(master);
    reload_ask(master, NULL);
}

static void adjust(struct master *master, int change)
{
    if (master->pool_size && master->phase == MASTER_RUNNING)
        pool_adjust(master->pools[0]->pool, change);
}

static void take(struct master *master, const struct signalfd_siginfo *info)
{
    switch (info->ssi_signo) {
    case SIGTERM:
    case SIGINT:
        phase_stop(master);
        break;
    case SIGQUIT:
        phase_stop_now(master, true);
        break;
    case SIGHUP:
        hang_up(master, info);
        break;
    case SIGUSR1:
        commands_restart_all(master);
        break;
    case SIGUSR2:
        upgrade_ask(master, NULL, NULL);
        break;
    case SIGTTIN:
        adjust(master, 1);
        break;
    case SIGTTOU:
        adjust(master, -1);
        break;
    case SIGCHLD:
        reap(master);
        break;
    default:
        break;
    }
}

static void on_signal(struct watch *watch, uint32_t events)
{
    struct master *master = CONTAINER_OF(watch, struct master, signal_watch);
    struct signalfd_siginfo info;

    (void)events;
    while (read(master->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        take(master, &info);
}

static bool has_terminal(const struct master *master)
{
    return !master->config->daemonize && !is_terminal_gone();
}

int signals_open(struct master *master)
{
    struct sigaction action;
    sigset_t set;

    master->hup_ignored = sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    master->has_terminal = has_terminal(master);
    (void)sigemptyset(&set);
    action = (struct sigaction){.sa_handler = SIG_DFL};
    for (size_t i = 0; i < ARRAY_LEN(handled); i++) {
        /* An ignored signal never reaches a descriptor. */
        (void)sigaction(handled[i], &action, NULL);
        (void)sigaddset(&set, handled[i]);
    }
    action.sa_handler = SIG_IGN;
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        (void)sigaction(harmless[i], &action, NULL);
    if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
        return -errno;
    master->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (master->signal_fd == -1)
        return -errno;
    return loop_watch(master->loop, &master->signal_watch, master->signal_fd, EPOLLIN, on_signal);
}

void signals_close(struct master *master)
{
    loop_unwatch(&master->signal_watch);
    fd_close(&master->signal_fd);
}

/* SPDX-License-Identifier: MIT */
#include "master/master.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "base/title.h"
#include "config/origin.h"
#include "master/binary.h"
#include "master/commands.h"
#include "master/daemon.h"
#include "master/fronts.h"
#include "master/inbox.h"
#include "master/instances.h"
#include "master/listeners.h"
#include "master/logs.h"
#include "master/marker.h"
#include "master/notify.h"
#include "master/owner.h"
#include "master/phase.h"
#include "master/place.h"
#include "master/signals.h"
#include "master/spool.h"
#include "master/strays.h"
#include "master/takeover.h"
#include "pool/account.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Descriptors 0, 1 and 2 must be taken, or a socket would become somebody's standard output. */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

static void raise_limit(struct master *master)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
        return;
    master->files = limit;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* A Ruby process that has loaded the application and then became this program left its child. */
static void take_handed(struct master *master)
{
    uint64_t fd;
    uint64_t pid;

    master->handed_control = -1;
    if (!num_decimal(span_of(environment_get(&master->environment, "LEAT_CONTROL_FD")), &fd) ||
        !num_decimal(span_of(environment_get(&master->environment, "LEAT_MOLD_PID")), &pid) ||
        fd > INT_MAX || pid == 0 || pid > INT_MAX || fd_set_cloexec((int)fd, true) != 0)
        return;
    master->handed_control = (int)fd;
    master->handed_pid = (pid_t)pid;
}

static char **copy_list(char *const *list)
{
    size_t size = 0;
    char **copy;

    while (list[size])
        size++;
    copy = must_alloc(size + 1, sizeof *copy);
    for (size_t i = 0; i < size; i++)
        copy[i] = must_copy(list[i]);
    return copy;
}

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

static void init(struct master *master, const struct master_options *options)
{
    struct edition *edition = edition_new(master, options->config);

    *master = (struct master){.started_ms = clock_ms(),
                              .outcome_pipe = -1,
                              .signal_fd = -1,
                              .control_fd = -1,
                              .counters_fd = -1,
                              .saved = options->saved,
                              .argv = copy_list(options->argv),
                              .cwd = must_copy(options->cwd),
                              .notify_fd = -1,
                              .budget = {.pressure_fd = -1},
                              .death_pipe = {-1, -1},
                              .pidfile = {.fd = -1}};
    list_init(&master->waiters);
    list_init(&master->stop_calls);
    list_init(&master->backtraces);
    list_init(&master->inquiries);
    list_init(&master->upgrade_calls);
    list_init(&master->strays);
    list_init(&master->listeners);
    list_init(&master->instances);
    task_init(&master->sweep_task, NULL);
    master->reload.entry = -1;
    task_init(&master->reload.task, NULL);
    list_init(&master->reload.calls);
    list_init(&master->reload.next_calls);
    master->options = config_options_copy(options->options);
    for (uint32_t i = 0; i < BOARD_FRONTS; i++) {
        master->fronts[i].channel = -1;
        list_init(&master->fronts[i].parcels);
    }
    environment_copy(&master->environment, options->environ_list);
    master->binary =
        binary_find(options->argv[0], master->cwd, environment_get(&master->environment, "PATH"));
    take_handed(master);
    fill_standard_descriptors();
    raise_limit(master);
    edition_set(master, edition);
    edition_unref(edition);
}

static int open_system(struct master *master, struct faults *faults)
{
    int result;

    notify_open(master);
    /* Orphans of ours, workers among them, come to us and not to PID 1. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    master->loop = loop_new();
    result = master->loop ? signals_open(master) : -ENOMEM;
    if (master->saved)
        takeover_process(master);
    else if (result == 0 && pipe2(master->death_pipe, O_CLOEXEC) == -1)
        result = -errno;
    if (result != 0)
        faults_add(faults, NULL, 0, 0, NULL, "cannot start: %s", strerror(-result));
    return result == 0 ? 0 : -1;
}

static int take_pidfile(struct master *master, struct faults *faults)
{
    const struct config *config = master->config;
    pid_t holder = 0;

    if ((master->saved && takeover_pid_file(master)) || !config->pid)
        return 0;
    switch (pidfile_take(config->pid, &master->pidfile, &holder, faults)) {
    case PIDFILE_TAKEN:
        faults_add(faults, NULL, 0, 0, NULL, "already running as PID %d (%s)", (int)holder,
                   config->pid);
        return -1;
    case PIDFILE_FAILED:
        /* A default place that cannot be written is gone without; a named one was meant. */
        if (config->pid_named)
            return -1;
        log_debug("no PID file: %s", faults->items[faults->size - 1].reason);
        faults_done(faults);
        return 0;
    case PIDFILE_STALE:
        log_warn("PID file %s was left over from a server that is gone; it is ours now",
                 config->pid);
        return 0;
    case PIDFILE_OWNED:
        break;
    }
    return 0;
}

static int find_account(struct master *master, struct faults *faults)
{
    char path[PATH_MAX];

    if (owner_find(master->config, &master->account, path, faults) != 0)
        return -1;
    if (master->account.uid == 0)
        log_warn("everything runs as root: %s is root's and no user is set", path);
    return 0;
}

static int open_listeners(struct master *master, struct faults *faults)
{
    if (master->saved)
        takeover_listeners(master);
    return listeners_open(master->edition, faults);
}

static int open_logs(struct master *master, struct faults *faults)
{
    if (master->saved)
        takeover_logs(master->edition);
    if (logs_open(master->edition, faults) != 0)
        return -1;
    if (master->config->daemonize)
        daemon_leave_terminal(master->edition->log_fd);
    log_to(master->edition->log_fd);
    return 0;
}

/* The default folder does without: a server whose bodies are small may stand on a read-only disk. */
static int open_spool(const struct master *master, struct faults *faults)
{
    const char *folder = master->config->spool;
    int result = folder ? spool_prepare(folder, &master->account) : 0;

    if (result == 0)
        return 0;
    if (origin_find(master->config, "spool")) {
        faults_add(faults, NULL, 0, 0, "spool", "%s: %s", folder, strerror(-result));
        return -1;
    }
    log_warn("spool=%s %s: request bodies over 32 kB are answered 503", folder, strerror(-result));
    return 0;
}

static int open_control(struct master *master, struct faults *faults)
{
    struct control_options options = {.loop = master->loop,
                                      .listener = -1,
                                      .also = (uid_t)-1,
                                      .on_command = commands_run,
                                      .context = master};

    if (!(master->saved && takeover_place(master)) && place_open(master, faults) != 0)
        return -1;
    options.listener = master->control_fd;
    if (master->config->user)
        options.also = master->account.uid;
    master->control = control_new(&options);
    if (!master->control)
        faults_add(faults, NULL, 0, 0, "control", "cannot be watched");
    return master->control ? 0 : -1;
}

static struct master_pool *make_pool(struct edition *edition, uint32_t number,
                                     struct faults *faults)
{
    struct master_pool *former =
        edition->master->saved ? takeover_find_pool(edition, number) : NULL;

    return former ? former : instances_new(edition, number, faults);
}

static int make_pools(struct master *master, struct faults *faults)
{
    struct edition *edition = master->edition;
    uint32_t size = edition->config->pool_size;

    if (size && instances_find_library(master, faults) != 0)
        return -1;
    budget_open(&master->budget, master->loop, edition->config->memory_total);
    if (master->saved)
        takeover_pools(master);
    for (; edition->pool_size < size; edition->pool_size++) {
        edition->pools[edition->pool_size] = make_pool(edition, edition->pool_size, faults);
        if (!edition->pools[edition->pool_size])
            return -1;
        master->pool_size++;
    }
    return 0;
}

/* What is wrong with one of several applications is its own trouble, unless it is wrong with all. */
static int start_pools(struct master *master, struct faults *faults)
{
    size_t *first = must_alloc(master->pool_size + 1, sizeof *first);
    bool any = master->pool_size == 0;

    for (uint32_t i = 0; i < master->pool_size; i++) {
        first[i] = faults->size;
        if (!master->pools[i]->settled && pool_start(master->pools[i]->pool, faults) != 0)
            continue;
        first[i] = SIZE_MAX;
        any = true;
    }
    for (uint32_t i = 0; i < master->pool_size && any; i++)
        if (first[i] != SIZE_MAX)
            pool_fail_start(master->pools[i]->pool, &faults->items[first[i]]);
    free(first);
    return any ? 0 : -1;
}

/* Everything that can be refused is asked for before an application loads. */
static int open_all(struct master *master, struct faults *faults)
{
    if (open_system(master, faults) != 0 || take_pidfile(master, faults) != 0 ||
        open_listeners(master, faults) != 0 || find_account(master, faults) != 0 ||
        open_logs(master, faults) != 0 || open_spool(master, faults) != 0 ||
        open_control(master, faults) != 0 || make_pools(master, faults) != 0)
        return -1;
    if (master->saved)
        takeover_counters(master);
    if (fronts_prepare(master, faults) != 0)
        return -1;
    edition_finish(master->edition);
    if (start_pools(master, faults) != 0)
        return -1;
    if (master->saved) {
        takeover_resume(master);
        return 0;
    }
    return fronts_start(master->edition, faults) >= 0 ? 0 : -1;
}

static void print_faults(struct master *master, struct faults *faults)
{
    struct buf text = {.size = 0};
    char line[2048];

    for (size_t i = 0; i < faults->size; i++) {
        (void)fault_format(&faults->items[i], line, sizeof line);
        (void)buf_printf(&text, "leat: %s\n", line);
    }
    daemon_tell(&master->outcome_pipe, false, buf_span(&text));
    buf_done(&text);
}

/* Of the instances nothing but the references is left. */
static void close_edition(struct master *master)
{
    if (master->edition->log_fd >= 0)
        log_to(STDERR_FILENO);
    master->edition->pool_size = 0;
    edition_unref(master->edition);
    listeners_close(master);
}

static void close_all(struct master *master)
{
    master->phase = MASTER_ENDED;
    instances_done(master);
    budget_close(&master->budget);
    timer_stop(&master->tick);
    timer_stop(&master->front_timer);
    timer_stop(&master->stop_timer);
    strays_done(master);
    notify_close(master);
    place_close(master);
    close_edition(master);
    pidfile_give(&master->pidfile);
    commands_stopped(master);
    control_free(master->control);
    fd_close(&master->control_fd);
    fronts_done(master);
    signals_close(master);
    loop_free(master->loop);
    fd_close(&master->death_pipe[0]);
    fd_close(&master->death_pipe[1]);
    account_done(&master->account);
    environment_done(&master->environment);
    edition_forget_names(&master->counted_pools);
    edition_forget_names(&master->counted_sites);
    config_options_free(master->options);
    free(master->library);
    free(master->library_version);
    free(master->binary);
    free(master->cwd);
    free_list(master->argv);
}

static void run(struct master *master)
{
    struct faults faults = {.size = 0};

    if (open_all(master, &faults) == 0) {
        marker_start(master);
        notify_start(master);
        loop_run(master->loop);
    } else {
        master->exit_status = 1;
        print_faults(master, &faults);
        /* What was started already ends with us: its pipe closes and its parent is gone. */
        phase_abandon(master);
    }
    faults_done(&faults);
}

int master_run(const struct master_options *options)
{
    struct master *master = must_alloc(1, sizeof *master);
    int status;

    init(master, options);
    log_name("master");
    /* Who hands over a loaded application has left the terminal already when it asks for -d. */
    if (master->config->daemonize && !master->handed_pid && !master->saved) {
        int result = daemon_start();
        if (result < 0) {
            fprintf(stderr, "leat: cannot go into the background: %s\n", strerror(-result));
            environment_done(&master->environment);
            free(master);
            return 1;
        }
        master->outcome_pipe = result;
    }
    title_init(options->argv, options->environ_list);
    title_set("leat: master starting");
    run(master);
    status = master->exit_status;
    if (status == 0 && master->cut)
        status = 4;
    if (status != 1)
        log_info("stopped: exit status %d", status);
    close_all(master);
    free(master);
    return status;
}

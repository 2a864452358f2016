/* SPDX-License-Identifier: MIT */
#include "master/fronts.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/title.h"
#include "board/audit.h"
#include "master/inbox.h"
#include "master/phase.h"
#include "master/releases.h"
#include "master/reload.h"
#include "master/requests.h"
#include "master/retired.h"
#include "master/takeover.h"
#include "pool/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STABLE_MS = 10000,       /* one that lived so long has not crashed "again" */
    STABLE_KILLED_MS = 1000, /* SIGKILL comes from outside and is no crash */
    PAUSE_MAX_MS = 4000,
    HELD_MS = 100, /* how often held entries are looked at while none is free */
    DESCRIPTOR_BACKLOG = 128
};

/* Why workers end: the words of pool/exit.def, for the fronts, who may not know it. */
static const char *const exit_words[] = {
#define ROW(constant, word) word,
#include "pool/exit.def"
#undef ROW
};

_Static_assert(ARRAY_LEN(exit_words) <= FRONT_EXITS, "counters have no room for every reason");

/* A file, so that the totals outlive this program, too: an upgrade hands them on. */
static int open_counters(struct master *master)
{
    void *memory;

    if (master->counters_fd == -1) {
        master->counters_fd = memfd_create("leat-counters", MFD_CLOEXEC);
        if (master->counters_fd == -1 ||
            ftruncate(master->counters_fd, sizeof *master->counters) == -1)
            return -errno;
    }
    memory = mmap(NULL, sizeof *master->counters, PROT_READ | PROT_WRITE, MAP_SHARED,
                  master->counters_fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    master->counters = memory;
    return 0;
}

int fronts_prepare(struct master *master, struct faults *faults)
{
    int result = open_counters(master);

    if (result != 0)
        faults_add(faults, NULL, 0, 0, NULL, "cannot make the counters: %s", strerror(-result));
    return result == 0 ? 0 : -1;
}

void fronts_done(struct master *master)
{
    if (master->counters)
        (void)munmap(master->counters, sizeof *master->counters);
    fd_close(&master->counters_fd);
}

uint32_t fronts_size(const struct master *master)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        count += master->fronts[i].pid != 0;
    return count;
}

bool fronts_accept(const struct master *master)
{
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid && master->fronts[i].accepting)
            return true;
    return false;
}

bool fronts_are_told(const struct master *master)
{
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid && !list_is_empty(&master->fronts[i].parcels))
            return false;
    return true;
}

/* ---- Messages ---- */

static void free_parcel(struct master_parcel *parcel)
{
    list_remove(&parcel->link);
    for (size_t i = 0; i < parcel->count; i++)
        fd_close(&parcel->fds[i]);
    free(parcel);
}

static void send_parcels(struct master_front *front)
{
    list_for_each_safe (link, &front->parcels) {
        struct master_parcel *parcel = CONTAINER_OF(link, struct master_parcel, link);
        if (front_message_send(front->channel, &parcel->message, parcel->fds, parcel->count) ==
            -EAGAIN) {
            (void)loop_rewatch(&front->watch, EPOLLIN | EPOLLOUT);
            return;
        }
        free_parcel(parcel);
    }
    (void)loop_rewatch(&front->watch, EPOLLIN);
}

static void keep_parcel(struct master_front *front, const struct front_message *message,
                        const int *fds, size_t count)
{
    struct master_parcel *parcel = must_alloc(1, sizeof *parcel);

    *parcel = (struct master_parcel){.message = *message, .count = count};
    for (size_t i = 0; i < count; i++)
        parcel->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
    list_init(&parcel->link);
    list_push_back(&front->parcels, &parcel->link);
    (void)loop_rewatch(&front->watch, EPOLLIN | EPOLLOUT);
}

void fronts_tell(struct master_front *front, const struct front_message *message, const int *fds,
                 size_t count)
{
    if (!front->pid || front->deaf)
        return;
    if (!list_is_empty(&front->parcels) ||
        front_message_send(front->channel, message, fds, count) == -EAGAIN)
        keep_parcel(front, message, fds, count);
}

void fronts_tell_all(struct master *master, const struct front_message *message, const int *fds,
                     size_t count)
{
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        fronts_tell(&master->fronts[i], message, fds, count);
}

uint32_t fronts_tell_users(const struct master_pool *pool, const struct front_message *message)
{
    struct master *master = pool->master;
    struct front_message addressed = *message;
    uint32_t told = 0;

    for (uint32_t i = 0; i < BOARD_FRONTS; i++) {
        struct master_front *front = &master->fronts[i];
        int64_t number = front->pid && !front->mute ? edition_find_pool(front->edition, pool) : -1;
        if (number < 0)
            continue;
        addressed.pool = (uint32_t)number;
        fronts_tell(front, &addressed, NULL, 0);
        told++;
    }
    return told;
}

static void on_channel(struct watch *watch, uint32_t events)
{
    struct master_front *front = CONTAINER_OF(watch, struct master_front, watch);
    struct front_message message;
    int fds[2];

    while (front_message_receive(front->channel, &message, fds) == 1) {
        if (!front->mute)
            inbox_take(front->master, front, &message, fds[0]);
        fd_close(&fds[0]);
        fd_close(&fds[1]);
    }
    if (events & EPOLLOUT)
        send_parcels(front);
    /* Its end is told by waitid alone; the broken channel must not keep the loop busy. */
    if (events & (EPOLLHUP | EPOLLERR))
        loop_unwatch(&front->watch);
}

/* ---- Starting ---- */

/* What workers have let go of meanwhile. */
static void audit_entries(struct master *master)
{
    list_for_each (link, &master->instances)
        for (uint32_t entry = 0; entry < BOARD_FRONTS; entry++)
            if (!master->fronts[entry].pid)
                (void)audit_front(
                    &CONTAINER_OF(link, struct master_pool, link)->pool->instance.board, entry);
}

/* The lowest entry that is free in every board, or -1. */
static int find_entry(const struct edition *edition)
{
    for (int entry = 0; entry < BOARD_FRONTS; entry++) {
        bool is_free = edition->master->fronts[entry].pid == 0;
        for (uint32_t i = 0; i < edition->pool_size && is_free; i++)
            is_free = atomic_load(&edition->front_pools[i].board->fronts[entry].life) == BOARD_FREE;
        if (is_free)
            return entry;
    }
    return -1;
}

bool fronts_have_room(const struct edition *edition)
{
    audit_entries(edition->master);
    return find_entry(edition) >= 0;
}

static void descriptor_path(const struct master_pool *pool, uint32_t entry, char *out, size_t room)
{
    (void)snprintf(out, room, "%s.%u", pool->runtime, entry);
}

/* The socket RUNTIME.<entry>, reachable for the pool's user only. */
static int open_descriptor_listener(const struct master_pool *pool, uint32_t entry)
{
    const struct mold *mold = pool->pool->current;
    struct listen_options options = {
        .backlog = DESCRIPTOR_BACKLOG, .mode = 0600, .uid = -1, .gid = -1, .packets = true};
    char text[BOARD_RUNTIME_BYTES + 16] = "unix:";
    struct address address;
    const char *reason;

    if (mold && mold->account.change)
        options.uid = (long)mold->account.uid;
    descriptor_path(pool, entry, text + 5, sizeof text - 5);
    if (!address_parse(span_of(text), &address))
        return -ENAMETOOLONG;
    return listen_open(&address, &options, &reason);
}

static void close_descriptor_listeners(const struct edition *edition, int *fds)
{
    for (uint32_t i = 0; i < edition->pool_size; i++)
        fd_close(&fds[i]);
    free(fds);
}

static int *open_descriptor_listeners(const struct edition *edition, uint32_t entry,
                                      struct faults *faults)
{
    int *fds = must_alloc(edition->pool_size + 1, sizeof *fds);

    for (uint32_t i = 0; i < edition->pool_size; i++)
        fds[i] = -1;
    for (uint32_t i = 0; i < edition->pool_size; i++) {
        int fd = open_descriptor_listener(edition->pools[i], entry);
        if (fd >= 0) {
            fds[i] = fd;
            continue;
        }
        faults_add(faults, NULL, 0, 0, NULL, "cannot listen on %s.%u: %s",
                   edition->pools[i]->runtime, entry, strerror(-fd));
        close_descriptor_listeners(edition, fds);
        return NULL;
    }
    return fds;
}

static void set_life(const struct edition *edition, uint32_t entry, uint32_t life, pid_t pid)
{
    for (uint32_t i = 0; i < edition->pool_size; i++) {
        struct board_front *place = &edition->front_pools[i].board->fronts[entry];
        atomic_store(&place->pid, (uint32_t)pid);
        atomic_store(&place->life, life);
    }
}

void fronts_restore(const struct master *master, const struct board *board)
{
    for (uint32_t entry = 0; entry < BOARD_FRONTS; entry++) {
        const struct master_front *front = &master->fronts[entry];
        struct board_front *place = &board->fronts[entry];
        bool serves = false;

        for (uint32_t i = 0; front->pid && i < front->edition->pool_size; i++)
            serves |= front->edition->front_pools[i].board == board;
        atomic_store(&place->pid, serves ? (uint32_t)front->pid : 0);
        atomic_store(&place->life, serves ? BOARD_ALIVE : BOARD_FREE);
    }
}

static void add_fd(int *fds, size_t *size, int fd)
{
    if (fd > STDERR_FILENO)
        fds[(*size)++] = fd;
}

/* Every descriptor a front keeps, besides the standard ones. */
static int *list_kept(const struct front_options *options, size_t *ret_size)
{
    size_t bells = (size_t)BOARD_FRONTS * options->loops;
    int *fds =
        must_alloc(options->listener_size + options->pool_size * (bells + 1) + 8, sizeof *fds);
    size_t size = 0;

    for (uint32_t i = 0; i < options->listener_size; i++)
        add_fd(fds, &size, options->listeners[i].fd);
    for (uint32_t i = 0; i < options->pool_size; i++) {
        add_fd(fds, &size, options->descriptor_listeners[i]);
        for (size_t bell = 0; bell < bells; bell++)
            add_fd(fds, &size, options->pools[i].board->bells[bell]);
    }
    add_fd(fds, &size, options->channel);
    add_fd(fds, &size, options->death_pipe);
    add_fd(fds, &size, options->access_log_fd);
    add_fd(fds, &size, log_fd());
    *ret_size = size;
    return fds;
}

/* A front outlives signals that a terminal or a service manager sends to every process at once: master
 * tells it when to end. */
static void ignore_signals(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGTTIN, SIGTTOU, SIGPIPE, SIGALRM};

    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
}

_Noreturn static void run_front(const struct edition *edition, pid_t parent,
                                const struct front_options *options)
{
    const char *step = "";
    size_t size;
    int *fds = list_kept(options, &size);
    int result;

    log_name("front");
    log_to(edition->log_fd);
    title_set("leat: front starting");
    result = spawn_settle(parent, fds, size, NULL, &edition->master->account, &step);
    if (result != 0) {
        log_error("front %s: %s; it ends", step, strerror(-result));
        _exit(1);
    }
    ignore_signals();
    _exit(front_run(options));
}

static int fork_front(struct edition *edition, uint32_t entry, int *descriptors, int pair[2])
{
    struct master *master = edition->master;
    struct front_options options = {.config = edition->config,
                                    .entry = entry,
                                    .loops = edition->loops,
                                    .listeners = edition->front_listeners,
                                    .listener_size = edition->listener_size,
                                    .pools = edition->front_pools,
                                    .pool_size = edition->pool_size,
                                    .site_places = edition->site_places,
                                    .descriptor_listeners = descriptors,
                                    .channel = pair[1],
                                    .death_pipe = master->death_pipe[0],
                                    .access_log_fd = edition->access_log_fd,
                                    .admin_listener = edition->admin_listener,
                                    .counters = master->counters,
                                    .exit_words = exit_words,
                                    .exit_size = ARRAY_LEN(exit_words)};
    struct master_front *front = &master->fronts[entry];
    pid_t parent = getpid();
    pid_t pid;

    set_life(edition, entry, BOARD_ALIVE, 0);
    pid = fork();
    if (pid == 0)
        run_front(edition, parent, &options);
    if (pid == -1) {
        set_life(edition, entry, BOARD_FREE, 0);
        return -errno;
    }
    set_life(edition, entry, BOARD_ALIVE, pid);
    *front = (struct master_front){.master = master,
                                   .pid = pid,
                                   .edition = edition_ref(edition),
                                   .channel = pair[0],
                                   .started_ms = clock_ms()};
    list_init(&front->parcels);
    return loop_watch(master->loop, &front->watch, front->channel, EPOLLIN, on_channel);
}

/* The new front learns what the former ones were told. */
static void tell_state(struct master_front *front)
{
    for (uint32_t i = 0; i < front->edition->pool_size; i++) {
        struct front_message message;
        inbox_pool_state(front->edition->pools[i], &message);
        message.pool = i;
        fronts_tell(front, &message, NULL, 0);
        releases_tell(front->edition->pools[i], i, front);
    }
    if (front->master->phase == MASTER_DELAY)
        fronts_tell(front, &(struct front_message){.kind = FRONT_LEAVE}, NULL, 0);
}

int fronts_start(struct edition *edition, struct faults *faults)
{
    struct master *master = edition->master;
    int entry = find_entry(edition);
    int pair[2];
    int *descriptors;
    int result;

    if (entry < 0) {
        faults_add(faults, NULL, 0, 0, NULL, "workers still hold requests of all former fronts");
        return -1;
    }
    descriptors = open_descriptor_listeners(edition, (uint32_t)entry, faults);
    if (!descriptors)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == -1) {
        faults_add(faults, NULL, 0, 0, NULL, "cannot open its channel: %s", strerror(errno));
        close_descriptor_listeners(edition, descriptors);
        return -1;
    }
    result = fork_front(edition, (uint32_t)entry, descriptors, pair);
    fd_close(&pair[1]);
    close_descriptor_listeners(edition, descriptors);
    if (result != 0) {
        faults_add(faults, NULL, 0, 0, NULL, "cannot fork a front: %s", strerror(-result));
        if (!master->fronts[entry].pid)
            fd_close(&pair[0]);
        return -1;
    }
    tell_state(&master->fronts[entry]);
    return entry;
}

int fronts_adopt(struct master *master, uint32_t entry, const struct master_front *former)
{
    struct master_front *front = &master->fronts[entry];

    *front = *former;
    front->master = master;
    list_init(&front->parcels);
    return loop_watch(master->loop, &front->watch, front->channel, EPOLLIN, on_channel);
}

/* ---- Ending ---- */

/* Whether a front of the current edition is there; others leave, or are only tried. */
static bool has_server(const struct master *master)
{
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid && master->fronts[i].edition == master->edition &&
            !master->fronts[i].retiring)
            return true;
    return false;
}

static void on_front_due(struct timer *timer)
{
    struct master *master = CONTAINER_OF(timer, struct master, front_timer);
    struct faults faults = {.size = 0};

    audit_entries(master);
    if (master->phase >= MASTER_DRAINING || has_server(master))
        return;
    if (!fronts_have_room(master->edition))
        (void)retired_make_room(master);
    if (fronts_start(master->edition, &faults) >= 0)
        return;
    if (log_allow(span_of("front-start"), 10, NULL))
        log_error("no front can be started: %s; tried again", faults.items[0].reason);
    faults_done(&faults);
    timer_set(master->loop, &master->front_timer, HELD_MS, on_front_due);
}

static void audit_board(struct master_pool *mine, uint32_t entry)
{
    const struct board *board = &mine->pool->instance.board;
    char path[BOARD_RUNTIME_BYTES + 16];

    descriptor_path(mine, entry, path, sizeof path);
    (void)unlink(path);
    atomic_store(&board->fronts[entry].life, BOARD_DEAD);
    (void)audit_front(board, entry);
    for (uint32_t worker = 0; worker < board->shape.workers; worker++)
        pool_audited(mine->pool, worker);
}

/* Gives back what it held, in its own boards and as one of those who audit dead workers. */
static void audit(struct master *master, const struct edition *edition, uint32_t entry)
{
    for (uint32_t i = 0; i < edition->pool_size; i++)
        audit_board(edition->pools[i], entry);
    memset(&master->counters->gauges[entry], 0, sizeof master->counters->gauges[entry]);
}

void fronts_renew(struct master *master)
{
    on_front_due(&master->front_timer);
}

static void forget(struct master_front *front)
{
    loop_unwatch(&front->watch);
    fd_close(&front->channel);
    list_for_each_safe (link, &front->parcels)
        free_parcel(CONTAINER_OF(link, struct master_parcel, link));
    front->pid = 0;
    front->accepting = front->mute = front->deaf = false;
    front->edition = NULL;
}

static void replace(struct master *master, const struct master_front *front, int wait_status)
{
    bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    bool again = clock_ms() - front->started_ms < (killed ? STABLE_KILLED_MS : STABLE_MS);
    uint64_t pause_ms;
    char how[100];

    master->front_crashes = again ? master->front_crashes + 1 : 1;
    pause_ms = master->front_crashes < 2 ? 0 : UINT64_C(500) << (master->front_crashes - 1);
    if (pause_ms > PAUSE_MAX_MS || master->front_crashes > 8)
        pause_ms = PAUSE_MAX_MS;
    log_error("front %s; a new one is started %s%s", exit_describe(wait_status, how, sizeof how),
              pause_ms ? "after a pause" : "at once",
              master->front_crashes >= 3 ? "; repeated crashes may be an attack" : "");
    if (pause_ms == 0)
        on_front_due(&master->front_timer);
    else
        timer_set(master->loop, &master->front_timer, pause_ms, on_front_due);
}

/* One that others have replaced, or that was only tried. */
static void note_end(const struct master_front *front, pid_t pid, int wait_status)
{
    char how[100];

    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0)
        log_error("front %d %s; others serve", (int)pid,
                  exit_describe(wait_status, how, sizeof how));
    else
        log_debug("front %d has retired after %.1f s", (int)pid,
                  (double)(clock_ms() - front->started_ms) / 1000);
}

bool fronts_ended(struct master *master, pid_t pid, int wait_status)
{
    for (uint32_t entry = 0; entry < BOARD_FRONTS; entry++) {
        struct master_front *front = &master->fronts[entry];
        struct edition *edition = front->edition;
        bool was_current = edition == master->edition && !front->retiring;
        if (front->pid != pid)
            continue;
        /* What it said before it ended still counts. */
        on_channel(&front->watch, 0);
        requests_front_gone(master, front);
        forget(front);
        audit(master, edition, entry);
        if (master->phase == MASTER_STARTING && !front->was_accepting)
            phase_fail_start(master, "the front process ended before it took connections");
        else if (master->phase >= MASTER_DRAINING)
            phase_front_gone(master);
        else if (was_current)
            replace(master, front, wait_status);
        else
            note_end(front, pid, wait_status);
        reload_front_ended(master, edition);
        edition_unref(edition);
        takeover_front_ended(master);
        return true;
    }
    return false;
}

void fronts_kill(struct master *master)
{
    timer_stop(&master->front_timer);
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid)
            (void)spawn_signal(master->fronts[i].pid, SIGKILL);
}

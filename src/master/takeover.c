/* SPDX-License-Identifier: MIT */
#include "master/takeover.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "config/keep.h"
#include "master/commands.h"
#include "master/fronts.h"
#include "master/instances.h"
#include "master/listeners.h"
#include "master/retired.h"
#include "master/strays.h"
#include "master/upgrade.h"
#include "pool/adopt.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ITEMS_MAX = 4096 };

/* "run:7" */
static enum takeover read_order(struct span order, int *ret_fd)
{
    struct span word = span_split(&order, ':');
    uint64_t fd;

    if (!num_decimal(order, &fd) || fd <= STDERR_FILENO || fd > INT_MAX)
        return TAKEOVER_BROKEN;
    *ret_fd = (int)fd;
    if (span_is(word, TAKEOVER_CHECK))
        return TAKEOVER_ASKED;
    return span_is(word, TAKEOVER_RUN) ? TAKEOVER_ORDERED : TAKEOVER_BROKEN;
}

/* The whole file, which nobody else writes any more. */
static struct saved *read_state(int fd)
{
    struct stat info;
    struct saved *saved = NULL;
    char *text;
    unsigned line;

    if (fstat(fd, &info) == -1 || info.st_size < 1 || info.st_size > SAVED_BYTES_MAX)
        return NULL;
    text = must_alloc(1, (size_t)info.st_size);
    if (fd_read_all(fd, text, (size_t)info.st_size) == info.st_size)
        saved = saved_read(span_make(text, (size_t)info.st_size), &line);
    free(text);
    return saved;
}

enum takeover takeover_find(struct saved **ret_saved)
{
    const char *order = getenv(TAKEOVER_VARIABLE);
    enum takeover kind;
    int fd = -1;

    if (!order)
        return TAKEOVER_NONE;
    kind = read_order(span_of(order), &fd);
    (void)unsetenv(TAKEOVER_VARIABLE);
    if (kind == TAKEOVER_BROKEN)
        return kind;
    *ret_saved = read_state(fd);
    (void)close(fd);
    return *ret_saved ? kind : TAKEOVER_BROKEN;
}

/* Boards and processes of every pool are looked at when it is too late to refuse; here only whether the
 * state is one that this build can read at all. */
bool takeover_check(const struct config *config, struct saved *saved, struct faults *faults)
{
    struct saved_in in = saved_root(saved);

    (void)config;
    if (saved_get(&in, "death_write_fd") && saved_get(&in, "version"))
        return true;
    faults_add(faults, NULL, 0, 0, NULL, "this is no state of a running server");
    return false;
}

/* ---- What master has ---- */

static void take_text(const struct saved_in *in, const char *name, char *out, size_t room)
{
    const char *value = saved_get(in, name);

    (void)snprintf(out, room, "%s", value ? value : "");
}

void takeover_process(struct master *master)
{
    struct saved_in in = saved_root(master->saved);

    master->started_ms = saved_number(&in, "started_ms", UINT64_MAX, master->started_ms);
    master->files.rlim_cur = saved_number(&in, "files_soft", UINT64_MAX, master->files.rlim_cur);
    master->files.rlim_max = saved_number(&in, "files_hard", UINT64_MAX, master->files.rlim_max);
    master->hup_ignored = saved_number(&in, "hup_ignored", 1, 0) == 1;
    master->instance_size = (uint32_t)saved_number(&in, "instances", UINT32_MAX, 0);
    master->edition->number = (uint32_t)saved_number(&in, "edition", UINT32_MAX, 1);
    master->death_pipe[0] = saved_fd(&in, "death_read_fd");
    master->death_pipe[1] = saved_fd(&in, "death_write_fd");
}

bool takeover_pid_file(struct master *master)
{
    struct saved_in root = saved_root(master->saved);
    struct saved_in in = saved_section(&root, "pid_file");
    const char *path = saved_get(&in, "path");
    int fd = path ? saved_fd(&in, "fd") : -1;

    if (fd == -1)
        return false;
    master->pidfile = (struct pidfile){.path = must_copy(path), .fd = fd};
    return true;
}

void takeover_listeners(struct master *master)
{
    struct saved_in root = saved_root(master->saved);

    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        struct saved_in in = saved_item(&root, "listener", i);
        const char *text = saved_get(&in, "address");
        struct master_listener listener = {
            .inherited = saved_number(&in, "inherited", 1, 0) == 1,
            .device = (dev_t)saved_number(&in, "device", UINT64_MAX, 0),
            .inode = (ino_t)saved_number(&in, "inode", UINT64_MAX, 0)};
        if (!text)
            return;
        listener.fd = saved_fd(&in, "fd");
        if (listener.fd >= 0 && address_parse(span_of(text), &listener.address))
            (void)listeners_adopt(master, &listener);
    }
}

/* The open file goes on if the configuration still names it: it may have been moved away meanwhile, and
 * nobody has asked for another one. */
static int take_file(const struct saved_in *in, const char *name, const char *path)
{
    struct saved_in file = saved_section(in, name);
    const char *former = saved_get(&file, "path");

    return path && former && strcmp(path, former) == 0 ? saved_fd(&file, "fd") : -1;
}

void takeover_logs(struct edition *edition)
{
    const struct config *config = edition->config;
    struct saved_in in = saved_root(edition->master->saved);

    edition->log_fd = take_file(&in, "log", config->log);
    if (config->access_log.format != CONFIG_LOG_OFF)
        edition->access_log_fd = take_file(&in, "access_log", config->access_log.file);
}

bool takeover_place(struct master *master)
{
    struct saved_in root = saved_root(master->saved);
    struct saved_in in = saved_section(&root, "control");

    master->control_fd = saved_fd(&in, "fd");
    if (master->control_fd == -1)
        return false;
    take_text(&in, "run", master->run, sizeof master->run);
    take_text(&in, "path", master->socket_path, sizeof master->socket_path);
    for (uint32_t i = 0; i < ARRAY_LEN(master->links); i++) {
        struct saved_in link = saved_item(&in, "link", i);
        take_text(&link, "path", master->links[i], sizeof master->links[i]);
    }
    return true;
}

static void take_names(struct master_names *names, const struct saved_in *in, const char *name)
{
    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        struct saved_in item = saved_item(in, name, i);
        const char *text = saved_get(&item, "name");
        if (!text)
            return;
        names->items = must_resize(names->items, (names->size + 1) * sizeof *names->items);
        names->items[names->size++] = must_copy(text);
    }
}

/* Of another size they are of another shape: then all is counted anew. */
void takeover_counters(struct master *master)
{
    struct saved_in root = saved_root(master->saved);
    struct saved_in in = saved_section(&root, "counters");
    int fd = saved_fd(&in, "fd");
    struct stat info;

    if (saved_number(&in, "bytes", UINT32_MAX, 0) != sizeof *master->counters || fd == -1 ||
        fstat(fd, &info) == -1 || info.st_size != (off_t)sizeof *master->counters) {
        fd_close(&fd);
        return;
    }
    master->counters_fd = fd;
    take_names(&master->counted_pools, &in, "pool");
    take_names(&master->counted_sites, &in, "site");
}

/* ---- Pools ---- */

static const struct config_pool *find_settings(const struct config *config, const char *name)
{
    for (uint32_t i = 0; i < config->pool_size; i++)
        if (strcmp(config->pools[i]->name, name) == 0)
            return config->pools[i];
    return NULL;
}

/* What a pool that the configuration does not know any more needs to come to its end; nothing is started
 * by these. */
static const struct config_pool *imagine_settings(struct config *config, const char *name)
{
    struct config_pool *settings = keep_zero(&config->arena, sizeof *settings);

    *settings = (struct config_pool){.name = keep_text(&config->arena, span_of(name)),
                                     .app = config->folder,
                                     .workers_min = 1,
                                     .workers_max = 1,
                                     .threads = 1,
                                     .start_timeout_ms = 90000,
                                     .umask = CONFIG_AUTO};
    return settings;
}

static struct master_pool *take_pool(struct edition *edition, const struct saved_in *in)
{
    const char *name = saved_get(in, "name");
    const struct config_pool *settings = find_settings(edition->config, name);
    struct faults faults = {.size = 0};
    struct master_pool *mine = NULL;

    if (!settings)
        settings = imagine_settings(edition->held->config, name);
    if (pool_is_adoptable(in))
        mine = instances_adopt(edition, settings, in, &faults);
    if (!mine) {
        log_warn("upgrade: pool=%s gets new workers: %s", name,
                 faults.size ? faults.items[0].reason : "its board has another layout");
        strays_add(edition->master, in);
    }
    faults_done(&faults);
    return mine;
}

void takeover_pools(struct master *master)
{
    struct saved_in root = saved_root(master->saved);

    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        struct saved_in in = saved_item(&root, "pool", i);
        if (!saved_get(&in, "name") || !saved_get(&in, "runtime"))
            return;
        master->taken =
            must_resize(master->taken, (master->taken_size + 1) * sizeof(struct master_pool *));
        master->taken[master->taken_size++] = take_pool(master->edition, &in);
    }
}

/* Whether the pool was in service, and is what the configuration wants. */
static bool is_wanted(const struct edition *edition, uint32_t number, uint32_t taken)
{
    const struct config_pool *settings = edition->config->pools[number];
    const struct master_pool *mine = edition->master->taken[taken];
    struct saved_in root = saved_root(edition->master->saved);
    struct saved_in in = saved_item(&root, "pool", taken);

    return mine && mine->pool->settings == settings && saved_number(&in, "is_current", 1, 0) == 1 &&
           saved_number(&in, "shape", UINT64_MAX, 0) ==
               instances_shape(edition->config, settings, edition->loops);
}

struct master_pool *takeover_find_pool(struct edition *edition, uint32_t number)
{
    const struct master *master = edition->master;

    for (uint32_t i = 0; i < master->taken_size; i++)
        if (is_wanted(edition, number, i))
            return instances_ref(master->taken[i]);
    return NULL;
}

/* ---- Fronts ---- */

/* What the front uses, in its own order. False when something of it is not there: then its numbers mean
 * nothing. */
static bool list_pools(struct master *master, const struct saved_in *in, struct edition *edition)
{
    bool complete = true;

    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        struct saved_in item = saved_item(in, "pool", i);
        uint64_t number = saved_number(&item, "number", UINT32_MAX, UINT32_MAX);
        if (!saved_get(&item, "number"))
            break;
        if (number < master->taken_size && master->taken[number])
            edition_add_pool(edition, instances_ref(master->taken[number]));
        else
            complete = false;
    }
    return complete;
}

/* The socket that was given that number; one that nobody has any more stands in for one that is gone. */
static struct master_listener *find_listener(struct master *master, uint32_t number)
{
    struct saved_in root = saved_root(master->saved);
    struct saved_in in = saved_item(&root, "listener", number);
    int fd = (int)saved_number(&in, "fd", INT_MAX, INT_MAX);

    list_for_each (link, &master->listeners) {
        struct master_listener *listener = CONTAINER_OF(link, struct master_listener, link);
        if (listener->fd == fd)
            return listener;
    }
    return listeners_adopt(master, &(struct master_listener){.fd = -1});
}

static void list_listeners(struct master *master, const struct saved_in *in,
                           struct edition *edition)
{
    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        struct saved_in item = saved_item(in, "listener", i);
        if (!saved_get(&item, "number"))
            return;
        edition_add_listener(
            edition, find_listener(master, (uint32_t)saved_number(&item, "number", UINT32_MAX, 0)));
    }
}

static void take_front(struct master *master, uint32_t entry, const struct saved_in *in)
{
    struct saved_in root = saved_root(master->saved);
    struct master_front front = {.pid = (pid_t)saved_number(in, "pid", INT32_MAX, 0),
                                 .accepting = saved_number(in, "accepting", 1, 0) == 1,
                                 .was_accepting = true,
                                 .retiring = saved_number(in, "retiring", 1, 0) == 1,
                                 .released = saved_number(in, "released", 1, 0) == 1,
                                 .ending = saved_number(in, "ending", 1, 0) == 1,
                                 .started_ms = saved_number(in, "started_ms", UINT64_MAX, 0)};

    if (front.pid == 0)
        return;
    front.channel = saved_fd(in, "channel_fd");
    front.edition = edition_new_former(master->edition);
    list_listeners(master, in, front.edition);
    front.deaf = saved_number(&root, "dialect", UINT32_MAX, 0) != front_message_dialect();
    front.mute = !list_pools(master, in, front.edition) || front.deaf;
    /* Nobody hears of it. */
    front.released |= front.mute;
    if (front.channel == -1 || fronts_adopt(master, entry, &front) != 0)
        log_error("upgrade: front %d cannot be spoken with; it serves until the server ends",
                  (int)front.pid);
}

/* ---- Going on ---- */

/* Those that are not served any more come to their end; who still holds them keeps them until then. */
static bool is_outdated(const struct master *master)
{
    struct saved_in in = saved_root(master->saved);
    const char *former = saved_get(&in, "library_version");

    return former && master->library_version && strcmp(former, master->library_version) != 0;
}

static void resume_pools(struct master *master)
{
    for (uint32_t i = 0; i < master->taken_size; i++) {
        struct master_pool *mine = master->taken[i];
        if (!mine)
            continue;
        if (edition_find_pool(master->edition, mine) < 0)
            pool_drain(mine->pool);
        pool_resume(mine->pool);
        instances_unref(mine);
    }
    free(master->taken);
    master->taken = NULL;
    master->taken_size = 0;
}

static bool can_serve(const struct master_pool *mine)
{
    return mine->settled && (!mine->failed || pool_serving(mine->pool) > 0);
}

/* As long as a pool that had to be made anew does not serve, the former front goes on with the former
 * one. */
void takeover_settle(struct master *master)
{
    if (!master->taking_over)
        return;
    for (uint32_t i = 0; i < master->pool_size; i++)
        if (!can_serve(master->pools[i])) {
            if (master->pools[i]->failed)
                upgrade_tell(master, master->pools[i]->pool->error);
            return;
        }
    fronts_renew(master);
}

/* What the configuration does not name any more is emptied by those who still have it. */
static void give_up_listeners(struct master *master)
{
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid && master->fronts[i].edition != master->edition)
            listeners_change(master->fronts[i].edition, master->edition);
}

void takeover_done(struct master *master)
{
    if (!master->taking_over)
        return;
    master->taking_over = false;
    give_up_listeners(master);
    retired_begin(master, master->edition);
    upgrade_tell(master, NULL);
    if (!master->outdated)
        return;
    master->outdated = false;
    log_info("upgrade: workers are exchanged for some with the Ruby files of leat %s",
             master->library_version);
    commands_restart_all(master);
}

void takeover_front_ended(struct master *master)
{
    strays_check(master);
    if (master->taking_over && !fronts_accept(master))
        fronts_renew(master);
}

void takeover_resume(struct master *master)
{
    struct saved_in root = saved_root(master->saved);
    struct saved_in control = saved_section(&root, "control");

    for (uint32_t entry = 0; entry < BOARD_FRONTS; entry++) {
        struct saved_in in = saved_item(&root, "front", entry);
        take_front(master, entry, &in);
    }
    control_adopt(master->control, &control, upgrade_adopt_call);
    listeners_sweep(master);
    resume_pools(master);
    master->outdated = is_outdated(master);
    saved_close_rest(master->saved);
    saved_free(master->saved);
    master->saved = NULL;
    master->phase = MASTER_RUNNING;
    master->taking_over = true;
    /* Who ended while there was nobody to hear it. */
    (void)kill(getpid(), SIGCHLD);
    strays_check(master);
    takeover_settle(master);
}

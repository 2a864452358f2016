/* SPDX-License-Identifier: MIT */
#include "master/listeners.h"

#include "base/fd.h"
#include "base/log.h"
#include "config/origin.h"
#include "master/files.h"
#include "master/passed.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 1024, ADMIN_BACKLOG = 128 };

static long find_owner(const char *user)
{
    struct passwd *entry = user ? getpwnam(user) : NULL;

    return entry ? (long)entry->pw_uid : -1;
}

static long find_group(const char *group)
{
    struct group *entry = group ? getgrnam(group) : NULL;

    return entry ? (long)entry->gr_gid : -1;
}

static bool is_missing_family(int error)
{
    return error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL;
}

static void remember_file(struct master_listener *listener)
{
    struct stat info;

    if (*listener->address.path && lstat(listener->address.path, &info) == 0) {
        listener->device = info.st_dev;
        listener->inode = info.st_ino;
    }
}

static bool is_own_file(const struct master_listener *listener)
{
    struct stat info;

    return !listener->inherited && listener->inode && lstat(listener->address.path, &info) == 0 &&
           info.st_dev == listener->device && info.st_ino == listener->inode;
}

static int open_new(struct master_listener *listener, const struct config_listener *config,
                    const char **ret_reason)
{
    struct listen_options options = {.backlog = config->backlog ? (int)config->backlog : BACKLOG,
                                     .mode = config->mode,
                                     .uid = find_owner(config->user),
                                     .gid = find_group(config->group)};

    if (*listener->address.path)
        (void)files_make_parents(listener->address.path);
    return listen_open(&listener->address, &options, ret_reason);
}

/* 1 when it is open, 0 when it may be missing, -1 with a fault. */
static int open_one(struct master *master, const struct config_listener *config,
                    struct master_listener *listener, struct faults *faults)
{
    const char *reason = NULL;
    bool covered = false;

    listener->fd = passed_find(&master->environment, &listener->address, &covered);
    if (listener->fd < 0 && covered)
        return 0;
    listener->inherited = listener->fd >= 0;
    if (listener->inherited)
        (void)listen_adopt(listener->fd);
    else
        listener->fd = open_new(listener, config, &reason);
    if (config->optional && is_missing_family(listener->fd))
        return 0;
    if (listener->fd < 0) {
        faults_add(faults, NULL, 0, 0, "listen", "cannot listen on %s: %s", config->address,
                   reason ? reason : strerror(-listener->fd));
        return -1;
    }
    remember_file(listener);
    return 1;
}

static struct master_listener *new_listener(struct master *master, const struct address *address)
{
    struct master_listener *listener = must_alloc(1, sizeof *listener);

    *listener = (struct master_listener){.fd = -1, .address = *address};
    list_init(&listener->link);
    list_push_back(&master->listeners, &listener->link);
    return listener;
}

static void free_listener(struct master_listener *listener)
{
    if (is_own_file(listener))
        (void)unlink(listener->address.path);
    list_remove(&listener->link);
    fd_close(&listener->fd);
    if (listener->own)
        free((char *)listener->own->address);
    free(listener->own);
    free(listener);
}

struct master_listener *listeners_adopt(struct master *master, const struct master_listener *former)
{
    struct master_listener *listener = new_listener(master, &former->address);

    listener->fd = former->fd;
    listener->inherited = former->inherited;
    listener->device = former->device;
    listener->inode = former->inode;
    return listener;
}

void listeners_sweep(struct master *master)
{
    list_for_each_safe (link, &master->listeners) {
        struct master_listener *listener = CONTAINER_OF(link, struct master_listener, link);
        if (listener->refs == 0 && !listener->inherited)
            free_listener(listener);
    }
}

/* Who listens there already, whatever for; one whose file somebody else has replaced is nobody. */
static struct master_listener *find_open(struct master *master, const struct address *address)
{
    list_for_each (link, &master->listeners) {
        struct master_listener *listener = CONTAINER_OF(link, struct master_listener, link);
        if (listener->fd >= 0 && address_equal(&listener->address, address) &&
            (!listener->inode || listener->inherited || is_own_file(listener)))
            return listener;
    }
    return NULL;
}

static struct master_listener *find_fd(const struct master *master, int fd)
{
    list_for_each (link, &master->listeners) {
        struct master_listener *listener = CONTAINER_OF(link, struct master_listener, link);
        if (listener->fd == fd)
            return listener;
    }
    return NULL;
}

/* NULL with *ret_result 0 (it may be missing) or -1 (a fault). */
static struct master_listener *find_or_open(struct master *master,
                                            const struct config_listener *config, int *ret_result,
                                            struct faults *faults)
{
    struct master_listener *listener;
    struct address address;

    *ret_result = -1;
    if (!address_parse(span_of(config->address), &address)) {
        faults_add(faults, NULL, 0, 0, "listen", "%s is no address", config->address);
        return NULL;
    }
    listener = find_open(master, &address);
    if (listener)
        return listener;
    listener = new_listener(master, &address);
    *ret_result = open_one(master, config, listener, faults);
    if (*ret_result == 1)
        return listener;
    free_listener(listener);
    return NULL;
}

static void append(struct edition *edition, struct master_listener *listener,
                   const struct config_listener *config)
{
    uint32_t number = edition->listener_size++;

    listener->refs++;
    edition->listeners[number] = listener;
    edition->front_listeners[number] =
        (struct front_listener){.fd = listener->fd, .address = listener->address, .config = config};
}

static int add(struct edition *edition, const struct config_listener *config, struct faults *faults)
{
    int result;
    struct master_listener *listener = find_or_open(edition->master, config, &result, faults);

    if (!listener)
        return result;
    append(edition, listener, config);
    return 0;
}

static int add_admin(struct edition *edition, struct faults *faults)
{
    uint32_t number = edition->listener_size;
    const char *address = edition->config->admin;

    edition->admin_config = (struct config_listener){
        .address = address, .mode = 0600, .backlog = ADMIN_BACKLOG, .shown = address};
    if (add(edition, &edition->admin_config, faults) != 0)
        return -1;
    edition->admin_listener = (int)number;
    return 0;
}

static bool has(const struct edition *edition, int fd)
{
    for (uint32_t i = 0; i < edition->listener_size; i++)
        if (edition->listeners[i]->fd == fd)
            return true;
    return false;
}

static struct master_listener *open_passed(struct master *master, const struct passed *passed)
{
    struct master_listener *listener = find_fd(master, passed->fd);
    char text[CONTROL_PATH + 64];

    if (!listener) {
        listener = new_listener(master, &passed->address);
        listener->fd = passed->fd;
        listener->inherited = true;
        (void)listen_adopt(passed->fd);
    }
    if (!listener->own) {
        (void)address_format(&passed->address, text, sizeof text);
        listener->own = must_alloc(1, sizeof *listener->own);
        listener->own->address = listener->own->shown = must_copy(text);
        log_info("listening on %s, passed as %s", text, passed->name);
    }
    return listener;
}

/* A passed socket whose address the configuration does not name. */
static void add_passed(struct edition *edition, const struct passed *passed)
{
    bool is_admin = strcmp(passed->name, PASSED_ADMIN) == 0;
    struct master_listener *listener;

    if (is_admin && edition->admin_listener >= 0) {
        log_warn(
            "the socket %s was passed for the admin address, which the configuration names; it "
            "is left alone",
            passed->name);
        return;
    }
    listener = open_passed(edition->master, passed);
    if (is_admin) {
        edition->admin_listener = (int)edition->listener_size;
        edition->admin_config = *listener->own;
    }
    append(edition, listener, listener->own);
}

static void add_all_passed(struct edition *edition)
{
    struct passed passed;

    for (unsigned i = 0; passed_get(&edition->master->environment, i, &passed); i++) {
        if (has(edition, passed.fd))
            continue;
        if (passed.listens)
            add_passed(edition, &passed);
        else
            log_warn("descriptor %d, passed as %s, is no listening socket; it is left alone",
                     passed.fd, passed.name);
    }
}

/* Who passes sockets and names no address has said where to listen. */
static bool are_defaults_wanted(const struct edition *edition)
{
    struct passed passed;

    if (origin_find(edition->config, "listen"))
        return true;
    for (unsigned i = 0; passed_get(&edition->master->environment, i, &passed); i++)
        if (passed.listens && strcmp(passed.name, PASSED_ADMIN) != 0)
            return false;
    return true;
}

int listeners_open(struct edition *edition, struct faults *faults)
{
    const struct config *config = edition->config;
    size_t room = config->listener_size + 1 + passed_count(&edition->master->environment);
    int result = 0;

    edition->front_listeners = must_alloc(room, sizeof *edition->front_listeners);
    edition->listeners = must_alloc(room, sizeof *edition->listeners);
    for (uint32_t i = 0; i < config->listener_size && are_defaults_wanted(edition); i++)
        result |= add(edition, &config->listeners[i], faults);
    if (config->admin)
        result |= add_admin(edition, faults);
    add_all_passed(edition);
    if (result == 0 && edition->listener_size == 0) {
        faults_add(faults, NULL, 0, 0, "listen", "no address of the default can be listened on");
        result = -1;
    }
    return result;
}

/* What systemd passed goes on listening for the next of us. */
static void release(struct master_listener *listener)
{
    if (listener->inherited || listener->fd < 0)
        return;
    listen_end(listener->fd);
    if (is_own_file(listener))
        (void)unlink(listener->address.path);
    listener->inode = 0;
    fd_close(&listener->fd);
}

/* The settings of a socket that stays; what cannot be set is no reason to serve less. */
static void adjust(const struct master_listener *listener, const struct config_listener *config)
{
    if (listener->inherited)
        return;
    (void)listen(listener->fd, config->backlog ? (int)config->backlog : BACKLOG);
    if (!is_own_file(listener))
        return;
    (void)chmod(listener->address.path, config->mode);
    (void)!chown(listener->address.path, (uid_t)find_owner(config->user),
                 (gid_t)find_group(config->group));
}

static bool has_listener(const struct edition *edition, const struct master_listener *listener)
{
    for (uint32_t i = 0; i < edition->listener_size; i++)
        if (edition->listeners[i] == listener)
            return true;
    return false;
}

void listeners_change(struct edition *former, const struct edition *fresh)
{
    for (uint32_t i = 0; i < former->listener_size; i++)
        if (!has_listener(fresh, former->listeners[i]))
            release(former->listeners[i]);
    for (uint32_t i = 0; i < fresh->listener_size; i++)
        adjust(fresh->listeners[i], fresh->front_listeners[i].config);
}

void listeners_release(struct master *master)
{
    list_for_each (link, &master->listeners)
        release(CONTAINER_OF(link, struct master_listener, link));
}

/* A socket that systemd passed may be wanted again by a later edition, and cannot be opened twice. */
void listeners_unref(struct master_listener *listener)
{
    if (--listener->refs == 0 && (!listener->inherited || listener->fd < 0))
        free_listener(listener);
}

void listeners_close(struct master *master)
{
    list_for_each_safe (link, &master->listeners)
        free_listener(CONTAINER_OF(link, struct master_listener, link));
}

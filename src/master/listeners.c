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

enum { ADMIN_BACKLOG = 128 };

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

static int open_new(struct master_listener *listener, const char **ret_reason)
{
    const struct config_listener *config = listener->config;
    struct listen_options options = {.backlog = config->backlog ? (int)config->backlog : 1024,
                                     .mode = config->mode,
                                     .uid = find_owner(config->user),
                                     .gid = find_group(config->group)};

    if (*listener->address.path)
        (void)files_make_parents(listener->address.path);
    return listen_open(&listener->address, &options, ret_reason);
}

/* 1 when it is open, 0 when it may be missing, -1 with a fault. */
static int open_one(struct master *master, const struct config_listener *config,
                    struct master_listener *ret_listener, struct faults *faults)
{
    struct master_listener listener = {.config = config};
    const char *reason = NULL;
    bool covered = false;

    if (!address_parse(span_of(config->address), &listener.address)) {
        faults_add(faults, NULL, 0, 0, "listen", "%s is no address", config->address);
        return -1;
    }
    listener.fd = passed_find(&master->environment, &listener.address, &covered);
    if (listener.fd < 0 && covered)
        return 0;
    listener.inherited = listener.fd >= 0;
    if (listener.inherited)
        (void)listen_adopt(listener.fd);
    else
        listener.fd = open_new(&listener, &reason);
    if (config->optional && is_missing_family(listener.fd))
        return 0;
    if (listener.fd < 0) {
        faults_add(faults, NULL, 0, 0, "listen", "cannot listen on %s: %s", config->address,
                   reason ? reason : strerror(-listener.fd));
        return -1;
    }
    remember_file(&listener);
    *ret_listener = listener;
    return 1;
}

static int add(struct master *master, const struct config_listener *config, struct faults *faults)
{
    int result = open_one(master, config, &master->listeners[master->listener_size], faults);

    master->listener_size += result == 1;
    return result < 0 ? -1 : 0;
}

static bool is_open(const struct master *master, int fd)
{
    for (uint32_t i = 0; i < master->listener_size; i++)
        if (master->listeners[i].fd == fd)
            return true;
    return false;
}

/* A passed socket whose address the configuration does not name. */
static void add_passed(struct master *master, const struct passed *passed)
{
    char text[CONTROL_PATH + 64];
    struct master_listener *listener = &master->listeners[master->listener_size];
    bool is_admin = strcmp(passed->name, PASSED_ADMIN) == 0;

    if (is_admin && master->admin_listener >= 0) {
        log_warn(
            "the socket %s was passed for the admin address, which the configuration names; it "
            "is left alone",
            passed->name);
        return;
    }
    (void)address_format(&passed->address, text, sizeof text);
    listener->own = must_alloc(1, sizeof *listener->own);
    listener->own->address = listener->own->shown = must_copy(text);
    listener->config = listener->own;
    listener->address = passed->address;
    listener->fd = passed->fd;
    listener->inherited = true;
    (void)listen_adopt(passed->fd);
    if (is_admin) {
        master->admin_listener = (int)master->listener_size;
        master->admin_config = *listener->own;
    }
    log_info("listening on %s, passed as %s", text, passed->name);
    master->listener_size++;
}

static void add_all_passed(struct master *master)
{
    struct passed passed;

    for (unsigned i = 0; passed_get(&master->environment, i, &passed); i++) {
        if (is_open(master, passed.fd))
            continue;
        if (passed.listens)
            add_passed(master, &passed);
        else
            log_warn("descriptor %d, passed as %s, is no listening socket; it is left alone",
                     passed.fd, passed.name);
    }
}

/* Who passes sockets and names no address has said where to listen. */
static bool are_defaults_wanted(const struct master *master)
{
    struct passed passed;

    if (origin_find(master->config, "listen"))
        return true;
    for (unsigned i = 0; passed_get(&master->environment, i, &passed); i++)
        if (passed.listens && strcmp(passed.name, PASSED_ADMIN) != 0)
            return false;
    return true;
}

int listeners_open(struct master *master, struct faults *faults)
{
    const struct config *config = master->config;
    int result = 0;

    master->listeners = must_alloc(config->listener_size + 1 + passed_count(&master->environment),
                                   sizeof *master->listeners);
    master->admin_listener = -1;
    for (uint32_t i = 0; i < config->listener_size && are_defaults_wanted(master); i++)
        result |= add(master, &config->listeners[i], faults);
    if (config->admin) {
        master->admin_config = (struct config_listener){.address = config->admin,
                                                        .mode = 0600,
                                                        .backlog = ADMIN_BACKLOG,
                                                        .shown = config->admin};
        master->admin_listener = (int)master->listener_size;
        result |= add(master, &master->admin_config, faults);
    }
    add_all_passed(master);
    if (result == 0 && master->listener_size == 0) {
        faults_add(faults, NULL, 0, 0, "listen", "no address of the default can be listened on");
        result = -1;
    }
    return result;
}

static void remove_file(const struct master_listener *listener)
{
    struct stat info;

    if (listener->inherited || listener->inode == 0)
        return;
    if (lstat(listener->address.path, &info) == 0 && info.st_dev == listener->device &&
        info.st_ino == listener->inode)
        (void)unlink(listener->address.path);
}

void listeners_release(struct master *master)
{
    for (uint32_t i = 0; i < master->listener_size; i++) {
        struct master_listener *listener = &master->listeners[i];
        /* What systemd passed goes on listening for the next of us. */
        if (listener->fd >= 0 && !listener->inherited)
            listen_end(listener->fd);
        remove_file(listener);
        listener->inode = 0;
        fd_close(&listener->fd);
    }
}

void listeners_close(struct master *master)
{
    for (uint32_t i = 0; i < master->listener_size; i++) {
        struct master_listener *listener = &master->listeners[i];
        remove_file(listener);
        fd_close(&listener->fd);
        if (listener->own)
            free((char *)listener->own->address);
        free(listener->own);
    }
    free(master->listeners);
    master->listeners = NULL;
    master->listener_size = 0;
}

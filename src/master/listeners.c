/* SPDX-License-Identifier: MIT */
#include "master/listeners.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "master/files.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADMIN_BACKLOG = 128, FIRST_PASSED = 3 };

static uint64_t get_number(const struct environment *environment, const char *name)
{
    uint64_t value = 0;

    (void)num_decimal(span_of(environment_get(environment, name)), &value);
    return value;
}

/* The address of a descriptor's socket; false when it is no socket of a kind that we know. */
static bool read_address(int fd, struct address *ret_address)
{
    struct address address = {.size = sizeof address.socket};

    if (getsockname(fd, &address.socket.any, &address.size) == -1)
        return false;
    if (address.socket.any.sa_family == AF_UNIX)
        (void)strncpy(address.path, address.socket.local.sun_path, sizeof address.path - 1);
    *ret_address = address;
    return true;
}

/* Whether the socket, of [::] and not of IPv6 alone, takes the connections of 0.0.0.0 as well. */
static bool covers(int fd, const struct address *there, const struct address *wanted)
{
    int only = 1;
    socklen_t size = sizeof only;

    if (there->socket.any.sa_family != AF_INET6 || wanted->socket.any.sa_family != AF_INET ||
        wanted->socket.ip4.sin_addr.s_addr != htonl(INADDR_ANY) ||
        !IN6_IS_ADDR_UNSPECIFIED(&there->socket.ip6.sin6_addr) ||
        address_port(there) != address_port(wanted))
        return false;
    return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) == 0 && only == 0;
}

/* The passed socket of this address, or -1 (sd_listen_fds: LISTEN_PID names us, sockets from 3 up);
 * *ret_covered: one of another address serves this one, too. */
static int find_passed(const struct master *master, const struct address *address,
                       bool *ret_covered)
{
    uint64_t count = get_number(&master->environment, "LISTEN_FDS");

    if (get_number(&master->environment, "LISTEN_PID") != (uint64_t)getpid() || count > 1024)
        return -1;
    for (int fd = FIRST_PASSED; fd < FIRST_PASSED + (int)count; fd++) {
        struct address there;
        if (!read_address(fd, &there))
            continue;
        if (address_equal(&there, address))
            return fd;
        *ret_covered |= covers(fd, &there, address);
    }
    return -1;
}

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
    listener.fd = find_passed(master, &listener.address, &covered);
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

int listeners_open(struct master *master, struct faults *faults)
{
    const struct config *config = master->config;
    int result = 0;

    master->listeners = must_alloc(config->listener_size + 1, sizeof *master->listeners);
    master->admin_listener = -1;
    for (uint32_t i = 0; i < config->listener_size; i++)
        result |= add(master, &config->listeners[i], faults);
    if (config->admin) {
        master->admin_config = (struct config_listener){.address = config->admin,
                                                        .mode = 0600,
                                                        .backlog = ADMIN_BACKLOG,
                                                        .shown = config->admin};
        master->admin_listener = (int)master->listener_size;
        result |= add(master, &master->admin_config, faults);
    }
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
        remove_file(&master->listeners[i]);
        fd_close(&master->listeners[i].fd);
    }
    free(master->listeners);
    master->listeners = NULL;
    master->listener_size = 0;
}

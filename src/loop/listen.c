/* SPDX-License-Identifier: MIT */
#include "loop/listen.h"

#include "base/base.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A Unix path being listened on. */
struct place {
    struct span folder;
    struct span name;
    int folder_fd;
};

static const char in_use[] = "another process is listening on it";

static int open_socket(int family, int type)
{
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd == -1 ? -errno : fd;
}

static int set_option(int fd, int level, int option)
{
    int on = 1;

    return setsockopt(fd, level, option, &on, sizeof(on)) == -1 ? -errno : 0;
}

static int start_listening(int fd, int backlog)
{
    return listen(fd, backlog) == -1 ? -errno : 0;
}

static int bind_to(int fd, const struct sockaddr *socket, socklen_t size)
{
    return bind(fd, socket, size) == -1 ? -errno : 0;
}

static const char *ip_reason(int error)
{
    switch (error) {
    case -EADDRINUSE:
        return in_use;
    case -EADDRNOTAVAIL:
        return "no network interface has this address";
    case -EACCES:
        return "this port needs more privileges";
    case -EAFNOSUPPORT:
        return "the system does not support this kind of address";
    default:
        return NULL;
    }
}

int listen_adopt(int fd)
{
    int family = 0, error;
    socklen_t size = sizeof(family);

    error = fd_set_cloexec(fd, true);
    if (!error)
        error = fd_set_nonblocking(fd);
    if (!error && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == -1)
        error = -errno;
    if (!error && family != AF_UNIX)
        error = set_option(fd, IPPROTO_TCP, TCP_NODELAY);
    return error;
}

/* Accepted connections inherit TCP_NODELAY. */
static int prepare_ip(int fd, const struct address *address, int backlog)
{
    int error = set_option(fd, SOL_SOCKET, SO_REUSEADDR);

    if (!error && address->socket.any.sa_family == AF_INET6)
        error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    if (!error)
        error = set_option(fd, IPPROTO_TCP, TCP_NODELAY);
    if (!error)
        error = bind_to(fd, &address->socket.any, address->size);
    if (!error)
        error = start_listening(fd, backlog);
    return error;
}

static int open_ip(const struct address *address, int backlog, const char **ret_reason)
{
    int fd = open_socket(address->socket.any.sa_family, SOCK_STREAM);
    int error = fd < 0 ? fd : prepare_ip(fd, address, backlog);

    if (!error)
        return fd;
    if (fd >= 0)
        fd_close(&fd);
    *ret_reason = ip_reason(error);
    return error;
}

/* Connects to a socket file to see whether somebody listens. A full backlog (EAGAIN) and a socket of
 * another type (EPROTOTYPE) belong to somebody alive. */
static int probe(const struct place *place)
{
    struct sockaddr_un local;
    int error = address_in_folder(place->folder, place->folder_fd, place->name, &local);
    int fd = error ? error : open_socket(AF_UNIX, SOCK_STREAM);

    if (fd < 0)
        return fd;
    error = connect(fd, (struct sockaddr *)&local, sizeof(local)) == -1 ? -errno : 0;
    fd_close(&fd);
    return error == -EAGAIN || error == -EPROTOTYPE ? 0 : error;
}

/* What stands at the place: -ENOENT nothing, 0 a socket file without an owner, or why it is left
 * alone. */
static int inspect(const struct place *place, const char **ret_reason)
{
    struct stat status;
    int error;

    if (fstatat(place->folder_fd, place->name.data, &status, AT_SYMLINK_NOFOLLOW) == -1)
        return -errno;
    if (!S_ISSOCK(status.st_mode)) {
        *ret_reason = "the path exists and is not a socket";
        return -EEXIST;
    }
    error = probe(place);
    if (error == -ECONNREFUSED)
        return 0;
    if (!error) {
        *ret_reason = in_use;
        return -EADDRINUSE;
    }
    return error;
}

/* Gives the socket file its owner and mode. Through a descriptor: in a folder of another user the name
 * may by now be a link to anything. Nobody can connect before the socket listens. */
static int set_access(const struct place *place, const char *name,
                      const struct listen_options *options)
{
    char path[sizeof("/proc/self/fd/") + 11];
    struct stat status;
    int fd = openat(place->folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int error = 0;

    if (fd == -1)
        return -errno;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fstat(fd, &status) == -1)
        error = -errno;
    else if (!S_ISSOCK(status.st_mode))
        error = -EEXIST;
    else if ((options->uid != -1 || options->gid != -1) &&
             fchownat(fd, "", (uid_t)options->uid, (gid_t)options->gid, AT_EMPTY_PATH) == -1)
        error = -errno;
    else if (chmod(path, options->mode) == -1)
        error = -errno;
    fd_close(&fd);
    return error;
}

/* Binds and listens on a name in the place's folder; undoes it when it fails. */
static int listen_on(int fd, const struct place *place, const char *name,
                     const struct listen_options *options)
{
    struct sockaddr_un local;
    int error = address_in_folder(place->folder, place->folder_fd, span_of(name), &local);

    if (!error)
        error = bind_to(fd, (struct sockaddr *)&local, sizeof(local));
    if (error)
        return error;
    error = set_access(place, name, options);
    if (!error)
        error = start_listening(fd, options->backlog);
    if (error)
        (void)unlinkat(place->folder_fd, name, 0);
    return error;
}

/* Listens on a name beside the place, then moves it there, so that the path never goes away. */
static int replace(int fd, const struct place *place, const struct listen_options *options)
{
    char beside[32];
    int error;

    (void)snprintf(beside, sizeof(beside), ".leat-%ld", (long)getpid());
    (void)unlinkat(place->folder_fd, beside, 0);
    error = listen_on(fd, place, beside, options);
    if (error)
        return error;
    if (renameat(place->folder_fd, beside, place->folder_fd, place->name.data) == 0)
        return 0;
    error = -errno;
    (void)unlinkat(place->folder_fd, beside, 0);
    return error;
}

static int prepare_unix(int fd, const struct place *place, const struct listen_options *options,
                        const char **ret_reason)
{
    int error = inspect(place, ret_reason);

    if (error == -ENOENT)
        return listen_on(fd, place, place->name.data, options);
    return error ? error : replace(fd, place, options);
}

static const char *unix_reason(int error)
{
    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
        return "its folder does not exist";
    case -EACCES:
        return "its folder, or the socket that is there, may not be used by this user";
    case -EPERM:
        return "this user may not give it that owner";
    case -EADDRINUSE:
        return "another process is making it at this moment";
    case -ENAMETOOLONG:
        return "its name is too long for a socket";
    default:
        return NULL;
    }
}

static int open_unix(const struct address *address, const struct listen_options *options,
                     const char **ret_reason)
{
    struct place place;
    const char *reason = NULL;
    int fd = -1, error;

    place.folder_fd = address_open_folder(address->path, &place.folder, &place.name);
    error = place.folder_fd < 0 ? place.folder_fd : 0;
    if (!error) {
        fd = open_socket(AF_UNIX, options->packets ? SOCK_SEQPACKET : SOCK_STREAM);
        error = fd < 0 ? fd : prepare_unix(fd, &place, options, &reason);
        fd_close(&place.folder_fd);
    }
    if (!error)
        return fd;
    if (fd >= 0)
        fd_close(&fd);
    *ret_reason = reason ? reason : unix_reason(error);
    return error;
}

int listen_open(const struct address *address, const struct listen_options *options,
                const char **ret_reason)
{
    CHECK(options->backlog > 0);
    if (address_is_unix(address))
        return open_unix(address, options, ret_reason);
    return open_ip(address, options->backlog, ret_reason);
}

/* Drops what would begin a connection (RFC 9293 3.1: the flags are byte 13, SYN is bit 1). A smaller
 * backlog would also drop the last step of those that have begun, whose clients believe to be connected
 * already. */
static int refuse_beginnings(int fd)
{
    static struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x02, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(steps), .filter = steps};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == -1 ? -errno
                                                                                         : 0;
}

void listen_end(int fd)
{
    struct address address;

    if (address_of_socket(fd, &address) == 0 && !address_is_unix(&address) &&
        refuse_beginnings(fd) == 0)
        return;
    (void)listen(fd, 0);
}

/* accept(2) reports the faults of a connection that waited as if they were its own. */
static bool is_fault_of_connection(int error)
{
    static const int faults[] = {EINTR,     ECONNABORTED, EPROTO,       ENETDOWN,   ENOPROTOOPT,
                                 EHOSTDOWN, ENONET,       EHOSTUNREACH, ENETUNREACH};

    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (error == faults[i])
            return true;
    return false;
}

int listen_accept(int fd, struct address *ret_peer)
{
    struct sockaddr_storage peer;
    socklen_t size;
    int accepted;

    do {
        size = sizeof(peer);
        accepted = accept4(fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (accepted == -1 && is_fault_of_connection(errno));
    if (accepted == -1)
        return -errno;
    if (ret_peer) {
        memcpy(&ret_peer->socket.storage, &peer, size);
        ret_peer->size = size;
        ret_peer->path[0] = '\0';
    }
    return accepted;
}

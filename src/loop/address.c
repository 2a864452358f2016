/* SPDX-License-Identifier: MIT */
#include "loop/address.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static const struct span unix_prefix = SPAN("unix:");
static const struct span here = SPAN(".");
static const struct span top = SPAN("/");

static bool parse_port(struct span text, in_port_t *ret_port)
{
    uint64_t port;

    if (text.size > 1 && text.data[0] == '0')
        return false;
    if (!num_decimal(text, &port) || port > UINT16_MAX)
        return false;
    *ret_port = htons((uint16_t)port);
    return true;
}

/* inet_pton wants a C string; it accepts no shortened, octal or scoped forms. */
static bool parse_host(int family, struct span text, void *ret_host)
{
    char host[INET6_ADDRSTRLEN];

    if (text.size >= sizeof(host) || span_find(text, '\0') < text.size)
        return false;
    memcpy(host, text.data, text.size);
    host[text.size] = '\0';
    return inet_pton(family, host, ret_host) == 1;
}

static bool parse_ip4(struct span text, struct address *address)
{
    struct sockaddr_in *ip4 = &address->socket.ip4;
    size_t colon = span_find(text, ':');

    if (colon == text.size)
        return false;
    ip4->sin_family = AF_INET;
    address->size = sizeof(*ip4);
    return parse_host(AF_INET, span_first(text, colon), &ip4->sin_addr) &&
           parse_port(span_skip(text, colon + 1), &ip4->sin_port);
}

static bool parse_ip6(struct span text, struct address *address)
{
    struct sockaddr_in6 *ip6 = &address->socket.ip6;
    struct span inside = span_skip(text, 1);
    size_t bracket = span_find(inside, ']');
    struct span behind = span_skip(inside, bracket + 1);

    if (behind.size == 0 || behind.data[0] != ':')
        return false;
    ip6->sin6_family = AF_INET6;
    address->size = sizeof(*ip6);
    return parse_host(AF_INET6, span_first(inside, bracket), &ip6->sin6_addr) &&
           parse_port(span_skip(behind, 1), &ip6->sin6_port);
}

static socklen_t local_size(size_t path_size)
{
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_size + 1);
}

static bool parse_unix(struct span path, struct address *address)
{
    struct sockaddr_un *local = &address->socket.local;

    if (path.size == 0 || path.size >= sizeof(address->path))
        return false;
    if (path.data[path.size - 1] == '/' || span_find(path, '\0') < path.size)
        return false;
    local->sun_family = AF_UNIX;
    memcpy(address->path, path.data, path.size);
    if (path.size < sizeof(local->sun_path)) {
        memcpy(local->sun_path, path.data, path.size);
        address->size = local_size(path.size);
    }
    return true;
}

static bool parse(struct span text, struct address *address)
{
    if (span_starts_with(text, unix_prefix))
        return parse_unix(span_skip(text, unix_prefix.size), address);
    if (text.size > 0 && text.data[0] == '[')
        return parse_ip6(text, address);
    return parse_ip4(text, address);
}

bool address_parse(struct span text, struct address *ret_address)
{
    struct address address = {0};

    if (!parse(text, &address))
        return false;
    *ret_address = address;
    return true;
}

/* What snprintf says about a text that may have been cut. */
static size_t written(int size, size_t room)
{
    if (size < 0 || room == 0)
        return 0;
    return (size_t)size < room ? (size_t)size : room - 1;
}

static const char *host_text(const struct address *address, char text[INET6_ADDRSTRLEN])
{
    const struct in6_addr *ip6 = &address->socket.ip6.sin6_addr;

    if (address->socket.any.sa_family == AF_INET)
        return inet_ntop(AF_INET, &address->socket.ip4.sin_addr, text, INET6_ADDRSTRLEN);
    return inet_ntop(AF_INET6, ip6, text, INET6_ADDRSTRLEN);
}

size_t address_format(const struct address *address, char *out, size_t room)
{
    bool ip4 = address->socket.any.sa_family == AF_INET;
    char host[INET6_ADDRSTRLEN];

    if (address_is_unix(address))
        return written(snprintf(out, room, "unix:%s", address->path), room);
    return written(snprintf(out, room, ip4 ? "%s:%u" : "[%s]:%u", host_text(address, host),
                            address_port(address)),
                   room);
}

/* Four bytes with dots between them: asked for with every request, so that it does not print. */
static size_t put_ip4(const unsigned char bytes[4], char out[INET6_ADDRSTRLEN])
{
    size_t size = 0;

    for (int i = 0; i < 4; i++) {
        if (i)
            out[size++] = '.';
        size += num_format(bytes[i], out + size);
    }
    return size;
}

static size_t put_host(const struct address *address, char text[INET6_ADDRSTRLEN])
{
    static const unsigned char local[4] = {127, 0, 0, 1};
    const struct in6_addr *ip6 = &address->socket.ip6.sin6_addr;

    if (address_is_unix(address))
        return put_ip4(local, text);
    if (address->socket.any.sa_family == AF_INET)
        return put_ip4((const unsigned char *)&address->socket.ip4.sin_addr, text);
    if (IN6_IS_ADDR_V4MAPPED(ip6))
        return put_ip4(&ip6->s6_addr[12], text);
    return strlen(inet_ntop(AF_INET6, ip6, text, INET6_ADDRSTRLEN));
}

size_t address_format_host(const struct address *address, char *out, size_t room)
{
    char text[INET6_ADDRSTRLEN];
    size_t size = put_host(address, text);

    if (room == 0)
        return 0;
    size = size < room ? size : room - 1;
    memcpy(out, text, size);
    out[size] = '\0';
    return size;
}

unsigned address_port(const struct address *address)
{
    switch (address->socket.any.sa_family) {
    case AF_INET:
        return ntohs(address->socket.ip4.sin_port);
    case AF_INET6:
        return ntohs(address->socket.ip6.sin6_port);
    default:
        return 0;
    }
}

bool address_is_unix(const struct address *address)
{
    return address->socket.any.sa_family == AF_UNIX;
}

bool address_equal(const struct address *a, const struct address *b)
{
    if (a->socket.any.sa_family != b->socket.any.sa_family || address_port(a) != address_port(b))
        return false;
    switch (a->socket.any.sa_family) {
    case AF_INET:
        return a->socket.ip4.sin_addr.s_addr == b->socket.ip4.sin_addr.s_addr;
    case AF_INET6:
        return a->socket.ip6.sin6_scope_id == b->socket.ip6.sin6_scope_id &&
               IN6_ARE_ADDR_EQUAL(&a->socket.ip6.sin6_addr, &b->socket.ip6.sin6_addr);
    default:
        return strcmp(a->path, b->path) == 0;
    }
}

int address_of_socket(int fd, struct address *ret_address)
{
    struct address address = {.size = sizeof(address.socket)};

    if (getsockname(fd, &address.socket.any, &address.size) == -1)
        return -errno;
    if (address_is_unix(&address) && address.size > offsetof(struct sockaddr_un, sun_path))
        memcpy(address.path, address.socket.local.sun_path,
               strnlen(address.socket.local.sun_path, sizeof(address.socket.local.sun_path)));
    *ret_address = address;
    return 0;
}

int address_in_folder(struct span folder, int folder_fd, struct span name,
                      struct sockaddr_un *ret_socket)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    const char *slash = span_ends_with(folder, top) ? "" : "/";
    int size = snprintf(local.sun_path, sizeof(local.sun_path), "%.*s%s%.*s", SPAN_ARG(folder),
                        slash, SPAN_ARG(name));

    if ((size_t)size >= sizeof(local.sun_path))
        size = snprintf(local.sun_path, sizeof(local.sun_path), "/proc/self/fd/%d/%.*s", folder_fd,
                        SPAN_ARG(name));
    if ((size_t)size >= sizeof(local.sun_path))
        return -ENAMETOOLONG;
    *ret_socket = local;
    return 0;
}

int address_open_folder(const char *path, struct span *ret_folder, struct span *ret_name)
{
    struct span whole = span_of(path), folder, name;
    size_t slash = span_find_last(whole, '/');
    char text[sizeof(((struct address *)0)->path)];
    int fd;

    if (slash == whole.size) {
        folder = here;
        name = whole;
    } else {
        folder = slash == 0 ? top : span_first(whole, slash);
        name = span_skip(whole, slash + 1);
    }
    if (folder.size >= sizeof(text))
        return -ENAMETOOLONG;
    memcpy(text, folder.data, folder.size);
    text[folder.size] = '\0';
    fd = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd == -1)
        return -errno;
    *ret_folder = folder;
    *ret_name = name;
    return fd;
}

/* SO_SNDTIMEO bounds connect(2) for every family; the kernel takes 0 for no limit. */
static int set_time_limit(int fd, uint64_t limit_ms)
{
    struct timeval limit = {
        .tv_sec = (time_t)(limit_ms / 1000),
        .tv_usec = (suseconds_t)(limit_ms % 1000 * 1000),
    };

    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == -1 ? -errno : 0;
}

/* A TCP connect that a signal interrupted goes on when it is called again. */
static int connect_within(int fd, const struct sockaddr *socket, socklen_t size, int timeout_ms)
{
    uint64_t end_ms = clock_ms() + (uint64_t)timeout_ms;

    for (uint64_t now_ms = clock_ms(); now_ms < end_ms; now_ms = clock_ms()) {
        int error = set_time_limit(fd, end_ms - now_ms);

        if (error)
            return error;
        if (connect(fd, socket, size) == 0 || errno == EISCONN)
            return set_time_limit(fd, 0);
        if (errno == EAGAIN || errno == EINPROGRESS)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
    return -ETIMEDOUT;
}

static int connect_long_path(int fd, const char *path, int timeout_ms)
{
    struct sockaddr_un local;
    struct span folder, name;
    int folder_fd = address_open_folder(path, &folder, &name);
    int error;

    if (folder_fd < 0)
        return folder_fd;
    error = address_in_folder(folder, folder_fd, name, &local);
    if (!error)
        error = connect_within(fd, (struct sockaddr *)&local, sizeof(local), timeout_ms);
    fd_close(&folder_fd);
    return error;
}

int address_connect(const struct address *address, int timeout_ms)
{
    int fd = socket(address->socket.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error;

    if (fd == -1)
        return -errno;
    if (address->size > 0)
        error = connect_within(fd, &address->socket.any, address->size, timeout_ms);
    else
        error = connect_long_path(fd, address->path, timeout_ms);
    if (error) {
        fd_close(&fd);
        return error;
    }
    return fd;
}

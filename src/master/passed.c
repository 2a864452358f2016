/* SPDX-License-Identifier: MIT */
#include "master/passed.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = 3 };

static uint64_t get_number(const struct environment *environment, const char *name)
{
    uint64_t value = 0;

    (void)num_decimal(span_of(environment_get(environment, name)), &value);
    return value;
}

static int get_option(int fd, int level, int option)
{
    int value = 0;
    socklen_t size = sizeof value;

    return getsockopt(fd, level, option, &value, &size) == 0 ? value : -1;
}

/* False when it is no socket of a kind that we know, or does not listen. */
static bool read_address(int fd, struct address *ret_address)
{
    struct address address = {.size = sizeof address.socket};
    sa_family_t family;

    if (getsockname(fd, &address.socket.any, &address.size) == -1)
        return false;
    family = address.socket.any.sa_family;
    if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
        return false;
    if (get_option(fd, SOL_SOCKET, SO_TYPE) != SOCK_STREAM ||
        get_option(fd, SOL_SOCKET, SO_ACCEPTCONN) != 1)
        return false;
    if (family == AF_UNIX)
        (void)strncpy(address.path, address.socket.local.sun_path, sizeof address.path - 1);
    *ret_address = address;
    return true;
}

static bool covers(int fd, const struct address *there, const struct address *wanted)
{
    return there->socket.any.sa_family == AF_INET6 && wanted->socket.any.sa_family == AF_INET &&
           wanted->socket.ip4.sin_addr.s_addr == htonl(INADDR_ANY) &&
           IN6_IS_ADDR_UNSPECIFIED(&there->socket.ip6.sin6_addr) &&
           address_port(there) == address_port(wanted) &&
           get_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0;
}

/* The name of that number in "web:admin". */
static void find_name(const char *names, unsigned number, char out[PASSED_NAME])
{
    struct span rest = span_of(names);
    struct span name = {.size = 0};

    for (unsigned i = 0; i <= number; i++)
        name = rest.data ? span_split(&rest, ':') : (struct span){.size = 0};
    if (name.size == 0)
        name = span_of("unknown");
    (void)snprintf(out, PASSED_NAME, "%.*s", SPAN_ARG(name));
}

unsigned passed_count(const struct environment *environment)
{
    uint64_t count = get_number(environment, "LISTEN_FDS");

    if (get_number(environment, "LISTEN_PID") != (uint64_t)getpid() || count > PASSED_MAX)
        return 0;
    return (unsigned)count;
}

bool passed_get(const struct environment *environment, unsigned number, struct passed *ret_passed)
{
    if (number >= passed_count(environment))
        return false;
    *ret_passed = (struct passed){.fd = FIRST + (int)number};
    find_name(environment_get(environment, "LISTEN_FDNAMES"), number, ret_passed->name);
    ret_passed->listens = read_address(ret_passed->fd, &ret_passed->address);
    return true;
}

int passed_find(const struct environment *environment, const struct address *address,
                bool *ret_covered)
{
    struct passed passed;

    for (unsigned i = 0; passed_get(environment, i, &passed); i++) {
        if (!passed.listens)
            continue;
        if (address_equal(&passed.address, address))
            return passed.fd;
        *ret_covered |= covers(passed.fd, &passed.address, address);
    }
    return -1;
}

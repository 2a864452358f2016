/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses and listening sockets. Pure, save for listen_open.
 */
#pragma once

#include "base/fault.h"
#include "base/span.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* An IPv4, IPv6 or Unix address. A Unix path may be longer than sun_path holds. */
struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
        struct sockaddr_storage storage;
    } socket;
    socklen_t size;  /* bytes of socket; 0 for a Unix path that needs path */
    char path[1024]; /* Unix sockets only: the path, else "" */
};

/* How a listener is opened. */
struct listen_options {
    int backlog;   /* at least 1 */
    unsigned mode; /* of a Unix socket, 0666 unless configured; the umask plays no part */
    long uid, gid; /* owner of a Unix socket, -1 = unchanged */
};

/* Reads "127.0.0.1:80", "[::1]:80" or "unix:/path" (numeric addresses only). False when it is none. */
bool address_parse(struct span text, struct address *ret_address);

/* Writes "127.0.0.1:80", "[::1]:80" or "unix:/path" and returns the length (at most room - 1). */
size_t address_format(const struct address *address, char *out, size_t room);

/* Writes only the host: "127.0.0.1" (also for IPv4 mapped into IPv6), "::1"; a Unix peer is
 * "127.0.0.1". */
size_t address_format_host(const struct address *address, char *out, size_t room);

/* The port, 0 for Unix addresses. */
unsigned address_port(const struct address *address);

/* Whether it is a Unix address; whether two addresses are the same. */
bool address_is_unix(const struct address *address);
bool address_equal(const struct address *a, const struct address *b);

/* Opens a listening socket, non-blocking and close-on-exec: SO_REUSEADDR, IPV6_V6ONLY on IPv6, no
 * delay. A Unix socket file that nobody listens on is replaced; a live one, or a file that is no
 * socket, is left alone. Returns the descriptor, or negative errno with words in *ret_reason (static,
 * or NULL). */
int listen_open(const struct address *address, const struct listen_options *options,
                const char **ret_reason);

/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses: IPv4, IPv6 and Unix paths of any length, in text and for the system. Any thread;
 * pure up to address_equal.
 *
 * Invariant: path is "" unless a Unix address has one.
 */
#pragma once

#include "base/span.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* An IPv4, IPv6 or Unix address. A Unix path may be longer than sun_path holds. */
struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
        struct sockaddr_un local;
        struct sockaddr_storage storage;
    } socket;
    socklen_t size;  /* bytes of socket; 0 for a Unix path that needs path */
    char path[1024]; /* Unix sockets only: the path, else "" */
};

/* Reads "127.0.0.1:80", "[::1]:80" or "unix:/path" (numeric addresses only; no spaces, signs or leading
 * zeros; a relative path is one from the working directory). False when it is none. */
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

/* The address that an open socket is bound to (one passed by systemd, or port 0 after it has become a
 * real one). 0 or negative errno. A Unix path that does not fit sun_path is not found again. */
int address_of_socket(int fd, struct address *ret_address);

/* The socket address of a name in a folder that is open as folder_fd: by the folder's path when both
 * fit into sun_path, else through the descriptor. -ENAMETOOLONG when the name alone is too long. */
int address_in_folder(struct span folder, int folder_fd, struct span name,
                      struct sockaddr_un *ret_socket);

/* Cuts a path into its folder ("." when it names none) and the name in it, and opens the folder.
 * Returns the descriptor or negative errno. */
int address_open_folder(const char *path, struct span *ret_folder, struct span *ret_name);

/* Connects within timeout_ms, waiting; for the command line. Returns a blocking, close-on-exec
 * descriptor or negative errno, -ETIMEDOUT when the time is over. */
int address_connect(const struct address *address, int timeout_ms);

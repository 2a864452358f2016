/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: opened by master, accepted from by the fronts. They keep no state here. Their
 * addresses are those of `loop/address.h`.
 */
#pragma once

#include "loop/address.h"

#include <stdbool.h>

/* How a listener is opened. */
struct listen_options {
    int backlog;   /* at least 1 */
    unsigned mode; /* of a Unix socket, 0666 unless configured; the umask plays no part */
    long uid, gid; /* owner of a Unix socket, -1 = unchanged */
    bool packets;  /* a Unix socket that keeps messages apart: SOCK_SEQPACKET */
};

/* Opens a listening socket, non-blocking and close-on-exec: SO_REUSEADDR, IPV6_V6ONLY on IPv6, no
 * delay. A Unix socket file that nobody listens on is replaced, so that the path exists at every
 * moment; a live one, or a file that is no socket, is left alone. The folder must exist. Returns the
 * descriptor, or negative errno with words in *ret_reason (static, or NULL). */
int listen_open(const struct address *address, const struct listen_options *options,
                const char **ret_reason);

/* Gives a listening socket that another process opened what listen_open gives its own: non-blocking,
 * close-on-exec, no delay. 0 or negative errno; the descriptor stays the caller's. */
int listen_adopt(int fd);

/* Ends listening for all who share the socket, without losing who is on the way: nobody new is let in,
 * connections that have begun can still be accepted. Closing the socket later breaks off those alone that
 * nobody accepted. */
void listen_end(int fd);

/* Takes the next connection, non-blocking, close-on-exec and without delay; ret_peer may be NULL. Connections that
 * broke while they waited are passed over. The descriptor, or negative errno: -EAGAIN when none
 * waits, -EMFILE and the like when one does and cannot be taken. */
int listen_accept(int fd, struct address *ret_peer);

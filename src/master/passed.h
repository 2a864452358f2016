/* SPDX-License-Identifier: MIT */
/*
 * Sockets that a service manager passes at the start (sd_listen_fds): LISTEN_FDS of them from descriptor
 * 3 up, with names in LISTEN_FDNAMES, for the process of LISTEN_PID alone. They stay open and are never
 * unlinked. Master's only thread.
 */
#pragma once

#include "loop/address.h"
#include "pool/environment.h"

#include <stdbool.h>

/* A socket of this name is the admin address; all others serve clients. */
#define PASSED_ADMIN "admin"

enum { PASSED_NAME = 256, PASSED_MAX = 1024 };

struct passed {
    int fd;
    char name[PASSED_NAME]; /* "unknown" when nobody named it, as systemd says */
    bool listens;           /* a listening stream socket of a kind that we know */
    struct address address; /* when it listens */
};

/* How many were passed to this process. */
unsigned passed_count(const struct environment *environment);

/* The one of that number, from 0; false behind the last. */
bool passed_get(const struct environment *environment, unsigned number, struct passed *ret_passed);

/* The descriptor of the socket of this address, or -1; *ret_covered: one of another address serves this
 * one, too ([::] that is not of IPv6 alone takes the connections of 0.0.0.0). */
int passed_find(const struct environment *environment, const struct address *address,
                bool *ret_covered);

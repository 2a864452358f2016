/* SPDX-License-Identifier: MIT */
/*
 * A connection whose PROXY header has not come yet (listener key `proxy_protocol`). It takes exactly the
 * header from the socket, within a time, and hands the socket on. One loop for life.
 */
#pragma once

#include "front/proxy_protocol.h"
#include "loop/loop.h"

struct proxy_wait;

/* How it ends. The wait is gone when it is told. */
enum proxy_wait_end {
    PROXY_WAIT_DONE,    /* the socket is the owner's again */
    PROXY_WAIT_REFUSED, /* no header; closed, as are those below */
    PROXY_WAIT_LATE,
    PROXY_WAIT_LEFT /* the peer went without a byte: a probe */
};

/* What a wait is given; local lives longer than it. */
struct proxy_wait_options {
    struct address peer; /* of the socket, and its own address */
    const struct address *local;
    bool believed;     /* what the header says counts; else it is only taken away */
    uint64_t limit_ms; /* for the whole header */
    /* peer and local: of the header when there are any and the peer is believed, else the socket's. fd
     * is -1 unless DONE. */
    void (*on_end)(void *data, enum proxy_wait_end end, int fd, const struct address *peer,
                   const struct address *local);
    void *data;
};

/* Waits on an accepted, non-blocking socket, which is the wait's from now on, also on failure. NULL when
 * memory is out or the loop refuses. */
struct proxy_wait *proxy_wait_open(struct loop *loop, int fd,
                                   const struct proxy_wait_options *options);

/* Closes the socket; the owner is not told. */
void proxy_wait_close(struct proxy_wait *wait);

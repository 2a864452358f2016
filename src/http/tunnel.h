/* SPDX-License-Identifier: MIT */
/*
 * A tunnel relays bytes both ways between a client's stream and a local socket, the other end of which
 * an application holds: what is left of a connection after 101 or a hijack. It borrows the stream, owns
 * the socket, and lives on the stream's loop.
 *
 *   client  --- up --->    local    (the application reads)
 *           <-- down --             (the application writes)
 *
 * A direction is read only when all that was read before is written, so that it never holds more than
 * TUNNEL_PART bytes beyond what it was opened with, and an idle tunnel holds none: a slow reader slows
 * its writer down. The end of one direction is passed on and leaves the other one open (half-close).
 */
#pragma once

#include "base/buf.h"
#include "loop/stream.h"

enum {
    TUNNEL_PART = 32 * 1024, /* bytes read at once */
    TUNNEL_START = 16        /* bytes of a direction's beginning that are kept */
};

/* One direction. */
struct tunnel_flow {
    struct stream *from, *to;
    struct buf rest; /* read and not yet written; no memory while empty */
    uint64_t bytes;  /* written */
    char start[TUNNEL_START];
    uint8_t start_size;
    bool is_ended; /* nothing more comes */
    bool is_told;  /* and the other side knows */
    bool is_dead;  /* the other side takes nothing more: what comes is dropped */
};

struct tunnel {
    struct stream *client;
    struct stream local;
    struct tunnel_flow up, down;
    struct task task; /* continues what took too long */
    bool client_hung_up, local_hung_up;
    /* Both directions are over; called once, never from within tunnel_open. client_left: by a failure of
     * the client's stream. The owner ends with tunnel_close and may free the tunnel in the call. */
    void (*on_over)(struct tunnel *tunnel, bool client_left);
    void *owner;
    void (*former_on_event)(struct stream *stream, unsigned events);
    void *former_owner;
};

struct tunnel_options {
    struct stream *client; /* its callback is the tunnel's until tunnel_close */
    int fd;                /* connected stream socket, owned from now on, also on failure */
    struct span head;      /* goes to the client first; copied */
    struct buf *early;     /* what the client has sent already goes up first; taken over */
    bool client_ended;     /* the end of its direction was seen */
    void (*on_over)(struct tunnel *tunnel, bool client_left);
    void *owner;
};

/* Begins at the end of the loop's batch. 0, or a negative errno: then only fd is gone. */
int tunnel_open(struct tunnel *tunnel, const struct tunnel_options *options);

/* Closes the local socket and gives the client's stream back as it was. */
void tunnel_close(struct tunnel *tunnel);

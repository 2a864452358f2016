/* SPDX-License-Identifier: MIT */
/*
 * The states of an HTTP/1 connection and what its parts share; used by http/h1_* only.
 *
 *   idle -> head -> reading -> answer <-> writing -> idle | dropping | tunnel | linger -> closed
 *
 * A step does what can be done now. Steps call the service, which may end the connection: closing only
 * marks it and lets go of the stream; the memory goes when the outermost call is over.
 */
#pragma once

#include "http/h1_work.h"

struct tunnel;

enum h1_state {
    H1_IDLE,     /* no byte of a request is there */
    H1_HEAD,     /* a part of a head is */
    H1_READING,  /* the body is coming */
    H1_ANSWER,   /* the handler has it; output goes out as it comes */
    H1_WRITING,  /* output waits for the client */
    H1_TUNNEL,   /* the application has the connection; http/tunnel relays */
    H1_DROPPING, /* refused and answered; its small body is read for the sake of the next request */
    H1_LINGER,   /* all is sent and our direction closed; what still comes is dropped */
    H1_CLOSED
};

struct h1_conn {
    const struct h1_options *options;
    const struct conn *ops; /* what its exchanges call */
    struct stream *stream;  /* socket, or the caller's */
    struct stream socket;
    struct loop *loop;
    struct timer timer;
    struct task task; /* sends what was added in this batch */
    struct address peer;
    const struct address *local; /* the owner's */
    void (*on_close)(struct h1_conn *conn, void *owner);
    void *owner;
    struct h1_work *work; /* NULL while idle */
    enum h1_state state;
    unsigned ready;        /* STREAM_READ: a read may bring something */
    bool driving;          /* guards against recursion, and the memory against its own end */
    bool used;             /* a request was answered */
    bool draining;         /* no further request after the next answer */
    bool eof;              /* the client has ended its direction */
    uint64_t linger_bytes; /* dropped so far */
    struct tunnel *tunnel; /* in that state, owned */
    uint64_t head_bytes;   /* of what went into it ahead of the application's bytes */
};

/* Goes to a state: what is wanted of the stream, and its deadline. */
void h1_state_enter(struct h1_conn *conn, enum h1_state state);

/* Starts the deadline of the current state anew. */
void h1_state_set_deadline(struct h1_conn *conn);

/* Takes steps until nothing more can be done now. The connection may be gone afterwards. */
void h1_state_drive(struct h1_conn *conn);

/* The same for a caller that looks at the connection afterwards: it sets conn->driving meanwhile and
 * ends with h1_state_free_closed. */
void h1_state_run(struct h1_conn *conn);
void h1_state_free_closed(struct h1_conn *conn);

/* Lets go of the stream, with a reset or without, and breaks the exchange off. */
void h1_state_close(struct h1_conn *conn, enum refusal refusal, bool reset);

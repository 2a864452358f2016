/* SPDX-License-Identifier: MIT */
/*
 * What master and a front say to each other. Both ends belong to us, one version each, as the front is a
 * fork of master. Any side may be gone: -EPIPE is no error.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>
#include <sys/types.h>

enum front_message_kind {
    FRONT_NOTHING,
#define ROW(constant, word) FRONT_##constant,
#include "front/message.def"
#undef ROW
    FRONT_MESSAGE_KINDS
};

/* What requests for a pool without a ready worker may hope for. */
enum front_pool_state {
    FRONT_POOL_STARTING, /* they wait in the queue */
    FRONT_POOL_UP,
    FRONT_POOL_CRASHING, /* 503 when the next try comes later than queue.timeout */
    FRONT_POOL_DOWN      /* on demand: say POOL_WANTED */
};

/* Releases that a front is told of, by their place. */
enum { FRONT_RELEASES = 4, FRONT_TEXT = 1024 };

struct front_message {
    uint32_t kind; /* enum front_message_kind */
    uint32_t pool;
    uint32_t worker;
    uint32_t value;
    uint64_t number;
    char text[FRONT_TEXT]; /* words, NUL-terminated; room for any request id and most paths */
};

/* Sends a message with up to two descriptors. 0 or a negative errno (-EAGAIN: the other side is slow). */
int front_message_send(int channel, const struct front_message *message, const int *fds,
                       size_t count);

/* Receives one. 1 with a message, 0 at end of file, -EAGAIN when there is none. Unused descriptors are
 * -1. */
int front_message_receive(int channel, struct front_message *ret_message, int ret_fds[2]);

/* A number for what both sides must know alike: a front of another build understands this one's messages
 * when it is the same there. */
uint32_t front_message_dialect(void);

/* The word of a kind, for debug lines. */
const char *front_message_word(uint32_t kind);

/* SPDX-License-Identifier: MIT */
/*
 * The text messages between master and Ruby processes (README of this folder): a verb line, then
 * `key=value` lines; in values a newline is written `\n` and a backslash `\\`. Pure. What comes from a
 * Ruby process is input: a message that cannot be read is an ordinary answer.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PROTOCOL_BYTES = 65536, /* longest message */
    PROTOCOL_PAIRS = 24     /* most keys in one message */
};

struct protocol_pair {
    struct span key;
    struct span value;
};

/* A message taken apart; spans point into the bytes it was read from. */
struct protocol_message {
    struct span verb;
    struct protocol_pair pairs[PROTOCOL_PAIRS];
    size_t size;
};

/* Starts a message in an empty buf, and adds a pair (a number) to it. 0 or -ENOMEM. */
int protocol_begin(struct buf *buf, const char *verb);
int protocol_add(struct buf *buf, const char *key, struct span value);
int protocol_add_number(struct buf *buf, const char *key, uint64_t value);

/* Takes a message apart; values are unescaped in place. False when the bytes are no message. */
bool protocol_parse(char *bytes, size_t size, struct protocol_message *ret_message);

/* The value of a key, or an empty span. */
struct span protocol_get(const struct protocol_message *message, const char *key);

/* The decimal number of a key; false when it is missing or none. */
bool protocol_get_number(const struct protocol_message *message, const char *key,
                         uint64_t *ret_value);

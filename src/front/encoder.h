/* SPDX-License-Identifier: MIT */
/*
 * One stream of bytes in a content coding: brotli, Zstandard and gzip behind one face. Windows are small
 * and levels low: an answer is made while its client waits, and many are made at once. Belongs to one
 * loop's store, which keeps one of each kind for the next answer and bounds how many there are.
 */
#pragma once

#include "http/coding.h"

enum { ENCODER_LIVE = 128 }; /* of one loop; each holds some hundred kB up to a megabyte */

enum encoder_step {
    ENCODER_MORE,  /* more follows */
    ENCODER_FLUSH, /* a reader must be able to see all that was given so far */
    ENCODER_END    /* nothing follows */
};

struct encoder;

/* Zeros are an empty store. */
struct encoder_store {
    struct encoder *spares[CODING_COUNT]; /* owned */
    unsigned live;
};

/* An encoder for a coding that is not identity, at the start of a stream; NULL when memory is out or
 * enough of them are at work. */
struct encoder *encoder_take(struct encoder_store *store, enum coding coding);

/* Gives it back, wherever its stream stands. Takes NULL. */
void encoder_give(struct encoder_store *store, struct encoder *encoder);

/* Frees the spares. */
void encoder_store_done(struct encoder_store *store);

/* Codes all of the input and hands what comes out to sink, in parts. False when that failed: the stream
 * is broken then. */
bool encoder_run(struct encoder *encoder, struct span input, enum encoder_step step,
                 void (*sink)(void *data, struct span bytes), void *data);

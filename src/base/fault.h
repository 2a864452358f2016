/* SPDX-License-Identifier: MIT */
/*
 * A fault is one reason why something cannot start or be configured, in words for the operator, with
 * its place when it has one. Faults are collected, so that all are shown at once. One thread.
 */
#pragma once

#include "base/base.h"

#include <stddef.h>

struct fault {
    char *file;      /* owned, or NULL when it has no place */
    unsigned line;   /* 1.. or 0 */
    unsigned column; /* 1.. or 0 */
    char *key;       /* owned configuration key, or NULL */
    char *reason;    /* owned words */
};

/* A list of faults; zeros are an empty one. */
struct faults {
    struct fault *items; /* owned */
    size_t size;
};

/* Adds a fault; file and key may be NULL and are copied. */
void faults_add(struct faults *faults, const char *file, unsigned line, unsigned column,
                const char *key, const char *format, ...) PRINTF_LIKE(6, 7);

/* Writes one fault as `file:line:column: key: reason` (parts it lacks are left out) and returns the
 * length that snprintf would. */
int fault_format(const struct fault *fault, char *out, size_t room);

/* Prints every fault on a line of its own to the descriptor, each after the prefix. */
void faults_print(const struct faults *faults, int fd, const char *prefix);

/* Frees all; the list is empty and usable again. */
void faults_done(struct faults *faults);

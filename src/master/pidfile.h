/* SPDX-License-Identifier: MIT */
/*
 * The PID file. A running server owns it by an fcntl lock, which a forked child does not keep; what is
 * written in it proves nothing. While it is open, nobody in this process may open and close the same
 * file: that would give up the lock.
 */
#pragma once

#include "base/fault.h"

#include <sys/types.h>

struct pidfile {
    char *path; /* owned; NULL = none */
    int fd;     /* holds the lock */
};

enum pidfile_result {
    PIDFILE_OWNED,
    PIDFILE_STALE, /* owned; it held a number that means nothing any more, or no number */
    PIDFILE_TAKEN, /* a running server owns it: *ret_holder */
    PIDFILE_FAILED /* see the fault */
};

/* Makes folders and file, locks it and writes this process's PID. */
enum pidfile_result pidfile_take(const char *path, struct pidfile *ret_pidfile, pid_t *ret_holder,
                                 struct faults *faults);

/* Removes the file, if it is still ours, and gives up the lock; harmless when there is none. */
void pidfile_give(struct pidfile *pidfile);

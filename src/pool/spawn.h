/* SPDX-License-Identifier: MIT */
/*
 * Starting another program as a child of master: descriptors, signals, limits, user, death signal, in
 * the order of docs (close, signals and mask, limits, groups and user, then the death signal, which a
 * change of user clears, then a look at the parent). Master's only thread.
 */
#pragma once

#include "pool/account.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct spawn {
    char *const *argv;    /* [0] is the program, found through PATH of environ when it has no '/' */
    char *const *environ; /* NULL-terminated */
    const char *folder;   /* working directory, entered as the new user; NULL = stay */
    const struct account *account;
    const struct rlimit *files; /* RLIMIT_NOFILE as it was at our start; NULL = unchanged */
    int in, out, err;           /* -1: /dev/null for in, unchanged for out and err */
    const int *keep;            /* descriptors that survive exec */
    size_t keep_size;
    unsigned umask; /* UINT32_MAX = unchanged */
};

/* Forks and execs. The PID, or negative errno with the step that failed in *ret_step (a static
 * string): also when exec failed in the child. */
pid_t spawn_start(const struct spawn *spawn, const char **ret_step);

/* In a child of master that does not exec: closes all but keep, resets signal dispositions and mask,
 * becomes the account, asks for death together with master, and leaves when master is gone already. 0 or
 * negative errno, with the step. */
int spawn_settle(pid_t master, const int *keep, size_t keep_size, const struct rlimit *files,
                 const struct account *account, const char **ret_step);

/* Sends a signal to a child, if the PID still is one of ours (an ended one that has not been reaped
 * is). 0 or negative errno. */
int spawn_signal(pid_t pid, int signal);

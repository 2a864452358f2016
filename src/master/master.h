/* SPDX-License-Identifier: MIT */
/*
 * The parent process: owns listeners, log files, boards, pools and fronts, and puts back whatever dies.
 * One thread, one loop; it reads no byte of a client. It is the only place where front, pool and control
 * meet.
 */
#pragma once

#include "config/config.h"

struct master_options {
    const char *cwd;       /* where it is started, as its user sees it */
    struct saved *saved;   /* what the program left whose place this one takes, or NULL; master's */
    struct config *config; /* master's from now on */
    const struct config_options *options; /* that it was loaded with, for later loadings */
    char **argv;                          /* the process's own: its memory becomes the title */
    char **environ_list;                  /* as the server was started; likewise */
};

/* Serves until it is stopped and returns the exit status: 0, 1 when the start failed (the reason has
 * been printed), 4 when a stop cut requests. With config->daemonize the calling process exits with the
 * start's outcome and the server goes on in the background. */
int master_run(const struct master_options *options);

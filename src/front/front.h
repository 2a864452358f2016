/* SPDX-License-Identifier: MIT */
/*
 * The front: the process that reads every client byte. Master forks it with listeners, boards and
 * configuration in hand and speaks with it over one socket (front/message.h); it runs N loop threads, two
 * file threads and a log writer until it has drained or is told to stop.
 */
#pragma once

#include "board/board.h"
#include "config/config.h"
#include "front/counters.h"
#include "loop/listen.h"

/* A listening socket, inherited. Its socket belongs to master: the front closes only its copy. */
struct front_listener {
    int fd;
    struct address address;
    const struct config_listener *config;
};

/* A Rack pool's instance as the front sees it. */
struct front_pool {
    const struct config_pool *config;
    const struct board *board; /* mapped by master before the fork; bells are set */
    uint32_t place;            /* in the counters */
};

/* Everything a front is given; it lives in master's memory and is inherited by the fork. */
struct front_options {
    const struct config *config;
    uint32_t entry; /* its number in every board's front table */
    uint32_t loops; /* loop threads; boards have the same */
    const struct front_listener *listeners;
    uint32_t listener_size;
    const struct front_pool *pools; /* message pool numbers count in this array */
    uint32_t pool_size;
    const uint32_t *site_places;     /* [config->site_size]: in the counters; NULL = its number */
    const int *descriptor_listeners; /* [pool]: listening socket of RUNTIME.<entry>; see board.h */
    int channel;                     /* SOCK_SEQPACKET to master */
    int death_pipe;                  /* end of file: master is gone */
    int access_log_fd;               /* -1 = off */
    int admin_listener;              /* index in listeners, or -1 */
    struct front_counters *counters; /* shared with master */
    const char *const *exit_words;   /* of the counters' exits, in their order */
    uint32_t exit_size;              /* at most FRONT_EXITS */
};

/* Runs the front in this process (already unprivileged, with clean signals and descriptors) and returns
 * its exit status: 0 after a drain. */
int front_run(const struct front_options *options);

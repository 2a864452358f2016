/* SPDX-License-Identifier: MIT */
/*
 * What a pool's processes share: the board, the bells of the fronts and the report socket. Made by
 * master before the pool's first process, the same for all its generations. Master's only thread.
 */
#pragma once

#include "base/fault.h"
#include "base/saved.h"
#include "board/board.h"
#include "config/config.h"

#include <sys/types.h>

struct instance {
    struct board board;                /* with its bells */
    char runtime[BOARD_RUNTIME_BYTES]; /* path prefix of the descriptor sockets */
    int board_fd;
    int report;      /* master reads; non-blocking */
    int report_peer; /* handed to molds and workers */
};

enum {
    /* report, death pipe and board travel with the bells in one message */
    INSTANCE_FIXED = 3,
    INSTANCE_LOOPS_MAX = (192 - INSTANCE_FIXED) / BOARD_FRONTS
};

/* Makes everything for at most max workers; runtime is the path prefix of the descriptor sockets. 0, or
 * -1 with a fault. */
int instance_open(const struct config *config, const struct config_pool *settings, uint32_t max,
                  uint32_t loops, const char *runtime, struct instance *ret_instance,
                  struct faults *faults);

/* Writes down what there is for another build of this program; whether this build can go on with what
 * another one left; goes on with it: 0 or negative errno, -EPROTO when its board is of another version. */
void instance_save(const struct instance *instance, const struct saved_out *out);
bool instance_is_adoptable(const struct saved_in *in);
int instance_adopt(const struct saved_in *in, struct instance *ret_instance);

/* Closes everything; harmless on an instance that was never opened (board_fd -1). */
void instance_close(struct instance *instance);

/* The descriptors of `hello` in its order; returns how many. */
size_t instance_descriptors(const struct instance *instance, int death_pipe, int *out);

/* Master's side of a worker entry: a process is known and may proceed; it serves; it is to finish; it is
 * gone. */
void instance_begin(const struct instance *instance, uint32_t worker, pid_t pid,
                    uint32_t generation);
void instance_serve(const struct instance *instance, uint32_t worker);
void instance_retire(const struct instance *instance, uint32_t worker);
void instance_end(const struct instance *instance, uint32_t worker);

/* Threads of a worker that hold a request now. */
uint32_t instance_busy(const struct instance *instance, uint32_t worker);

/* Those of them whose request was answered 504. By words that the worker writes: a guess. */
uint32_t instance_late(const struct instance *instance, uint32_t worker);

/* Connections that its application has taken over, as the worker says. */
uint32_t instance_streams(const struct instance *instance, uint32_t worker);

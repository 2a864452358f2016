/* SPDX-License-Identifier: MIT */
/*
 * One generation of a pool's application: the release it was resolved to, its Ruby, user and
 * environment, and the process that has loaded it and forks workers (its mold). In development there is
 * no such process: each worker is exec'd and loads by itself ("solo"). Master's only thread.
 */
#pragma once

#include "base/list.h"
#include "pool/environment.h"
#include "pool/ruby.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pool;

enum mold_state {
    MOLD_DOWN,    /* no process; also a solo generation before it is prepared */
    MOLD_LOADING, /* exec'd, has not said `loaded` */
    MOLD_LOADED,  /* forks workers; a solo generation is always in this state */
    MOLD_LEAVING  /* told to quit, or killed */
};

struct mold {
    struct list link; /* in the pool's molds */
    uint32_t generation;
    bool solo;
    enum mold_state state;
    pid_t pid;            /* 0 without a process */
    int control;          /* our end, or -1 */
    uint64_t begun_ms;    /* when loading began */
    uint64_t loaded_ms;   /* when it said so */
    uint64_t deadline_ms; /* in this state at most until then, 0 = no limit */
    uint64_t private_bytes;
    bool preloaded; /* workers are forked with the application loaded */
    char *release;  /* owned; the application folder, resolved; NULL before mold_prepare */
    char *rackup;   /* owned; absolute */
    char *failure;  /* owned; what the process said before it ended, or NULL */
    struct account account;
    struct environment environment;
    struct ruby ruby;
};

/* A generation without a process. */
struct mold *mold_new(uint32_t generation, bool solo);

/* Closes and frees; the process must be gone. */
void mold_free(struct mold *mold);

/* Resolves the folder, unless the one of before still exists, and everything that depends on it. 0, or
 * -1 with faults. */
int mold_prepare(struct mold *mold, const struct pool *pool, struct faults *faults);

/* Execs the mold, or a solo worker as entry `index` of the board, and greets it. 0, or -1 with a
 * fault. The control descriptor is the caller's. */
int mold_exec(struct mold *mold, struct pool *pool, const char *role, uint32_t index,
              pid_t *ret_pid, int *ret_control, struct faults *faults);

/* Sends `hello`; 0 or negative errno. */
int mold_greet(const struct mold *mold, const struct pool *pool, const char *role, uint32_t index,
               int control);

/* Asks for a worker; 0 or negative errno. */
int mold_ask_fork(struct mold *mold, uint32_t index);

/* Tells it to leave. */
void mold_quit(struct mold *mold);

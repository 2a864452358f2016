/* SPDX-License-Identifier: MIT */
/*
 * One worker process as master knows it, beside its entry in the board. Its life is a table, state x
 * event (worker.def); the effects of a step are the pool's. Master's only thread.
 */
#pragma once

#include "pool/reap.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum worker_state {
    WORKER_EMPTY, /* nobody there */
    WORKER_ASKED,
    WORKER_UNWANTED,
    WORKER_STARTING,
    WORKER_SERVING,
    WORKER_RETIRING,
    WORKER_KILLED, /* SIGKILL is on its way */
    WORKER_DEAD,   /* reaped; fronts still audit what it held */
    WORKER_STATES
};

enum worker_event {
    WORKER_ASK,
    WORKER_FORK,
    WORKER_REFUSE,
    WORKER_READY,
    WORKER_RETIRE,
    WORKER_KILL,
    WORKER_END,
    WORKER_AUDIT,
    WORKER_EVENTS
};

struct question;

struct worker {
    enum worker_state state;
    pid_t pid;                 /* 0 while there is no process */
    uint32_t generation;       /* whose application it has loaded */
    int control;               /* our end of a solo worker's control socket, or -1 */
    uint64_t since_ms;         /* asked for */
    uint64_t ready_ms;         /* 0 until it serves */
    uint64_t deadline_ms;      /* in this state at most until then, 0 = no limit */
    enum exit_reason why;      /* of its retirement; EXIT_NONE while it is wanted */
    enum exit_reason spent;    /* why it is to be replaced when there is another; or EXIT_NONE */
    uint64_t private_bytes;    /* as it last reported, 0 = not yet */
    bool is_grown;             /* that was after it had answered requests */
    bool is_late;              /* a request of its ran into `timeout` */
    bool is_relieved;          /* it goes when only requests are left that nobody waits for */
    uint64_t stopped_ms;       /* when it was seen stopped while requests waited; 0 = it is not */
    struct question *question; /* open, or NULL; owned */
    bool is_excuse;            /* it answers with the exception that kept it from loading */
};

/* Makes the step; false, and nothing changed, when the event is out of turn. */
bool worker_step(struct worker *worker, enum worker_event event);

/* "starting", "idle" or "busy", "retiring", as status says it. */
const char *worker_word(const struct worker *worker, bool busy);

/* Whether there is, or will be, a process behind the entry. */
bool worker_is_there(const struct worker *worker);

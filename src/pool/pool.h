/* SPDX-License-Identifier: MIT */
/*
 * A Rack pool: one application with its board, molds and workers, kept alive by master. Its effects on
 * the fronts go through the callbacks of its host (master): a pool knows no front. Everything happens on
 * master's only thread; decisions are made in plan.c, at the end of a batch of events.
 *
 * Invariants: `current` is the generation that replacements come from; `next` exists only while a
 * restart loads a new one and tries its first worker; a worker entry that is not EMPTY belongs to a
 * generation in `molds`, or to one whose mold is gone for good.
 */
#pragma once

#include "loop/loop.h"
#include "loop/timer.h"
#include "pool/budget.h"
#include "pool/capacity.h"
#include "pool/instance.h"
#include "pool/mold.h"
#include "pool/reap.h"
#include "pool/worker.h"

enum pool_state {
#define ROW(constant, word) POOL_##constant,
#include "pool/state.def"
#undef ROW
};

/* What happens to the pool, for its host. Called from within the pool's own functions; the host must
 * not free the pool there. */
struct pool_host {
    void (*on_ready)(struct pool *pool, uint32_t worker);
    void (*on_dead)(struct pool *pool, uint32_t worker);
    void (*on_state)(struct pool *pool);
    /* The outcome of the first start, once: failure in words, or NULL. */
    void (*on_started)(struct pool *pool, const char *failure);
    /* Restart number `ticket` is over. */
    void (*on_restarted)(struct pool *pool, uint32_t ticket, const char *failure);
    /* The board was written over: the entries of fronts there shall be written again. */
    void (*on_damage)(struct pool *pool);
    /* What the threads of a worker do, asked for by pool_backtrace; not ok: it ended before it said so. */
    void (*on_backtrace)(struct pool *pool, uint32_t worker, bool ok, struct span text);
    /* The pool was stopped and its last process is gone. */
    void (*on_empty)(struct pool *pool);
};

struct pool_options {
    struct loop *loop;
    const struct config *config;
    const struct config_pool *settings;
    uint32_t loops;             /* of a front */
    const char *runtime;        /* path prefix of its descriptor sockets */
    const char *library;        /* folder of leat/boot.rb */
    char *const *environ;       /* as the server was started */
    int death_pipe;             /* the end that children read */
    int log_fd;                 /* standard output and error of its processes, -1 = as master's */
    const struct rlimit *files; /* RLIMIT_NOFILE as it was */
    const struct pool_host *host;
    void *context;         /* the host's */
    uint32_t generation;   /* the last number that the pool has given in a former instance */
    pid_t handed_pid;      /* a process that has loaded the application already, or 0 */
    int handed_control;    /* our end of its control socket; the pool's from now on */
    struct budget *budget; /* shared by all pools, or NULL: memory is no matter */
    /* [EXIT_REASONS], where ended workers are counted once more for others to read; or NULL. */
    _Atomic uint64_t *exit_counts;
};

/* Processes that ended before anybody told us that they are workers. */
struct pool_lost {
    pid_t pid;
    int wait_status;
};

/* The folder that a generation was loaded from. */
struct pool_release {
    uint32_t generation; /* 0 = none */
    char *folder;        /* owned */
};

enum { POOL_LOST = 32, POOL_ERROR_BYTES = 2048, POOL_RELEASES = 16 };

struct pool {
    struct pool_options options;
    const struct config *config;
    const struct config_pool *settings;
    struct instance instance;
    struct watch report_watch;
    struct task plan_task; /* decides at the end of the batch */
    struct timer timer;    /* and when a deadline has come */
    struct list molds;     /* every generation that has a process, and current and next */
    struct mold *current;
    struct mold *next;       /* or NULL */
    struct worker *workers;  /* [instance.board.shape.workers], owned */
    uint32_t generation;     /* the last number given */
    uint32_t min, max, fits; /* workers */
    uint32_t max_starts;     /* at once */
    int32_t adjust;
    uint32_t wanted;         /* workers, as last decided */
    uint64_t start_ms;       /* that a worker takes to start, 0 = not known */
    struct budget *budget;   /* or NULL */
    struct list member;      /* in budget->pools */
    uint64_t mold_bytes;     /* private, of the last mold that has loaded; 0 = not known */
    uint64_t worker_bytes;   /* of the largest worker, as last known */
    uint64_t waits_ms;       /* since when it waits for room or a processor, 0 = it does not */
    uint64_t waits_bytes;    /* and for how much */
    enum budget_bound bound; /* what it waits for */
    bool is_over;            /* a limit of memory is exceeded */
    struct backoff backoff;
    uint64_t exits[EXIT_REASONS];
    uint64_t oom_kills; /* of the machine, at the last look */
    enum pool_state state;
    bool told_start;      /* on_started was called */
    bool demanded;        /* min 0: requests have come */
    uint64_t demanded_ms; /* the last time that somebody asked */
    bool gives_way;       /* its mold goes with its last worker, although requests may wait */
    bool has_served;      /* workers have come from the mold that is loaded */
    bool is_damaged;      /* its board was written over, and is not yet set right */
    bool draining;        /* no restart and no new mold; workers only for requests that wait */
    bool stopping;
    bool told_empty;
    bool told_serving;  /* what on_state last told */
    bool rolling;       /* the new generation serves, old workers remain */
    bool restart_again; /* asked for while one is under way */
    uint64_t roll_deadline_ms;
    uint32_t restarts;            /* number of the last one begun */
    bool restart_due;             /* to be begun by the plan */
    char error[POOL_ERROR_BYTES]; /* why the last try failed, "" while all is well */
    uint64_t reopened_ms;         /* last pool_reopen, 0 = never */
    uint64_t tidy_bytes;          /* memory of the board after the last pool_tidy */
    struct pool_lost lost[POOL_LOST];
    unsigned lost_next;
    struct pool_release releases[POOL_RELEASES]; /* by generation; the latest in each place */
};

/* Makes a pool with its board, without processes; NULL with faults. */
struct pool *pool_new(const struct pool_options *options, struct faults *faults);

/* The same on an instance that is there already, which is the pool's from now on; closed on failure. */
struct pool *pool_new_of(const struct pool_options *options, const struct instance *instance,
                         struct faults *faults);

/* Goes on with the settings of another configuration, in which it has the same shape (config/shape.h). */
void pool_change(struct pool *pool, const struct config *config,
                 const struct config_pool *settings);

/* Frees a pool without processes; NULL is harmless. */
void pool_free(struct pool *pool);

/* Starts the first generation; the outcome comes by on_started, -1 with faults when it is known at
 * once. */
int pool_start(struct pool *pool, struct faults *faults);

/* The start failed at once, and the pool lives on: the outcome is told by on_started, and it is tried again
 * as after any failure. */
void pool_fail_start(struct pool *pool, const struct fault *fault);

/* A child of this process ended. False when the pool does not know it (yet). */
bool pool_child_ended(struct pool *pool, pid_t pid, int wait_status);

/* Reads what molds and workers have reported; before children are reaped, so that a process is known
 * when its end is told. */
void pool_read_reports(struct pool *pool);

/* Asks for a rolling restart; the ticket whose on_restarted will tell. */
uint32_t pool_restart(struct pool *pool);

/* Log files were opened anew: molds and workers whose output is one of them do the same. */
void pool_reopen(struct pool *pool);

/* A front has requests that nobody takes: starts a pool that waited for its first one. */
void pool_want(struct pool *pool);

/* The server is being stopped and its requests are finished first. The same signal may have come to the
 * pool's processes: their end is no trouble from now on, and they are put back only while requests wait
 * that nobody else serves. */
void pool_drain(struct pool *pool);

/* Wants one worker more (+1) or less (-1). */
void pool_adjust(struct pool *pool, int change);

/* A front has given back what it had in a dead worker, or no front is left to do so. */
void pool_audited(struct pool *pool, uint32_t worker);

/* A front says that a worker ran into `timeout`, or wrote garbage. */
void pool_worker_late(struct pool *pool, uint32_t worker, uint32_t slot);
void pool_worker_broken(struct pool *pool, uint32_t worker);

/* Asks the worker with that PID what its threads do; the answer comes by on_backtrace, within seconds.
 * False when there is no such worker. */
bool pool_backtrace(struct pool *pool, pid_t pid, uint32_t *ret_worker);

/* A front has ended one of a worker's requests by hand: it goes as one that ran into `timeout` does. */
void pool_request_killed(struct pool *pool, uint32_t worker);

/* Retires every process, killing what is left after grace_ms; on_empty follows. */
void pool_stop(struct pool *pool, uint64_t grace_ms);

/* Kills every process at once. */
void pool_kill(struct pool *pool);

/* Gives back the board's memory that a deep queue has touched, when the queue is empty again and it is
 * worth it. */
void pool_tidy(struct pool *pool);

/* Workers that serve now. */
uint32_t pool_serving(const struct pool *pool);

/* The wanted number of workers, and its limits: on demand the least is 0, whoever asks. */
uint32_t pool_wanted(const struct pool *pool);
uint32_t pool_least(const struct pool *pool);
uint32_t pool_most(const struct pool *pool);

/* Milliseconds until the next try, 0 when none is being waited for. */
uint64_t pool_wait_ms(const struct pool *pool);

/* The generation of that number, or NULL when it is gone. */
struct mold *pool_find_mold(const struct pool *pool, uint32_t generation);

/* The word of its state. */
const char *pool_state_word(enum pool_state state);

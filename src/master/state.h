/* SPDX-License-Identifier: MIT */
/*
 * What the files of master/ share: the one struct master of the process.
 *
 * Phases go one way: STARTING (listening, the applications load) -> RUNNING -> DELAY (stop asked, still
 * accepting) -> DRAINING (fronts finish) -> RETIRING (fronts are gone, workers leave) -> ENDED.
 */
#pragma once

#include "base/buf.h"
#include "control/control.h"
#include "control/path.h"
#include "front/counters.h"
#include "front/front.h"
#include "front/message.h"
#include "loop/listen.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "master/pidfile.h"
#include "pool/capacity.h"
#include "pool/environment.h"
#include "pool/pool.h"

#include <sys/resource.h>

enum master_phase {
    MASTER_STARTING,
    MASTER_RUNNING,
    MASTER_DELAY,
    MASTER_DRAINING,
    MASTER_RETIRING,
    MASTER_ENDED
};

enum { NOTIFY_STATUS_BYTES = 512 };

/* A listening socket, shared by all editions that listen there. */
struct master_listener {
    struct list link; /* in the master's listeners */
    unsigned refs;    /* editions */
    int fd;           /* -1: given up, only fronts that empty it have it still */
    struct address address;
    struct config_listener *own; /* owned: of a passed socket that no listener names */
    bool inherited;              /* passed by systemd: its file is not ours to remove */
    dev_t device;                /* of a Unix socket's file */
    ino_t inode;
};

/* A message that a front did not take at once. */
struct master_parcel {
    struct list link;
    struct front_message message;
    int fds[2]; /* owned copies */
    size_t count;
};

/* A front by its entry in every board. */
struct master_front {
    struct master *master;
    pid_t pid;               /* 0 = none */
    struct edition *edition; /* that it runs on; a counted reference */
    int channel;
    struct watch watch;
    struct list parcels;
    bool accepting;
    bool was_accepting;
    bool retiring; /* another one has its listeners */
    bool released; /* and it has closed them */
    bool ending;   /* and has been told to end its streams */
    bool mute; /* its numbers of pools mean nothing here: not heard, and told nothing of pools */
    bool
        deaf; /* of a build that speaks otherwise: it was told to retire by that one, and is mute */
    uint64_t started_ms;
};

/* An instance of a pool: its board and processes, shared by all editions in which it has the same shape. */
struct master_pool {
    struct list link;            /* in the master's instances */
    unsigned refs;               /* editions */
    struct edition_config *held; /* whose settings it has; a counted reference */
    struct master *master;
    uint32_t counted; /* its place in the counters, by its name */
    struct pool *pool;
    char runtime[BOARD_RUNTIME_BYTES];
    int log_fd;    /* what its processes write to, owned; -1 = as master's */
    bool retiring; /* no edition has it any more: freed with its last process */
    bool settled;  /* the outcome of its first start is known */
    bool failed;   /* and it was a failure */
    /* What fronts were told of releases with workers; "" = none in that place. */
    char releases[FRONT_RELEASES][FRONT_TEXT];
    uint64_t marker; /* mtime of tmp/restart.txt as last seen, nanoseconds; 0 = none */
};

/* A restart of one pool that somebody waits for; pool NULL: over. */
struct master_ticket {
    const struct master_pool *pool;
    uint32_t number;
};

/* A `restart` call that waits for the outcome. */
struct master_waiter {
    struct list link;
    struct control_call *call;
    struct master_ticket *tickets; /* owned */
    uint32_t ticket_size;
    bool failed;
    struct buf text;
};

/* What was once counted under a name stays there: another edition may have it in another order. */
struct master_names {
    char **items; /* owned */
    uint32_t size;
};

/* Loading the configuration anew, see reload.h. */
struct master_reload {
    struct edition *edition; /* under way: a counted reference; NULL = none is */
    int entry;               /* of its front, -1 = not forked yet */
    bool taken;        /* the edition is the current one: former fronts let go of their sockets */
    bool asked;        /* one more, when this one is over */
    struct task task;  /* begins it */
    struct list calls; /* of those who wait for this one */
    struct list next_calls; /* and these for the next */
    struct timer timer;
    uint64_t limit_ms; /* when the step under way is given up */
};

struct saved;
struct upgrade;

struct master {
    struct edition *edition;     /* the current one; a counted reference */
    const struct config *config; /* the edition's, as are the pools below */
    struct environment environment;
    struct loop *loop;
    enum master_phase phase;
    int exit_status;
    uint64_t started_ms;

    char **argv;           /* owned; the command line */
    char *cwd;             /* owned; where it was started, as its user saw it */
    char *binary;          /* owned; path of this program, as it was called */
    char *library_version; /* owned; of the Ruby files that molds were started from, or NULL */

    struct rlimit files;    /* RLIMIT_NOFILE as it was */
    int death_pipe[2];      /* [1] is open here alone */
    int outcome_pipe;       /* to the process that waits in the foreground, or -1 */
    struct account account; /* of the front */

    int signal_fd;
    struct watch signal_watch;
    bool has_terminal; /* HUP may mean that it vanished */
    bool hup_ignored;  /* at start, as nohup does */

    struct pidfile pidfile;
    struct list listeners; /* struct master_listener: all that are open */

    char run[CONTROL_PATH];         /* RUN, "" when there is none */
    char socket_path[CONTROL_PATH]; /* of the control socket */
    char links[2][CONTROL_PATH];    /* beside the PID file, by name; "" = none */
    int control_fd;
    struct control *control;
    struct list waiters;
    struct list stop_calls; /* struct master_waiter without tickets */
    struct list backtraces; /* calls that wait for a worker's answer, see backtraces.c */
    struct list inquiries;  /* `requests` calls that wait for fronts; requests.c */
    uint64_t inquiry;       /* number of the latest */

    struct saved *saved; /* what a former program left, while it is taken over; else NULL */
    struct master_pool *
        *taken; /* owned; the instances in it by their numbers, NULL = cannot be used */
    uint32_t taken_size;
    bool outdated;      /* what was taken over runs with other Ruby files than ours */
    struct list strays; /* processes that only fronts of a former program use */
    struct timer stray_timer;
    bool taking_over;          /* until a front of this program accepts */
    struct upgrade *upgrade;   /* under way, or NULL */
    struct list upgrade_calls; /* who is told its outcome */

    struct front_counters *counters; /* shared */
    int counters_fd;                 /* the memory file that holds them */
    struct master_front fronts[BOARD_FRONTS];
    unsigned front_crashes; /* in a row */
    struct timer front_timer;
    struct master_names counted_pools;
    struct master_names counted_sites;

    struct budget budget;       /* memory of all pools */
    struct master_pool **pools; /* of the current edition */
    uint32_t pool_size;
    struct config_options *options; /* of the start, owned */
    struct master_reload reload;
    struct list instances;  /* struct master_pool: these, those that start and those that retire */
    uint32_t instance_size; /* made so far */
    struct task sweep_task; /* frees retired ones */
    char *library;          /* owned */
    pid_t handed_pid;
    int handed_control;

    int notify_fd; /* to the service manager, or -1 */
    struct address notify_address;
    struct timer notify_timer; /* its watchdog's next sign of life */
    uint64_t notify_period_ms; /* 0 = it wants none */
    int notify_changes;        /* reloads and the like that are under way */
    bool notified_change;      /* it was told that something is being exchanged */
    char notified_status[NOTIFY_STATUS_BYTES];
    bool notified_stop;

    struct timer tick; /* restart.txt, idle pages */
    uint64_t ticked_requests;
    bool is_tidy; /* nothing came since the boards were tidied */
    struct timer stop_timer;
    bool at_once; /* a stop that does not wait */
    uint64_t cut; /* requests */
};

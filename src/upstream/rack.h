/* SPDX-License-Identifier: MIT */
/*
 * The handler for Rack applications: one loop's side of one pool's board. It writes a request into a
 * slot, wakes a worker, takes the answer's pages as they come and gives up what waited too long. One
 * struct rack per loop and pool, used by that loop's thread only.
 *
 * What decides lies in private memory: a table slot -> (turn, job). Nothing read back from the board is
 * believed: indices are checked, bytes are copied out before they are looked at, and whatever does not
 * fit ends that answer and reports the worker.
 *
 * Invariants: a slot is held from its claim until it was seen DONE (or audited) and freed; a held slot
 * has a job while somebody waits for its answer; a job is never touched after its exchange was ended.
 */
#pragma once

#include "board/slot.h"
#include "http/exchange.h"

#include <stdatomic.h>

struct rack;
struct rack_descriptors;

/* What the front does when the pool's state shows; all on the loop's thread. */
struct rack_owner {
    /* Requests wait and nobody takes them. */
    void (*on_wanted)(void *data);
    /* A request ran over its time limit; the client has its 504. */
    void (*on_late)(void *data, uint32_t worker, uint32_t slot);
    /* A request that the worker runs was ended by hand: it does not know, and may never end. */
    void (*on_killed)(void *data, uint32_t worker);
    /* The worker wrote what no worker writes. */
    void (*on_broken)(void *data, uint32_t worker);
    /* Answers with the file that the application names by this path below an internal root. */
    void (*send_internal)(void *data, struct exchange *exchange, struct span path, unsigned status);
    /* Answers with an open file (owned from now on); false when it cannot, the file is closed then. */
    bool (*send_file)(void *data, struct exchange *exchange, int fd, unsigned status);
};

/* Counters shared with others, added to with relaxed order; NULL ones are not kept. */
struct rack_counters {
    _Atomic uint64_t *shed, *expired, *abandoned, *reruns, *underscores;
    _Atomic uint64_t *streams; /* a gauge */
    _Atomic uint64_t *answers; /* a gauge: streams without a slot that are answers all the same */
};

struct rack_options {
    const char *pool; /* its name, for log lines */
    const struct board *board;
    uint32_t front;            /* entry number */
    uint32_t loop;             /* loop number */
    uint32_t workers_max;      /* that the pool may have; 0 = it has all it will */
    uint64_t queue_timeout_ms; /* 0 = no limit */
    uint64_t timeout_ms;       /* from taken to the answer's head; 0 = no limit */
    uint64_t head_limit;       /* bytes of an answer's head */
    bool pass_underscore;
    const char *spool_folder;
    uint64_t *spool_used; /* the loop's, as in struct h1_options */
    uint64_t spool_limit;
    struct rack_counters counters;
    const struct rack_owner *owner;
    void *owner_data;
};

/* The options' strings and the board outlive it. NULL when the system refuses. */
struct rack *rack_new(struct loop *loop, const struct rack_options *options);

/* Requests still held are forgotten: only when the loop has ended. Takes NULL. */
void rack_free(struct rack *rack);

/* Takes a complete request over: sets its handler, queues it, and answers it in time. */
void rack_start(struct rack *rack, struct exchange *exchange);

/* A worker is dead (master has marked it): takes the pages it had published, then runs its requests
 * again or ends them, by the crash rules. */
void rack_bury_worker(struct rack *rack, uint32_t worker);

/* What becomes of a request now. */
enum rack_stage {
    RACK_QUEUED,
    RACK_RUNNING,
    RACK_STREAMING, /* its answer has begun and is open-ended, or its connection was taken over */
    RACK_LEFT,      /* nobody waits for it any more, but a worker still runs it */
    RACK_STAGES
};

/* A request as its operator sees it; the spans are valid during the call only. Those of one that was LEFT
 * come from the board: any bytes. */
struct rack_request {
    enum rack_stage stage;
    uint32_t
        pid; /* of the worker that has it, or had it when it took the connection over; 0 = none */
    uint64_t age_us; /* since it was complete */
    uint64_t run_us; /* since it was taken; 0 = not yet */
    struct span method, path, client, id;
};

typedef void rack_visit(void *data, const struct rack_request *request);

/* Shows every request that waits or runs. */
void rack_list(struct rack *rack, rack_visit *visit, void *data);

/* Ends the requests of that id by hand, and shows them as they were. One that waits is answered 503; one
 * that runs 502, or is cut when its answer has begun, and is never run again. */
void rack_kill(struct rack *rack, struct span id, rack_visit *visit, void *data);

/* Number of slots held now. */
uint32_t rack_held(const struct rack *rack);

/* SPDX-License-Identifier: MIT */
/*
 * The memory that all pools share: who may start what, and who gives up what when it is short. One for the
 * server, owned by master; every pool is a member of it. Master's only thread.
 *
 * Counted is private memory. A mold counts with what it had when it had loaded: pages that its workers share
 * with it are private to nobody later, but are there. A worker counts with what it last reported, never with
 * more than it can have by what the system says; whoever is not loaded yet, with what its like took before.
 *
 * Bounds: `memory_total` of the pool, `memory_total` of all pools (80 % of the machine or group unless it is
 * set), and what the machine and the group really have left. While they are under pressure no pool gets a
 * further worker, and idle ones go. The first worker of a pool that has a MIN is always started.
 *
 * When a pool that has no worker finds no room, workers of other pools above their MIN give way: idle ones at
 * once, longest idle first; busy ones after their requests, when it has waited for a second. Pools that wait
 * are served in the order in which they began to.
 */
#pragma once

#include "base/list.h"
#include "loop/loop.h"
#include "pool/capacity.h"

struct pool;
struct worker;

/* Why there is no room. */
enum budget_bound {
    BUDGET_NONE,     /* there is */
    BUDGET_POOL,     /* memory_total of the pool */
    BUDGET_ALL,      /* memory_total of all pools */
    BUDGET_MACHINE,  /* what the machine or the group has left */
    BUDGET_PRESSURE, /* others wait for memory already */
};

/* What the decision needs. */
struct budget_question {
    uint64_t need;                  /* bytes of one more */
    uint64_t pool_used, pool_limit; /* limit 0 = none */
    uint64_t all_used, all_limit;
    uint64_t left;     /* by machine and group, less what those that are starting will take */
    uint64_t reserve;  /* of it, not to be touched */
    uint32_t pressure; /* as struct capacity has it */
    bool is_first;     /* the pool has no worker, not even one that is starting */
    bool is_owed;      /* and must get one, whatever it takes */
};

/* How many there is room for, UINT32_MAX = without bound; *ret_bound is the tightest bound. Pure. */
uint32_t budget_answer(const struct budget_question *question, enum budget_bound *ret_bound);

struct budget {
    struct list pools; /* struct pool.member */
    uint64_t limit;    /* of all pools, bytes; 0 = none */
    uint32_t cpus;
    struct capacity capacity; /* as last read, */
    uint64_t read_ms;         /* and when; 0 = never */
    int pressure_fd;          /* tells when memory gets short, or -1 */
    struct watch watch;
};

/* Walks the links of all pools that share a pool's budget, itself included; of none when it has no budget. */
#define budget_for_each(link, pool)                                              \
    for (struct list *link = (pool)->budget ? (pool)->budget->pools.next : NULL; \
         link && link != &(pool)->budget->pools; link = link->next)

struct pool *budget_member(struct list *link);

/* Without members; memory_total 0 = 80 % of the smaller of machine and group. */
void budget_open(struct budget *budget, struct loop *loop, uint64_t memory_total);
void budget_close(struct budget *budget);

/* Another configuration says so. */
void budget_limit(struct budget *budget, uint64_t memory_total);

/* A pool that is there from now on, or no more. */
void budget_join(struct budget *budget, struct pool *pool);
void budget_leave(struct pool *pool);

/* Bytes that a pool's processes take, those that are starting included. */
uint64_t budget_used(const struct pool *pool);

/* Bytes of one worker. */
uint64_t budget_bytes_of(const struct pool *pool, const struct worker *worker);

/* Bytes that come back soon: of workers that retire, and of a mold whose last worker does. */
uint64_t budget_leaving(const struct pool *pool);

/* Bytes that one more worker, or a mold, of this pool will take. */
uint64_t budget_worker_bytes(const struct pool *pool);
uint64_t budget_mold_bytes(const struct pool *pool);

/* Starts under way in all pools. */
uint32_t budget_starting(const struct pool *pool);

/* How many of the missing workers the pool may start now; with_mold: its mold must be loaded first. 0: it is
 * noted as waiting, and others are asked to give way when memory is what is lacking. */
uint32_t budget_ask(struct pool *pool, uint32_t missing, bool with_mold, uint64_t now_ms);

/* Whether one more worker fits, as far as memory is concerned; nobody is asked to give way. */
bool budget_has_room(struct pool *pool, uint64_t now_ms);

/* The pool wants nothing more. */
void budget_content(struct pool *pool);

/* Memory was given back, or a start is over: whoever waits for either looks again. */
void budget_changed(struct pool *pool);

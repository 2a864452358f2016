/* SPDX-License-Identifier: MIT */
/*
 * The new program's side of an upgrade: it finds what the former one wrote down (handover.h) in a memory
 * file that LEAT_UPGRADE names, `check:FD` for a child that only says whether it could go on from there,
 * `run:FD` for the process that does. There each step of a start asks here first, and takes what is there
 * instead of opening it.
 *
 * A former front goes on with an edition of its own, whose pools are those that it knows; it is drained as
 * soon as a front of the present edition accepts. An instance that the configuration still wants as it is
 * belongs to both, so that neither its workers nor who waits for them notices anything; one that it does
 * not want, or whose board this build cannot read, ends with the last front that uses it.
 */
#pragma once

#include "base/saved.h"
#include "master/edition.h"

#define TAKEOVER_VARIABLE "LEAT_UPGRADE"
#define TAKEOVER_CHECK    "check"
#define TAKEOVER_RUN      "run"

/* The line with which a child ends that could: this, its version, and the dialect of its fronts. */
#define TAKEOVER_ABLE "leat: able to take over as "

enum takeover {
    TAKEOVER_NONE,    /* an ordinary start */
    TAKEOVER_ASKED,   /* check */
    TAKEOVER_ORDERED, /* run */
    TAKEOVER_BROKEN   /* there is something that cannot be read */
};

/* Looks for it, once: the variable is gone afterwards. *ret_saved is the caller's. */
enum takeover takeover_find(struct saved **ret_saved);

/* Whether this program can go on with that state and configuration; false with faults. */
bool takeover_check(const struct config *config, struct saved *saved, struct faults *faults);

/* The steps, in their order. Each leaves alone what the former program has not left. */
void takeover_process(struct master *master);
bool takeover_pid_file(struct master *master);
void takeover_listeners(struct master *master);
void takeover_logs(struct edition *edition);
bool takeover_place(struct master *master);
void takeover_counters(struct master *master);
void takeover_pools(struct master *master);

/* The instance that this pool of the edition goes on with, one more reference; NULL = it needs a new one. */
struct master_pool *takeover_find_pool(struct edition *edition, uint32_t number);

/* A pool of the present edition has come to serve, or failed: forks the front when all are ready. */
void takeover_settle(struct master *master);

/* A front of this program accepts: whoever asked for the upgrade is told. */
void takeover_done(struct master *master);

/* A front is gone; when it was the last one there is nothing to wait for any more. */
void takeover_front_ended(struct master *master);

/* Everything is there: the former fronts and the processes go on. */
void takeover_resume(struct master *master);

/* SPDX-License-Identifier: MIT */
/*
 * The private side of a struct rack, shared by the files rack*.c and by nobody else: the table of held
 * slots, and the jobs that wait for their answers.
 *
 *   entries[slot] --> job --> exchange        (a job lies in its exchange's arena)
 */
#pragma once

#include "board/page.h"
#include "loop/timer.h"
#include "upstream/rack.h"
#include "upstream/rack_forecast.h"
#include "upstream/rack_reply.h"

enum { RACK_NOBODY = UINT32_MAX };

/* A part of an answer that lies in an unlinked file, because its client is slow. Lives in the exchange's
 * arena and is closed with it. */
struct rack_spool {
    int fd;
    uint64_t written; /* bytes in the file */
    uint64_t handed;  /* of them given to the exchange */
    uint64_t *used;   /* where they are counted */
    struct arena *arena;
};

/* One request that waits for its answer. */
struct rack_job {
    struct rack *rack;
    struct exchange *exchange;
    uint32_t slot;
    uint32_t turn;
    uint64_t queued_us;
    uint64_t taken_us;  /* 0 until rack_taken_us has looked */
    struct list fresh;  /* in rack->fresh until its first deadline */
    struct timer timer; /* later deadlines */
    uint32_t thread;    /* who answers, RACK_NOBODY until its first page */
    unsigned kills, reruns;
    struct reply reply;
    struct buf head;      /* a head that comes in parts */
    struct span internal; /* the file that the head names in place of the body */
    int file_fd;          /* passed for the FILE record, or -1 */
    int tunnel_fd;        /* our end of the pair made for the TUNNEL record, or -1 */
    struct rack_spool *spool;
    bool is_held_back; /* pages stay in the board until resume */
    bool is_stream;
};

/* One slot of the board as this loop knows it. */
struct rack_entry {
    bool held;
    uint32_t turn;
    bool is_tunnel;       /* its connection was taken over: it is in rack->tunnels */
    struct rack_job *job; /* NULL: nobody waits any more, it is freed when DONE */
    struct list orphan;   /* in rack->orphans while held without job */
};

/* A connection that an application has taken over; in its exchange's arena. */
struct rack_tunnel {
    struct list link; /* in rack->tunnels */
    struct rack *rack;
    struct exchange *exchange;
    uint32_t slot, turn; /* where it came from, and may still run */
    uint32_t pid;        /* of the worker, 0 = unknown */
    uint64_t queued_us, taken_us;
};

struct rack {
    struct rack_options options;
    struct loop *loop;
    struct rack_entry *entries; /* [shape.slots] */
    uint32_t held;
    uint32_t top; /* entries from here up were never held */
    bool burying; /* a dead worker's last pages are taken at any pace */
    struct list orphans;
    struct list tunnels;
    struct list fresh;      /* jobs in order of queueing: all have the same first deadline */
    uint64_t first_look_us; /* how long after queueing it comes; 0 = never */
    struct timer fresh_timer;
    struct timer
        nudge_timer; /* only while a wake is unanswered or a request may need a busy process */
    struct task wake_task;         /* wakes for what was queued in this batch */
    uint32_t unwoken;              /* requests queued since the last wake */
    uint64_t wanted_us;            /* when on_wanted was called last */
    struct forecast_recent recent; /* service times of answers that came here */
    uint64_t step_ns;              /* forecast_step_ns as it was at step_us */
    uint64_t step_us;              /* 0 = never */
    struct loop_hook hook;
    struct watch bell;
    char page[BOARD_PAGE_BYTES]; /* the page being read */
};

/* rack_fill.c: writes the request into a claimed slot. False when it does not fit. */
bool rack_fill(struct rack *rack, uint32_t slot, const struct exchange *exchange);

/* rack.c: the job's answer is over or nobody wants it: lets go of the exchange (which stays untouched)
 * and leaves the slot to be freed when it is DONE. */
void rack_detach(struct rack_job *job);

/* rack.c: the same for a job whose slot no worker has: it is free at once. */
void rack_give_back(struct rack_job *job);

/* rack.c: the job ends with an own page, or visibly cut when its head was sent; the worker is told. */
void rack_refuse(struct rack_job *job, enum refusal refusal, enum slot_note note);

/* rack.c: the same for an answer that is no answer; reports the worker. */
void rack_break(struct rack_job *job, uint32_t worker, const char *reason);

/* rack.c: when the worker says it took the request, which it has; read once, so that a worker cannot put
 * its deadline off, and now when what it says cannot be. */
uint64_t rack_taken_us(struct rack_job *job);

/* rack.c: whether the answer is an open-ended stream, for the gauge. */
void rack_set_stream(struct rack_job *job, bool is_stream);

/* rack.c: a held slot was freed on the board, or is not ours any more. */
void rack_forget(struct rack *rack, struct rack_entry *entry);

/* rack_wake.c: wakes a worker for what was queued, at the end of the batch, and sees to it that somebody
 * comes. */
void rack_wake_init(struct rack *rack);
void rack_wake(struct rack *rack);

/* Says to master that requests wait or are refused, at most once a second. */
void rack_want(struct rack *rack, uint64_t now_us);

/* rack_outlook.c: whether a newcomer would wait longer than queue.timeout; then *ret_retry_s is when the
 * queue is expected to be empty. */
bool rack_is_hopeless(struct rack *rack, unsigned *ret_retry_s);

/* rack_outlook.c: seconds until the queue is expected to be empty, or otherwise_s when nobody knows. */
unsigned rack_retry_s(struct rack *rack, unsigned otherwise_s);

/* rack_outlook.c: a job's answer is over: remembers how long it took. */
void rack_note_service(struct rack_job *job);

/* rack_notice.c: hooks the rack into its loop; takes all pages of a worker's threads; frees orphans that
 * are DONE (returns how many). */
int rack_listen(struct rack *rack);
void rack_unlisten(struct rack *rack);
void rack_take_thread(struct rack *rack, uint32_t thread);
uint32_t rack_collect(struct rack *rack);

/* rack_body.c: reads a page's records, already copied, into the job's exchange. The job may be gone
 * afterwards. */
void rack_take_records(struct rack_job *job, struct span records);

/* rack_body.c: hands spooled bytes over when the client has taken what was before; for resume. */
void rack_hand_over(struct rack_job *job);

/* rack_list.c: the process of that worker, 0 when it is none. */
uint32_t rack_pid(const struct rack *rack, uint32_t worker);

/* rack_tunnel.c: makes the pair for a hijack; one end stays with the job. 0 or a positive errno. */
int rack_tunnel_offer(struct rack_job *job, int *ret_fd);

/* rack_tunnel.c: the connection leaves the exchange's job for the pair; false when none was offered. The
 * job is over otherwise. */
bool rack_tunnel_take(struct rack_job *job);

/* The slot that a tunnel came from, while the worker has not let go of it; else NULL. */
static inline struct rack_entry *rack_find_tunnel_entry(const struct rack_tunnel *tunnel)
{
    struct rack_entry *entry = &tunnel->rack->entries[tunnel->slot];

    return entry->held && entry->turn == tunnel->turn ? entry : NULL;
}

/* The job that waits for (slot, turn), or NULL. */
static inline struct rack_job *rack_find_job(struct rack *rack, uint32_t slot, uint32_t turn)
{
    if (slot >= rack->options.board->shape.slots)
        return NULL;
    if (!rack->entries[slot].held || rack->entries[slot].turn != turn)
        return NULL;
    return rack->entries[slot].job;
}

static inline void rack_count(_Atomic uint64_t *counter)
{
    if (counter)
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

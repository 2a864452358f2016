/* SPDX-License-Identifier: MIT */
/*
 * The file threads: open, stat, cold reads and name look-ups that could block a loop. A few threads serve
 * all loops of the process. A disk may take seconds over one file, so that is not the measure of others:
 * two jobs of the same key at the most are worked on at a time, and when no other job was begun for a
 * moment, further threads are started, up to OFFLOAD_THREADS; they go when they are no longer needed.
 */
#pragma once

#include "loop/post.h"

#include <stdint.h>

struct loop;
struct offload;

enum { OFFLOAD_THREADS = 32 };

/* One piece of work, embedded by its owner, who must keep it until on_done has been called. */
struct offload_job {
    struct post_item item; /* used by offload */
    struct list link;      /* used by offload */
    struct post *post;     /* where on_done runs */
    uint64_t key; /* a hash of what it waits for, the same for the same file; 0 = nothing */
    void (*work)(struct offload_job *job); /* on a file thread: may block, touches only the job */
    void (*on_done)(struct offload_job *job); /* on the loop of `post` */
};

/* Starts count threads (at most half of OFFLOAD_THREADS), which stay; NULL when the system refuses. */
struct offload *offload_new(unsigned count);

/* Waits for the work under way and ends the threads; work not begun is handed back undone first: its
 * on_done finds the job as it was sent. The boxes of all jobs must outlive this call. Takes NULL. */
void offload_free(struct offload *offload);

/* Hands a job over; any thread. */
void offload_send(struct offload *offload, struct offload_job *job);

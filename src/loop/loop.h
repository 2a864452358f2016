/* SPDX-License-Identifier: MIT */
/*
 * One event loop per thread: epoll, timers, tasks for the end of a batch, and hooks that run before
 * the thread sleeps. Everything here is called by the loop's own thread; `loop/post.h` is the only
 * way in from another.
 *
 * Invariants: a watch is known to at most one loop; after loop_unwatch its callback is never called
 * and its memory never read, also when epoll has already reported it in this batch; a callback is
 * told nothing that its watch has ceased to ask for. A loop without work makes no system call.
 */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct timer_heap;

/* What a descriptor is ready for; the values of EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR
 * and EPOLLEXCLUSIVE are used as they are. */
struct watch {
    int fd;          /* -1 while not watched; not owned */
    uint32_t events; /* what is asked for */
    void (*on_ready)(struct watch *watch, uint32_t events);
    struct loop *loop; /* set by loop_watch, NULL while not watched */
};

/* Work for the end of the current batch of events; runs once per loop_defer. */
struct task {
    struct list link;
    void (*run)(struct task *task);
};

/* Called before the thread would sleep and after it woke: on_sleep returns false when there is work
 * after all (then the loop polls without sleeping and calls on_wake). All hooks are asked, whatever
 * the first ones say. on_wake is also called when the loop had no time to sleep at all. */
struct loop_hook {
    struct list link;
    bool (*on_sleep)(struct loop_hook *hook);
    void (*on_wake)(struct loop_hook *hook);
};

/* Makes a loop; NULL when the system refuses. Opens descriptors close-on-exec. */
struct loop *loop_new(void);

/* Frees a loop that has no watches any more; timers, tasks and hooks are unset. Takes NULL. */
void loop_free(struct loop *loop);

/* Watches fd for events and calls on_ready. 0 or negative errno. The watch must have been zeroed or
 * unwatched before. */
int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
               void (*on_ready)(struct watch *, uint32_t));

/* Changes what a watch asks for (0 = only errors and hang-up). 0 or negative errno. The system does
 * not allow it with EPOLLEXCLUSIVE: end such a watch and begin anew. */
int loop_rewatch(struct watch *watch, uint32_t events);

/* Ends a watch; harmless when it is not watched. Does not close the descriptor, which must still be
 * open: epoll keeps a closed one that has duplicates elsewhere. */
void loop_unwatch(struct watch *watch);

/* The same for a descriptor without duplicates that is closed next, which ends epoll's interest in it:
 * saves a system call per connection. */
void loop_forget(struct watch *watch);

/* Prepares a task; runs it at the end of this batch, at once before the next sleep. A task that is
 * already waiting is not added twice. The loop never sleeps while a task waits, but lets events in
 * between tasks that defer again and again, so that long work can be cut into pieces. */
void task_init(struct task *task, void (*run)(struct task *));
void loop_defer(struct loop *loop, struct task *task);
void task_cancel(struct task *task);

/* Adds or removes a hook (removal: list_remove(&hook->link); within a hook only itself). */
void loop_add_hook(struct loop *loop, struct loop_hook *hook);

/* Runs until loop_stop. One batch: events, timers that are due, deferred tasks; in this order, so
 * that bytes which have come move the deadline they were waited for with. A loop that is stopped
 * before it runs returns at once. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Handles what is ready now, waiting at most wait_ms (-1 = no limit) for the first event. Returns
 * the number of events. For tests and for owners of a larger loop. */
int loop_step(struct loop *loop, int wait_ms);

/* Monotonic milliseconds (microseconds) as of the start of this batch; outside of one, of now. */
uint64_t loop_now_ms(const struct loop *loop);
uint64_t loop_now_us(const struct loop *loop);

/* The loop's deadlines, for timer.c. */
struct timer_heap *loop_timers(struct loop *loop);

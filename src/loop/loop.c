/* SPDX-License-Identifier: MIT */
#include "loop/loop.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "loop/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum {
    BATCH_MAX = 256,  /* events taken from epoll at once */
    TASK_ROUNDS = 16, /* how often tasks may defer one another before events are looked at again */
};

struct loop {
    int epoll_fd;
    bool stopped;
    bool in_batch;   /* now_us holds the time */
    uint64_t now_us; /* start of the batch */
    struct list tasks;
    struct list hooks;
    struct timer_heap timers;
    int next;  /* events[next .. ready) are reported and not yet handled */
    int ready; /* an entry whose watch has ended is NULL */
    struct epoll_event events[BATCH_MAX];
};

struct loop *loop_new(void)
{
    struct loop *loop;
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd == -1)
        return NULL;
    loop = must_alloc(1, sizeof(*loop));
    loop->epoll_fd = fd;
    list_init(&loop->tasks);
    list_init(&loop->hooks);
    return loop;
}

static void empty(struct list *head)
{
    while (!list_is_empty(head))
        list_remove(head->next);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    CHECK(!loop->in_batch);
    empty(&loop->tasks);
    empty(&loop->hooks);
    timer_heap_done(&loop->timers);
    fd_close(&loop->epoll_fd);
    free(loop);
}

static int control(struct loop *loop, int operation, struct watch *watch, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    return epoll_ctl(loop->epoll_fd, operation, fd, &event) == -1 ? -errno : 0;
}

int loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
               void (*on_ready)(struct watch *, uint32_t))
{
    int error;

    CHECK(!watch->loop);
    error = control(loop, EPOLL_CTL_ADD, watch, fd, events);
    if (error)
        return error;
    *watch = (struct watch){.fd = fd, .events = events, .on_ready = on_ready, .loop = loop};
    return 0;
}

int loop_rewatch(struct watch *watch, uint32_t events)
{
    int error;

    CHECK(watch->loop);
    if (watch->events == events)
        return 0;
    error = control(watch->loop, EPOLL_CTL_MOD, watch, watch->fd, events);
    if (error)
        return error;
    watch->events = events;
    return 0;
}

/* The owner may free the watch before the batch ends, so that the batch must forget it now. */
static void forget_reports(struct loop *loop, const struct watch *watch)
{
    for (int i = loop->next; i < loop->ready; i++)
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL;
}

void loop_forget(struct watch *watch)
{
    struct loop *loop = watch->loop;

    if (!loop)
        return;
    forget_reports(loop, watch);
    watch->fd = -1;
    watch->loop = NULL;
}

void loop_unwatch(struct watch *watch)
{
    struct loop *loop = watch->loop;

    if (!loop)
        return;
    CHECK(control(loop, EPOLL_CTL_DEL, watch, watch->fd, 0) == 0);
    loop_forget(watch);
}

void task_init(struct task *task, void (*run)(struct task *task))
{
    list_init(&task->link);
    task->run = run;
}

void loop_defer(struct loop *loop, struct task *task)
{
    if (list_is_empty(&task->link))
        list_push_back(&loop->tasks, &task->link);
}

void task_cancel(struct task *task)
{
    list_remove(&task->link);
}

/* Runs the tasks that wait now; those they defer wait for the next round. A mark in the list rather
 * than a count, since a task may cancel others. */
static void run_round(struct loop *loop)
{
    struct list mark;

    list_init(&mark);
    list_push_back(&loop->tasks, &mark);
    while (loop->tasks.next != &mark) {
        struct task *task = CONTAINER_OF(loop->tasks.next, struct task, link);

        list_remove(&task->link);
        task->run(task);
    }
    list_remove(&mark);
}

static void run_tasks(struct loop *loop)
{
    for (int i = 0; i < TASK_ROUNDS && !list_is_empty(&loop->tasks); i++)
        run_round(loop);
}

void loop_add_hook(struct loop *loop, struct loop_hook *hook)
{
    list_push_back(&loop->hooks, &hook->link);
}

static bool hooks_allow_sleep(struct loop *loop)
{
    bool allowed = true;

    list_for_each_safe (link, &loop->hooks)
        allowed &= CONTAINER_OF(link, struct loop_hook, link)
                       ->on_sleep(CONTAINER_OF(link, struct loop_hook, link));
    return allowed;
}

static void tell_hooks_awake(struct loop *loop)
{
    list_for_each_safe (link, &loop->hooks)
        CONTAINER_OF(link, struct loop_hook, link)
            ->on_wake(CONTAINER_OF(link, struct loop_hook, link));
}

/* How long the loop may sleep, at most wait_ms (-1 = no limit). */
static int sleep_ms(struct loop *loop, int wait_ms)
{
    int due_ms;

    if (loop->stopped || !list_is_empty(&loop->tasks))
        return 0;
    due_ms = timer_heap_wait(&loop->timers, loop->now_us / 1000);
    if (due_ms == -1 || (wait_ms != -1 && wait_ms < due_ms))
        return wait_ms;
    return due_ms;
}

static void take_events(struct loop *loop, int wait_ms)
{
    int count = epoll_wait(loop->epoll_fd, loop->events, BATCH_MAX, wait_ms);

    CHECK(count != -1 || errno == EINTR);
    loop->next = 0;
    loop->ready = count == -1 ? 0 : count;
    loop->now_us = clock_us();
}

static void wait_for_events(struct loop *loop, int wait_ms)
{
    if (sleep_ms(loop, wait_ms) == 0) {
        take_events(loop, 0);
        /* Tasks that go on and on must not keep hooks from news that come without a descriptor. */
        tell_hooks_awake(loop);
        return;
    }
    /* A hook may have deferred a task or set a timer: the time to sleep is asked for again. */
    if (hooks_allow_sleep(loop))
        take_events(loop, sleep_ms(loop, wait_ms));
    else
        take_events(loop, 0);
    tell_hooks_awake(loop);
}

static void handle_events(struct loop *loop)
{
    while (loop->next < loop->ready) {
        struct epoll_event *event = &loop->events[loop->next++];
        struct watch *watch = event->data.ptr;
        uint32_t events;

        if (!watch)
            continue;
        events = event->events & (watch->events | EPOLLERR | EPOLLHUP);
        if (events)
            watch->on_ready(watch, events);
    }
}

static int run_batch(struct loop *loop, int wait_ms)
{
    run_tasks(loop);
    wait_for_events(loop, wait_ms);
    handle_events(loop);
    timer_heap_run(&loop->timers, loop->now_us / 1000);
    run_tasks(loop);
    return loop->ready;
}

static void enter(struct loop *loop)
{
    CHECK(!loop->in_batch);
    loop->now_us = clock_us();
    loop->in_batch = true;
}

void loop_run(struct loop *loop)
{
    enter(loop);
    while (!loop->stopped)
        run_batch(loop, -1);
    loop->stopped = false;
    loop->in_batch = false;
}

void loop_stop(struct loop *loop)
{
    loop->stopped = true;
}

int loop_step(struct loop *loop, int wait_ms)
{
    int count;

    enter(loop);
    count = run_batch(loop, wait_ms);
    loop->in_batch = false;
    return count;
}

uint64_t loop_now_us(const struct loop *loop)
{
    return loop->in_batch ? loop->now_us : clock_us();
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return loop_now_us(loop) / 1000;
}

struct timer_heap *loop_timers(struct loop *loop)
{
    return &loop->timers;
}

/* SPDX-License-Identifier: MIT */
#include "loop/offload.h"

#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum {
    SAME_KEY = 2,     /* jobs of one key that are worked on at a time */
    STUCK_MS = 10,    /* after this time without a beginning another thread is started */
    SPARE_MS = 10000, /* a thread beyond those that stay ends when it had no work for so long */
    MS_PER_S = 1000,
    NS_PER_MS = 1000000
};

enum thread_state { THREAD_NONE, THREAD_RUNS, THREAD_ENDED /* to be joined */ };

struct thread {
    struct offload *offload;
    pthread_t id;
    enum thread_state state;
    uint64_t key; /* of the job that it works on, 0 = none */
};

/* The lock guards all that changes. */
struct offload {
    pthread_mutex_t lock;
    pthread_cond_t wake;  /* for threads: a job has come, or the end */
    pthread_cond_t watch; /* for the watcher: there are more jobs than idle threads, or the end */
    struct list jobs;     /* not begun, oldest first */
    unsigned waiting;     /* their number */
    unsigned idle;        /* threads without a job */
    uint64_t begun;       /* jobs so far */
    bool ending;
    unsigned count;   /* threads that run */
    unsigned staying; /* of them, so many do not end */
    pthread_t watcher;
    bool watched; /* it runs; for the thread that made all this */
    struct thread threads[OFFLOAD_THREADS];
};

static void run_done(struct post_item *item)
{
    struct offload_job *job = CONTAINER_OF(item, struct offload_job, item);

    job->on_done(job);
}

/* From here on the job is its owner's again. */
static void hand_back(struct offload_job *job)
{
    job->item.run = run_done;
    post_send(job->post, &job->item);
}

static bool is_held_up(const struct offload *offload, uint64_t key)
{
    unsigned same = 0;

    if (!key)
        return false;
    for (unsigned i = 0; i < OFFLOAD_THREADS; i++)
        same += offload->threads[i].key == key;
    return same >= SAME_KEY;
}

/* The oldest job that may be begun, or NULL. */
static struct offload_job *find_job(const struct offload *offload)
{
    list_for_each (link, &offload->jobs) {
        struct offload_job *job = CONTAINER_OF(link, struct offload_job, link);

        if (!is_held_up(offload, job->key))
            return job;
    }
    return NULL;
}

static struct timespec time_after(unsigned ms)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += ms / MS_PER_S;
    time.tv_nsec += (long)(ms % MS_PER_S) * NS_PER_MS;
    if (time.tv_nsec >= MS_PER_S * (long)NS_PER_MS) {
        time.tv_nsec -= MS_PER_S * (long)NS_PER_MS;
        time.tv_sec++;
    }
    return time;
}

/* False when this thread is one too many. */
static bool wait_for_job(struct offload *offload)
{
    struct timespec limit = time_after(SPARE_MS);
    int error;

    offload->idle++;
    error = offload->count > offload->staying
                ? pthread_cond_timedwait(&offload->wake, &offload->lock, &limit)
                : pthread_cond_wait(&offload->wake, &offload->lock);
    offload->idle--;
    return error != ETIMEDOUT || offload->waiting || offload->count <= offload->staying;
}

/* Waits for the next job and takes it; NULL at the end. */
static struct offload_job *next_job(struct offload *offload)
{
    struct offload_job *job;

    while (!(job = find_job(offload)))
        if (offload->ending || !wait_for_job(offload))
            return NULL;
    list_remove(&job->link);
    offload->waiting--;
    offload->begun++;
    return job;
}

static void *run_thread(void *object)
{
    struct thread *thread = object;
    struct offload *offload = thread->offload;
    struct offload_job *job;

    pthread_mutex_lock(&offload->lock);
    while ((job = next_job(offload))) {
        thread->key = job->key;
        pthread_mutex_unlock(&offload->lock);
        job->work(job);
        hand_back(job);
        pthread_mutex_lock(&offload->lock);
        thread->key = 0;
    }
    thread->state = THREAD_ENDED;
    offload->count--;
    pthread_mutex_unlock(&offload->lock);
    return NULL;
}

/* Signals are for the threads that wait for them: these block all. */
static bool start_blocked(pthread_t *ret_id, void *(*run)(void *), void *object)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(ret_id, NULL, run, object);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !error;
}

static struct thread *find_room(struct offload *offload)
{
    for (unsigned i = 0; i < OFFLOAD_THREADS; i++) {
        struct thread *thread = &offload->threads[i];

        if (thread->state == THREAD_ENDED) {
            pthread_join(thread->id, NULL);
            thread->state = THREAD_NONE;
        }
        if (thread->state == THREAD_NONE)
            return thread;
    }
    return NULL;
}

/* With the lock held. */
static bool start_thread(struct offload *offload)
{
    struct thread *thread = find_room(offload);

    if (!thread)
        return false;
    *thread = (struct thread){.offload = offload};
    if (!start_blocked(&thread->id, run_thread, thread))
        return false;
    thread->state = THREAD_RUNS;
    offload->count++;
    return true;
}

/* Whether jobs that could be begun were not for STUCK_MS. */
static bool is_stuck(struct offload *offload)
{
    struct timespec limit = time_after(STUCK_MS);
    uint64_t begun = offload->begun;
    int error = 0;

    while (error != ETIMEDOUT && !offload->ending && offload->begun == begun)
        error = pthread_cond_timedwait(&offload->watch, &offload->lock, &limit);
    return !offload->ending && offload->begun == begun && find_job(offload);
}

static void *run_watcher(void *object)
{
    struct offload *offload = object;

    pthread_mutex_lock(&offload->lock);
    while (!offload->ending) {
        if (!find_job(offload))
            pthread_cond_wait(&offload->watch, &offload->lock);
        else if (is_stuck(offload))
            (void)start_thread(offload);
    }
    pthread_mutex_unlock(&offload->lock);
    return NULL;
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Waits for the end of a thread that was started; false when there is none in that place. */
static bool join_thread(struct offload *offload, struct thread *thread)
{
    bool is_started;

    pthread_mutex_lock(&offload->lock);
    is_started = thread->state != THREAD_NONE;
    pthread_mutex_unlock(&offload->lock);
    if (is_started)
        pthread_join(thread->id, NULL);
    return is_started;
}

static void end_threads(struct offload *offload)
{
    pthread_mutex_lock(&offload->lock);
    offload->ending = true;
    list_for_each_safe (link, &offload->jobs) {
        list_remove(link);
        hand_back(CONTAINER_OF(link, struct offload_job, link));
    }
    offload->waiting = 0;
    pthread_cond_broadcast(&offload->wake);
    pthread_cond_broadcast(&offload->watch);
    pthread_mutex_unlock(&offload->lock);
    if (offload->watched)
        pthread_join(offload->watcher, NULL); /* behind it no thread is started */
    offload->watched = false;
    for (unsigned i = 0; i < OFFLOAD_THREADS; i++)
        if (join_thread(offload, &offload->threads[i]))
            offload->threads[i].state = THREAD_NONE;
}

static bool start_threads(struct offload *offload, unsigned count)
{
    bool is_started = true;

    pthread_mutex_lock(&offload->lock);
    offload->staying = count;
    while (is_started && offload->count < count)
        is_started = start_thread(offload);
    pthread_mutex_unlock(&offload->lock);
    if (is_started)
        is_started = offload->watched = start_blocked(&offload->watcher, run_watcher, offload);
    return is_started;
}

struct offload *offload_new(unsigned count)
{
    struct offload *offload = must_alloc(1, sizeof(*offload));

    CHECK(count > 0 && count <= OFFLOAD_THREADS / 2);
    pthread_mutex_init(&offload->lock, NULL);
    init_condition(&offload->wake);
    init_condition(&offload->watch);
    list_init(&offload->jobs);
    if (!start_threads(offload, count)) {
        offload_free(offload);
        return NULL;
    }
    return offload;
}

void offload_free(struct offload *offload)
{
    if (!offload)
        return;
    end_threads(offload);
    pthread_cond_destroy(&offload->wake);
    pthread_cond_destroy(&offload->watch);
    pthread_mutex_destroy(&offload->lock);
    free(offload);
}

void offload_send(struct offload *offload, struct offload_job *job)
{
    pthread_mutex_lock(&offload->lock);
    CHECK(!offload->ending);
    list_init(&job->link);
    list_push_back(&offload->jobs, &job->link);
    offload->waiting++;
    pthread_cond_signal(&offload->wake);
    if (offload->waiting > offload->idle)
        pthread_cond_signal(&offload->watch);
    pthread_mutex_unlock(&offload->lock);
}

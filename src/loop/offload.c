/* SPDX-License-Identifier: MIT */
#include "loop/offload.h"

#include "base/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct offload {
    pthread_mutex_t lock; /* guards jobs and ending */
    pthread_cond_t wake;  /* a job has come, or the end */
    struct list jobs;     /* not begun, oldest first */
    bool ending;
    unsigned count; /* threads that run */
    pthread_t threads[];
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

/* Waits for the next job and takes it; NULL at the end. */
static struct offload_job *next_job(struct offload *offload)
{
    struct offload_job *job = NULL;

    pthread_mutex_lock(&offload->lock);
    while (list_is_empty(&offload->jobs) && !offload->ending)
        pthread_cond_wait(&offload->wake, &offload->lock);
    if (!list_is_empty(&offload->jobs)) {
        job = CONTAINER_OF(offload->jobs.next, struct offload_job, link);
        list_remove(&job->link);
    }
    pthread_mutex_unlock(&offload->lock);
    return job;
}

static void *run_thread(void *object)
{
    struct offload *offload = object;
    struct offload_job *job;

    while ((job = next_job(offload))) {
        job->work(job);
        hand_back(job);
    }
    return NULL;
}

/* Signals are for the threads that wait for them: these block all. */
static bool start_thread(struct offload *offload)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&offload->threads[offload->count], NULL, run_thread, offload);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return false;
    offload->count++;
    return true;
}

struct offload *offload_new(unsigned count)
{
    struct offload *offload = must_alloc(1, sizeof(*offload) + count * sizeof(pthread_t));

    CHECK(count > 0);
    pthread_mutex_init(&offload->lock, NULL);
    pthread_cond_init(&offload->wake, NULL);
    list_init(&offload->jobs);
    for (unsigned i = 0; i < count; i++)
        if (!start_thread(offload)) {
            offload_free(offload);
            return NULL;
        }
    return offload;
}

static void end_threads(struct offload *offload)
{
    pthread_mutex_lock(&offload->lock);
    offload->ending = true;
    list_for_each_safe (link, &offload->jobs) {
        list_remove(link);
        hand_back(CONTAINER_OF(link, struct offload_job, link));
    }
    pthread_cond_broadcast(&offload->wake);
    pthread_mutex_unlock(&offload->lock);
    for (unsigned i = 0; i < offload->count; i++)
        pthread_join(offload->threads[i], NULL);
}

void offload_free(struct offload *offload)
{
    if (!offload)
        return;
    end_threads(offload);
    pthread_cond_destroy(&offload->wake);
    pthread_mutex_destroy(&offload->lock);
    free(offload);
}

void offload_send(struct offload *offload, struct offload_job *job)
{
    pthread_mutex_lock(&offload->lock);
    CHECK(!offload->ending);
    list_init(&job->link);
    list_push_back(&offload->jobs, &job->link);
    pthread_cond_signal(&offload->wake);
    pthread_mutex_unlock(&offload->lock);
}

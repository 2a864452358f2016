/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/offload.c"

#include "loop/loop.h"

#include <semaphore.h>
#include <string.h>

enum { JOBS = 500 };

/* A job that notes where it was worked on; a gate, when it has one, holds its thread up. */
struct noted {
    struct offload_job job;
    pthread_t thread;
    sem_t *entered, *gate;
    int worked, done;
    bool signals_blocked;
};

static struct loop *loop;
static struct post *post;
static int done, wanted;

static void work(struct offload_job *job)
{
    struct noted *noted = CONTAINER_OF(job, struct noted, job);
    sigset_t blocked;

    if (noted->entered)
        sem_post(noted->entered);
    if (noted->gate)
        sem_wait(noted->gate);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    noted->signals_blocked = sigismember(&blocked, SIGTERM) == 1;
    noted->thread = pthread_self();
    noted->worked++;
}

static void note_done(struct offload_job *job)
{
    CONTAINER_OF(job, struct noted, job)->done++;
    if (++done == wanted)
        loop_stop(loop);
}

static void begin(int wants)
{
    loop = loop_new();
    post = post_new(loop);
    done = 0;
    wanted = wants;
}

static void end(void)
{
    post_free(post);
    loop_free(loop);
}

static void send_keyed(struct offload *offload, struct noted *noted, uint64_t key)
{
    noted->job = (struct offload_job){.post = post, .key = key, .work = work, .on_done = note_done};
    offload_send(offload, &noted->job);
}

static void send(struct offload *offload, struct noted *noted)
{
    send_keyed(offload, noted, 0);
}

static void every_job_is_worked_on_once_elsewhere_and_done_once_here(void **state)
{
    struct noted *noted = must_alloc(JOBS, sizeof(*noted));
    struct offload *offload = offload_new(2);
    (void)state;

    begin(JOBS);
    for (int i = 0; i < JOBS; i++)
        send(offload, &noted[i]);
    loop_run(loop);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(noted[i].worked, 1);
        assert_int_equal(noted[i].done, 1);
        assert_false(pthread_equal(noted[i].thread, pthread_self()));
        assert_true(noted[i].signals_blocked);
    }
    offload_free(offload);
    end();
    free(noted);
}

static void a_job_that_is_stuck_does_not_hold_up_the_other_thread(void **state)
{
    struct noted stuck = {0}, quick = {0};
    struct offload *offload = offload_new(2);
    sem_t gate;
    (void)state;

    sem_init(&gate, 0, 0);
    begin(1);
    stuck.gate = &gate;
    send(offload, &stuck);
    send(offload, &quick);
    loop_run(loop);
    assert_int_equal(quick.done, 1);
    assert_int_equal(stuck.done, 0);
    wanted = 2;
    sem_post(&gate);
    loop_run(loop);
    assert_int_equal(stuck.done, 1);
    offload_free(offload);
    end();
    sem_destroy(&gate);
}

/* More than there are threads that stay, all for the same file. */
static void jobs_of_one_key_hold_up_nobody_but_themselves(void **state)
{
    struct noted stuck[6], quick[40];
    struct offload *offload = offload_new(2);
    sem_t gate;
    (void)state;

    memset(stuck, 0, sizeof(stuck));
    memset(quick, 0, sizeof(quick));
    sem_init(&gate, 0, 0);
    begin(ARRAY_LEN(quick));
    for (size_t i = 0; i < ARRAY_LEN(stuck); i++) {
        stuck[i].gate = &gate;
        send_keyed(offload, &stuck[i], 7);
    }
    for (size_t i = 0; i < ARRAY_LEN(quick); i++)
        send_keyed(offload, &quick[i], 100 + i);
    loop_run(loop);
    pthread_mutex_lock(&offload->lock);
    assert_int_equal(offload->waiting, ARRAY_LEN(stuck) - SAME_KEY);
    assert_in_range(offload->count, 3, OFFLOAD_THREADS);
    pthread_mutex_unlock(&offload->lock);
    for (size_t i = 0; i < ARRAY_LEN(stuck); i++) {
        assert_int_equal(stuck[i].done, 0);
        sem_post(&gate);
    }
    wanted = ARRAY_LEN(stuck) + ARRAY_LEN(quick);
    loop_run(loop);
    offload_free(offload);
    end();
    sem_destroy(&gate);
}

static void no_more_threads_than_the_most_are_started(void **state)
{
    enum { MANY = 2 * OFFLOAD_THREADS };
    struct noted *stuck = must_alloc(MANY, sizeof(*stuck));
    struct offload *offload = offload_new(1);
    sem_t gate, entered;
    (void)state;

    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    begin(MANY);
    for (size_t i = 0; i < MANY; i++) {
        stuck[i].gate = &gate;
        stuck[i].entered = &entered;
        send(offload, &stuck[i]);
    }
    for (size_t i = 0; i < OFFLOAD_THREADS; i++)
        sem_wait(&entered);
    pthread_mutex_lock(&offload->lock);
    assert_int_equal(offload->count, OFFLOAD_THREADS);
    assert_int_equal(offload->waiting, MANY - OFFLOAD_THREADS);
    pthread_mutex_unlock(&offload->lock);
    for (size_t i = 0; i < MANY; i++)
        sem_post(&gate);
    loop_run(loop);
    offload_free(offload);
    end();
    free(stuck);
    sem_destroy(&gate);
    sem_destroy(&entered);
}

struct opener {
    pthread_t thread;
    struct offload *offload;
    sem_t *gate;
};

/* Opens the gate once the end has begun. */
static void *open_at_the_end(void *object)
{
    struct opener *opener = object;
    bool ending = false;

    while (!ending) {
        pthread_mutex_lock(&opener->offload->lock);
        ending = opener->offload->ending;
        pthread_mutex_unlock(&opener->offload->lock);
        sched_yield();
    }
    sem_post(opener->gate);
    return NULL;
}

static void at_the_end_work_under_way_is_finished_and_the_rest_handed_back_undone(void **state)
{
    struct noted under_way = {0}, waiting[3];
    struct opener opener = {.offload = offload_new(1)};
    sem_t entered, gate;
    (void)state;

    memset(waiting, 0, sizeof(waiting));
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    begin(-1);
    under_way.entered = &entered;
    under_way.gate = opener.gate = &gate;
    send(opener.offload, &under_way);
    sem_wait(&entered);
    for (int i = 0; i < 3; i++)
        send(opener.offload, &waiting[i]);
    assert_int_equal(pthread_create(&opener.thread, NULL, open_at_the_end, &opener), 0);
    end_threads(opener.offload);
    pthread_join(opener.thread, NULL);
    offload_free(opener.offload);
    end();
    assert_int_equal(done, 4);
    assert_int_equal(under_way.worked, 1);
    assert_int_equal(under_way.done, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(waiting[i].worked, 0);
        assert_int_equal(waiting[i].done, 1);
    }
    sem_destroy(&entered);
    sem_destroy(&gate);
}

static void freeing_idle_threads_and_none_at_all_ends_at_once(void **state)
{
    (void)state;

    offload_free(offload_new(2));
    offload_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_is_worked_on_once_elsewhere_and_done_once_here),
        cmocka_unit_test(a_job_that_is_stuck_does_not_hold_up_the_other_thread),
        cmocka_unit_test(jobs_of_one_key_hold_up_nobody_but_themselves),
        cmocka_unit_test(no_more_threads_than_the_most_are_started),
        cmocka_unit_test(at_the_end_work_under_way_is_finished_and_the_rest_handed_back_undone),
        cmocka_unit_test(freeing_idle_threads_and_none_at_all_ends_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

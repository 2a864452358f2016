/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/loop.c"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A watched end of a socket pair; the test holds the other. */
struct pair {
    struct watch watch;
    int ours, theirs;
    int calls;
    uint32_t events;
    struct pair *victim; /* unwatched and freed when called */
    struct pair *muted;  /* asks for nothing any more when called */
};

static void pair_free(struct pair *pair)
{
    loop_unwatch(&pair->watch);
    fd_close(&pair->ours);
    fd_close(&pair->theirs);
    free(pair);
}

static void on_pair(struct watch *watch, uint32_t events)
{
    struct pair *pair = CONTAINER_OF(watch, struct pair, watch);

    pair->calls++;
    pair->events = events;
    if (pair->victim)
        pair_free(pair->victim);
    pair->victim = NULL;
    if (pair->muted)
        assert_int_equal(loop_rewatch(&pair->muted->watch, 0), 0);
}

static struct pair *pair_new(struct loop *loop, uint32_t events)
{
    struct pair *pair = must_alloc(1, sizeof(*pair));
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pair->ours = ends[0];
    pair->theirs = ends[1];
    assert_int_equal(loop_watch(loop, &pair->watch, pair->ours, events, on_pair), 0);
    return pair;
}

static void speak(struct pair *pair)
{
    assert_int_equal(write(pair->theirs, "x", 1), 1);
}

static void a_ready_descriptor_is_told_until_it_is_read(void **state)
{
    struct loop *loop = loop_new();
    struct pair *pair = pair_new(loop, EPOLLIN);
    char byte;
    (void)state;

    assert_int_equal(loop_step(loop, 0), 0);
    speak(pair);
    assert_int_equal(loop_step(loop, -1), 1);
    assert_int_equal(loop_step(loop, 0), 1);
    assert_int_equal(pair->calls, 2);
    assert_int_equal(pair->events, EPOLLIN);
    assert_int_equal(read(pair->ours, &byte, 1), 1);
    assert_int_equal(loop_step(loop, 0), 0);
    pair_free(pair);
    loop_free(loop);
}

static void a_watch_asks_for_what_it_was_changed_to(void **state)
{
    struct loop *loop = loop_new();
    struct pair *pair = pair_new(loop, 0);
    (void)state;

    speak(pair);
    assert_int_equal(loop_step(loop, 0), 0);
    assert_int_equal(loop_rewatch(&pair->watch, EPOLLOUT), 0);
    assert_int_equal(loop_step(loop, 0), 1);
    assert_int_equal(pair->events, EPOLLOUT);
    pair_free(pair);
    loop_free(loop);
}

static void a_watch_freed_by_another_of_the_same_batch_is_not_touched(void **state)
{
    struct loop *loop = loop_new();
    struct pair *first = pair_new(loop, EPOLLIN), *second = pair_new(loop, EPOLLIN);
    struct pair *third = pair_new(loop, EPOLLIN);
    (void)state;

    first->victim = second;
    speak(first);
    speak(second);
    speak(third);
    assert_int_equal(loop_step(loop, 0), 3);
    assert_int_equal(first->calls, 1);
    assert_int_equal(third->calls, 1);
    pair_free(first);
    pair_free(third);
    loop_free(loop);
}

static struct pair *reused;

static void close_instead(struct watch *watch, uint32_t events)
{
    (void)events;
    loop_forget(&reused->watch);
    fd_close(&reused->ours);
    assert_null(reused->watch.loop);
    watch->on_ready = on_pair;
}

static void a_watch_whose_descriptor_is_closed_instead_is_not_called_again(void **state)
{
    struct loop *loop = loop_new();
    struct pair *first = pair_new(loop, EPOLLIN);
    (void)state;

    reused = pair_new(loop, EPOLLIN);
    first->watch.on_ready = close_instead;
    speak(first);
    speak(reused);
    assert_int_equal(loop_step(loop, 0), 2);
    assert_int_equal(reused->calls, 0);
    assert_int_equal(loop_step(loop, 0), 1);
    assert_int_equal(reused->calls, 0);
    loop_forget(&reused->watch);
    pair_free(reused);
    pair_free(first);
    loop_free(loop);
}

static void watch_anew_where_the_old_one_was(struct watch *watch, uint32_t events)
{
    struct loop *loop = watch->loop;
    int fd = reused->ours;

    (void)events;
    loop_unwatch(&reused->watch);
    fd_close(&reused->theirs);
    fd_close(&fd);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    reused->ours = ends[0];
    reused->theirs = ends[1];
    assert_int_equal(loop_watch(loop, &reused->watch, reused->ours, EPOLLIN, on_pair), 0);
}

static void a_watch_made_anew_in_the_batch_does_not_get_the_report_of_the_old_one(void **state)
{
    struct loop *loop = loop_new();
    struct pair *first = pair_new(loop, EPOLLIN);
    (void)state;

    reused = pair_new(loop, EPOLLIN);
    first->watch.on_ready = watch_anew_where_the_old_one_was;
    speak(first);
    speak(reused);
    assert_int_equal(loop_step(loop, 0), 2);
    assert_int_equal(reused->calls, 0);
    pair_free(first);
    pair_free(reused);
    loop_free(loop);
}

static void a_watch_is_not_told_what_it_ceased_to_ask_for_in_the_batch(void **state)
{
    struct loop *loop = loop_new();
    struct pair *first = pair_new(loop, EPOLLIN), *second = pair_new(loop, EPOLLIN);
    (void)state;

    first->muted = second;
    speak(first);
    speak(second);
    assert_int_equal(loop_step(loop, 0), 2);
    assert_int_equal(second->calls, 0);
    pair_free(first);
    pair_free(second);
    loop_free(loop);
}

static void unwatching_twice_or_never_watched_is_harmless(void **state)
{
    struct watch watch = {0};
    struct loop *loop = loop_new();
    struct pair *pair = pair_new(loop, EPOLLIN);
    (void)state;

    loop_unwatch(&watch);
    loop_unwatch(&pair->watch);
    loop_unwatch(&pair->watch);
    assert_int_equal(pair->watch.fd, -1);
    pair_free(pair);
    loop_free(loop);
}

static void a_descriptor_that_cannot_be_watched_gives_its_error_and_changes_nothing(void **state)
{
    struct loop *loop = loop_new();
    struct watch watch = {0};
    (void)state;

    assert_int_equal(loop_watch(loop, &watch, 9999, EPOLLIN, on_pair), -EBADF);
    assert_null(watch.loop);
    loop_free(loop);
}

/* A task that notes its runs and defers itself or another. */
struct noted {
    struct task task;
    struct loop *loop;
    struct noted *next;
    int runs, left;
    bool stops;
};

static void note(struct task *task)
{
    struct noted *noted = CONTAINER_OF(task, struct noted, task);

    noted->runs++;
    if (noted->left > 0) {
        noted->left--;
        loop_defer(noted->loop, noted->next ? &noted->next->task : task);
    }
    if (noted->stops)
        loop_stop(noted->loop);
}

static void a_task_deferred_twice_runs_once_and_a_cancelled_one_never(void **state)
{
    struct loop *loop = loop_new();
    struct noted first = {.loop = loop}, second = {.loop = loop};
    (void)state;

    task_init(&first.task, note);
    task_init(&second.task, note);
    loop_defer(loop, &first.task);
    loop_defer(loop, &first.task);
    loop_defer(loop, &second.task);
    task_cancel(&second.task);
    task_cancel(&second.task);
    (void)loop_step(loop, 0);
    (void)loop_step(loop, 0);
    assert_int_equal(first.runs, 1);
    assert_int_equal(second.runs, 0);
    loop_free(loop);
}

static void tasks_that_tasks_defer_run_before_the_loop_sleeps(void **state)
{
    struct loop *loop = loop_new();
    struct noted first = {.loop = loop, .left = 1}, second = {.loop = loop, .stops = true};
    (void)state;

    first.next = &second;
    task_init(&first.task, note);
    task_init(&second.task, note);
    loop_defer(loop, &first.task);
    loop_run(loop);
    assert_int_equal(second.runs, 1);
    loop_free(loop);
}

static void a_task_that_defers_itself_for_ever_lets_events_in(void **state)
{
    struct loop *loop = loop_new();
    struct noted endless = {.loop = loop, .left = 1000000};
    struct pair *pair = pair_new(loop, EPOLLIN);
    (void)state;

    task_init(&endless.task, note);
    loop_defer(loop, &endless.task);
    speak(pair);
    assert_int_equal(loop_step(loop, -1), 1);
    assert_int_equal(pair->calls, 1);
    assert_in_range(endless.runs, 1, 2 * TASK_ROUNDS);
    task_cancel(&endless.task);
    pair_free(pair);
    loop_free(loop);
}

static void stop_before_run_returns_at_once_and_the_loop_can_run_again(void **state)
{
    struct loop *loop = loop_new();
    struct noted stopper = {.loop = loop, .stops = true};
    (void)state;

    loop_stop(loop);
    loop_run(loop);
    task_init(&stopper.task, note);
    loop_defer(loop, &stopper.task);
    loop_run(loop);
    assert_int_equal(stopper.runs, 1);
    loop_free(loop);
}

struct noted_timer {
    struct timer timer;
    struct loop *loop;
    uint64_t called_us;
    int calls;
};

static void note_time(struct timer *timer)
{
    struct noted_timer *noted = CONTAINER_OF(timer, struct noted_timer, timer);

    noted->calls++;
    noted->called_us = clock_us();
    loop_stop(noted->loop);
}

static void the_loop_sleeps_until_a_timer_is_due_and_not_less(void **state)
{
    struct loop *loop = loop_new();
    struct noted_timer noted = {.loop = loop};
    uint64_t start_us = clock_us();
    (void)state;

    timer_set(loop, &noted.timer, 20, note_time);
    loop_run(loop);
    assert_int_equal(noted.calls, 1);
    assert_true(noted.called_us >= start_us + 20000);
    loop_free(loop);
}

static void a_step_waits_no_longer_than_it_is_told_though_a_timer_is_far(void **state)
{
    struct loop *loop = loop_new();
    struct noted_timer noted = {.loop = loop};
    uint64_t start_us = clock_us();
    (void)state;

    timer_set(loop, &noted.timer, 3600000, note_time);
    assert_int_equal(loop_step(loop, 5), 0);
    assert_true(clock_us() >= start_us + 5000);
    assert_int_equal(noted.calls, 0);
    loop_free(loop);
    assert_false(timer_is_set(&noted.timer));
}

static struct noted_timer deadline;

static void move_deadline(struct watch *watch, uint32_t events)
{
    (void)events;
    timer_set(watch->loop, &deadline.timer, 3600000, note_time);
}

static void bytes_that_came_in_time_move_a_deadline_found_over_in_the_same_batch(void **state)
{
    struct loop *loop = loop_new();
    struct pair *pair = pair_new(loop, EPOLLIN);
    uint64_t start_us = clock_us();
    (void)state;

    deadline = (struct noted_timer){.loop = loop};
    pair->watch.on_ready = move_deadline;
    timer_set(loop, &deadline.timer, 0, note_time);
    while (clock_us() < start_us + 3000)
        ;
    speak(pair);
    assert_int_equal(loop_step(loop, 0), 1);
    assert_int_equal(deadline.calls, 0);
    timer_stop(&deadline.timer);
    pair_free(pair);
    loop_free(loop);
}

static void the_time_stands_still_within_a_batch_and_is_that_of_now_outside(void **state)
{
    struct loop *loop = loop_new();
    uint64_t before_us = clock_us(), first_us;
    (void)state;

    assert_true(loop_now_us(loop) >= before_us);
    enter(loop);
    first_us = loop_now_us(loop);
    while (clock_us() < first_us + 2000)
        ;
    assert_true(loop_now_us(loop) == first_us);
    assert_true(loop_now_ms(loop) == first_us / 1000);
    loop->in_batch = false;
    assert_true(loop_now_us(loop) >= first_us + 2000);
    loop_free(loop);
}

/* A hook that notes its calls and says what the test wants. */
struct noted_hook {
    struct loop_hook hook;
    struct loop *loop;
    struct task *deferred; /* by on_sleep */
    bool allows;
    int sleeps, wakes;
};

static bool note_sleep(struct loop_hook *hook)
{
    struct noted_hook *noted = CONTAINER_OF(hook, struct noted_hook, hook);

    noted->sleeps++;
    if (noted->deferred)
        loop_defer(noted->loop, noted->deferred);
    return noted->allows;
}

static void note_wake(struct loop_hook *hook)
{
    CONTAINER_OF(hook, struct noted_hook, hook)->wakes++;
}

static void add_hook(struct loop *loop, struct noted_hook *noted, bool allows)
{
    *noted = (struct noted_hook){
        .hook = {.on_sleep = note_sleep, .on_wake = note_wake}, .loop = loop, .allows = allows};
    loop_add_hook(loop, &noted->hook);
}

static void all_hooks_are_asked_and_one_that_says_no_keeps_the_loop_awake(void **state)
{
    struct loop *loop = loop_new();
    struct noted_hook no, yes;
    (void)state;

    add_hook(loop, &no, false);
    add_hook(loop, &yes, true);
    assert_int_equal(loop_step(loop, -1), 0);
    assert_int_equal(no.sleeps, 1);
    assert_int_equal(yes.sleeps, 1);
    assert_int_equal(no.wakes, 1);
    assert_int_equal(yes.wakes, 1);
    loop_free(loop);
}

static void hooks_see_each_batch_but_are_not_asked_when_the_loop_would_not_sleep(void **state)
{
    struct loop *loop = loop_new();
    struct noted_hook hook;
    (void)state;

    add_hook(loop, &hook, true);
    assert_int_equal(loop_step(loop, 0), 0);
    assert_int_equal(hook.sleeps, 0);
    assert_int_equal(hook.wakes, 1);
    loop_free(loop);
}

static void a_task_deferred_by_a_hook_keeps_the_loop_awake(void **state)
{
    struct loop *loop = loop_new();
    struct noted task = {.loop = loop};
    struct noted_hook hook;
    (void)state;

    task_init(&task.task, note);
    add_hook(loop, &hook, true);
    hook.deferred = &task.task;
    assert_int_equal(loop_step(loop, -1), 0);
    assert_int_equal(task.runs, 1);
    loop_free(loop);
}

static void a_removed_hook_is_not_asked(void **state)
{
    struct loop *loop = loop_new();
    struct noted_hook hook;
    (void)state;

    add_hook(loop, &hook, true);
    list_remove(&hook.hook.link);
    assert_int_equal(loop_step(loop, 1), 0);
    assert_int_equal(hook.sleeps, 0);
    loop_free(loop);
}

static void do_nothing(int number)
{
    (void)number;
}

static void a_signal_ends_the_sleep_without_an_event(void **state)
{
    struct loop *loop = loop_new();
    struct sigaction action = {.sa_handler = do_nothing}, before;
    struct itimerval soon = {.it_value = {.tv_usec = 5000}, .it_interval = {.tv_usec = 5000}};
    (void)state;

    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    assert_int_equal(loop_step(loop, -1), 0);
    soon = (struct itimerval){0};
    setitimer(ITIMER_REAL, &soon, NULL);
    sigaction(SIGALRM, &before, NULL);
    loop_free(loop);
}

static void more_descriptors_than_fit_one_batch_are_all_told(void **state)
{
    enum { COUNT = BATCH_MAX + 40 };
    struct loop *loop = loop_new();
    struct pair *pairs[COUNT];
    (void)state;

    for (int i = 0; i < COUNT; i++) {
        pairs[i] = pair_new(loop, EPOLLIN);
        speak(pairs[i]);
    }
    assert_int_equal(loop_step(loop, 0), BATCH_MAX);
    (void)loop_step(loop, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_in_range(pairs[i]->calls, 1, 2);
        pair_free(pairs[i]);
    }
    loop_free(loop);
}

static void the_epoll_descriptor_does_not_pass_an_exec(void **state)
{
    struct loop *loop = loop_new();
    (void)state;

    assert_int_equal(fcntl(loop->epoll_fd, F_GETFD), FD_CLOEXEC);
    loop_free(loop);
    loop_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ready_descriptor_is_told_until_it_is_read),
        cmocka_unit_test(a_watch_asks_for_what_it_was_changed_to),
        cmocka_unit_test(a_watch_freed_by_another_of_the_same_batch_is_not_touched),
        cmocka_unit_test(a_watch_made_anew_in_the_batch_does_not_get_the_report_of_the_old_one),
        cmocka_unit_test(a_watch_is_not_told_what_it_ceased_to_ask_for_in_the_batch),
        cmocka_unit_test(unwatching_twice_or_never_watched_is_harmless),
        cmocka_unit_test(a_watch_whose_descriptor_is_closed_instead_is_not_called_again),
        cmocka_unit_test(a_descriptor_that_cannot_be_watched_gives_its_error_and_changes_nothing),
        cmocka_unit_test(a_task_deferred_twice_runs_once_and_a_cancelled_one_never),
        cmocka_unit_test(tasks_that_tasks_defer_run_before_the_loop_sleeps),
        cmocka_unit_test(a_task_that_defers_itself_for_ever_lets_events_in),
        cmocka_unit_test(stop_before_run_returns_at_once_and_the_loop_can_run_again),
        cmocka_unit_test(the_loop_sleeps_until_a_timer_is_due_and_not_less),
        cmocka_unit_test(a_step_waits_no_longer_than_it_is_told_though_a_timer_is_far),
        cmocka_unit_test(bytes_that_came_in_time_move_a_deadline_found_over_in_the_same_batch),
        cmocka_unit_test(the_time_stands_still_within_a_batch_and_is_that_of_now_outside),
        cmocka_unit_test(all_hooks_are_asked_and_one_that_says_no_keeps_the_loop_awake),
        cmocka_unit_test(hooks_see_each_batch_but_are_not_asked_when_the_loop_would_not_sleep),
        cmocka_unit_test(a_task_deferred_by_a_hook_keeps_the_loop_awake),
        cmocka_unit_test(a_removed_hook_is_not_asked),
        cmocka_unit_test(a_signal_ends_the_sleep_without_an_event),
        cmocka_unit_test(more_descriptors_than_fit_one_batch_are_all_told),
        cmocka_unit_test(the_epoll_descriptor_does_not_pass_an_exec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

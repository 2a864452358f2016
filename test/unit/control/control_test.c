/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/control.c"

#include "control/client.h"

#include <pthread.h>
#include <stdio.h>

/* A server on one loop, and callers on threads of their own. */
struct world {
    struct loop *loop;
    struct control *control;
    struct address address;
    struct control_call *waiting; /* a stop that was not answered yet */
    char path[64];
    int listener;
};

static void run(void *context, enum control_command command, struct span argument,
                struct control_call *call)
{
    struct world *world = context;

    if (command == CONTROL_STOP)
        world->waiting = call;
    else
        control_answer(call, command == CONTROL_STATUS, argument, false);
}

static int make_world(void **state)
{
    struct world *world = must_alloc(1, sizeof *world);
    struct listen_options listen_options = {.backlog = 8, .mode = 0600, .uid = -1, .gid = -1};
    struct control_options options = {.also = (uid_t)-1, .on_command = run, .context = world};
    const char *reason;
    char text[80];

    (void)snprintf(world->path, sizeof world->path, "/tmp/control-test-%d.sock", (int)getpid());
    (void)snprintf(text, sizeof text, "unix:%s", world->path);
    if (!address_parse(span_of(text), &world->address))
        return -1;
    world->listener = listen_open(&world->address, &listen_options, &reason);
    world->loop = options.loop = loop_new();
    options.listener = world->listener;
    world->control = control_new(&options);
    *state = world;
    return world->listener >= 0 && world->control ? 0 : -1;
}

static int end_world(void **state)
{
    struct world *world = *state;

    control_free(world->control);
    loop_free(world->loop);
    (void)close(world->listener);
    (void)unlink(world->path);
    free(world);
    return 0;
}

static void steps(struct world *world, int count)
{
    for (int i = 0; i < count; i++)
        (void)loop_step(world->loop, 200);
}

struct caller {
    struct world *world;
    const char *line;
    struct buf text;
    int result;
};

static void *ask(void *context)
{
    struct caller *caller = context;
    int fd = address_connect(&caller->world->address, 2000);

    caller->result = fd < 0 ? fd : client_ask(fd, caller->line, &caller->text);
    (void)close(fd);
    return NULL;
}

static void answer_of(struct world *world, const char *line, struct caller *ret_caller)
{
    pthread_t thread;

    *ret_caller = (struct caller){.world = world, .line = line, .result = -1};
    assert_int_equal(pthread_create(&thread, NULL, ask, ret_caller), 0);
    steps(world, 4);
    (void)pthread_join(thread, NULL);
}

static void a_line_gets_its_answer(void **state)
{
    struct caller caller;

    answer_of(*state, "status json\n", &caller);
    assert_int_equal(caller.result, 1);
    assert_true(span_is(buf_span(&caller.text), "json"));
    buf_done(&caller.text);
}

static void a_refusal_is_told_as_one(void **state)
{
    struct caller caller;

    answer_of(*state, "ready\n", &caller);
    assert_int_equal(caller.result, 0);
    buf_done(&caller.text);
    answer_of(*state, "sing\n", &caller);
    assert_int_equal(caller.result, 0);
    assert_true(span_is(buf_span(&caller.text), "unknown command\n"));
    buf_done(&caller.text);
}

static void a_caller_that_left_may_still_be_answered(void **state)
{
    struct world *world = *state;
    int fd = address_connect(&world->address, 2000);

    assert_int_equal(write(fd, "stop\n", 5), 5);
    steps(world, 2);
    assert_non_null(world->waiting);
    (void)close(fd);
    steps(world, 1);
    control_answer(world->waiting, true, span_of("stopped\n"), false);
}

static void an_answer_may_come_later_and_be_held_open(void **state)
{
    struct world *world = *state;
    int fd = address_connect(&world->address, 2000);
    char bytes[32];

    assert_int_equal(write(fd, "stop\n", 5), 5);
    steps(world, 2);
    control_answer(world->waiting, true, span_of("stopped\n"), true);
    assert_int_equal(read(fd, bytes, sizeof bytes), 11);
    assert_memory_equal(bytes, "ok\nstopped\n", 11);
    assert_int_equal(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    (void)close(fd);
    steps(world, 1);
}

static void a_line_without_end_ends_the_call(void **state)
{
    struct world *world = *state;
    int fd = address_connect(&world->address, 2000);
    char bytes[LINE_BYTES];

    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    steps(world, 2);
    assert_int_equal(world->control->size, 0);
    (void)close(fd);
}

static void on_asked(void *context, struct control_call *call)
{
    struct world *world = context;

    world->waiting = call;
}

/* Another program takes the place of this one: of the calls there are their descriptors and a text. */
static void exchange(struct world *world)
{
    struct control_options options = world->control->options;
    struct saved_text text = {.error = 0};
    struct saved_out out = saved_begin(&text);
    struct saved *saved;
    unsigned line;

    control_save(world->control, &out);
    saved_put(&out, "version", "1");
    for (size_t i = 0; i < text.fd_count; i++)
        assert_int_equal(fd_set_cloexec(text.fds[i], false), 0);
    list_for_each (link, &world->control->calls) {
        struct control_call *call = CONTAINER_OF(link, struct control_call, link);
        loop_unwatch(&call->watch);
        call->fd = -1;
    }
    control_free(world->control);
    world->control = control_new(&options);
    world->waiting = NULL;
    saved = saved_read(buf_span(&text.buf), &line);
    struct saved_in in = saved_root(saved);
    control_adopt(world->control, &in, on_asked);
    saved_free(saved);
    saved_text_done(&text);
}

static void calls_outlive_the_exchange_of_the_program(void **state)
{
    struct world *world = *state;
    int asked = address_connect(&world->address, 2000);
    int silent = address_connect(&world->address, 2000);
    char bytes[32];

    assert_int_equal(write(asked, "stop\n", 5), 5);
    steps(world, 3);
    assert_int_equal(world->control->size, 2);
    assert_int_equal(control_waiting(world->control), 1);
    exchange(world);
    assert_int_equal(world->control->size, 2);
    assert_non_null(world->waiting);
    assert_int_equal(control_caller(world->waiting), geteuid());
    control_answer(world->waiting, true, span_of("done\n"), false);
    assert_int_equal(read(asked, bytes, sizeof bytes), 8);
    assert_memory_equal(bytes, "ok\ndone\n", 8);
    assert_int_equal(write(silent, "ready\n", 6), 6);
    steps(world, 1);
    assert_int_equal(read(silent, bytes, sizeof bytes), 7);
    assert_memory_equal(bytes, "failed\n", 7);
    (void)close(asked);
    (void)close(silent);
}

static void an_answer_that_was_given_is_not_waited_for_again(void **state)
{
    struct world *world = *state;
    int fd = address_connect(&world->address, 2000);

    assert_int_equal(write(fd, "stop\n", 5), 5);
    steps(world, 2);
    control_answer(world->waiting, true, span_of("stopped\n"), true);
    assert_false(control_is_busy(world->control));
    exchange(world);
    assert_int_equal(world->control->size, 0);
    assert_null(world->waiting);
    (void)close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_gets_its_answer),
        TEST(a_refusal_is_told_as_one),
        TEST(a_caller_that_left_may_still_be_answered),
        TEST(an_answer_may_come_later_and_be_held_open),
        TEST(a_line_without_end_ends_the_call),
        TEST(calls_outlive_the_exchange_of_the_program),
        TEST(an_answer_that_was_given_is_not_waited_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

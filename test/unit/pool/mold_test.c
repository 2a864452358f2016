/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/mold.c"

#define WORLD_REAL_MOLD
#include "pool_world.h"

#include <fcntl.h>

/* What would have been started, and how. */
static struct {
    char boot[PATH_MAX], folder[PATH_MAX];
    char *control; /* LEAT_CONTROL of its environment, owned */
    int in, out;
    bool fails;
} spawned;

pid_t spawn_start(const struct spawn *spawn, const char **ret_step)
{
    struct environment environment = {.size = 0};

    environment_copy(&environment, spawn->environ);
    free(spawned.control);
    spawned.control = must_copy(environment_get(&environment, "LEAT_CONTROL"));
    environment_done(&environment);
    (void)snprintf(spawned.boot, sizeof spawned.boot, "%s", spawn->argv[1]);
    (void)snprintf(spawned.folder, sizeof spawned.folder, "%s", spawn->folder);
    spawned.in = spawn->in;
    spawned.out = spawn->out;
    *ret_step = "cannot run the program";
    return spawned.fails ? -ENOENT : 4711;
}

int ruby_find(const struct ruby_options *options, struct ruby *ret_ruby, struct faults *faults)
{
    (void)options, (void)faults;
    *ret_ruby = (struct ruby){.program = must_copy("ruby"), .path = must_copy("/usr/bin/ruby")};
    return 0;
}

/* releases/1 and releases/2 below a folder of its own, and `current` that leads to the first. */
struct deploy {
    struct world world;
    char folder[64];
    char current[80];
};

static void make(const struct deploy *deploy, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", deploy->folder, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void point(const struct deploy *deploy, const char *release)
{
    (void)unlink(deploy->current);
    assert_int_equal(symlink(release, deploy->current), 0);
}

static void deploy_open(struct deploy *deploy)
{
    static char *const environ_list[] = {"PATH=/bin", "BUNDLER_ORIG_RUBYOPT=-w", "RUBYOPT=-x",
                                         "NOTIFY_SOCKET=/run/n", NULL};

    world_open(&deploy->world, 1, 1);
    (void)snprintf(deploy->folder, sizeof deploy->folder, "/tmp/mold-test-XXXXXX");
    assert_non_null(mkdtemp(deploy->folder));
    (void)snprintf(deploy->current, sizeof deploy->current, "%s/current", deploy->folder);
    make(deploy, "1");
    make(deploy, "2");
    point(deploy, "1");
    deploy->world.settings.app = deploy->current;
    deploy->world.pool->options.environ = environ_list;
    memset(&spawned, 0, sizeof spawned);
}

static void deploy_close(struct deploy *deploy)
{
    char command[128];

    free(spawned.control);
    world_close(&deploy->world);
    (void)snprintf(command, sizeof command, "rm -r %s", deploy->folder);
    assert_int_equal(system(command), 0);
}

static struct mold *prepare(struct deploy *deploy, bool solo)
{
    struct faults faults = {.size = 0};
    struct mold *mold = mold_new(7, solo);

    assert_int_equal(mold_prepare(mold, deploy->world.pool, &faults), 0);
    return mold;
}

/* The last part of a path. */
static const char *last(const char *path)
{
    return strrchr(path, '/') + 1;
}

static void the_folder_is_resolved_through_its_links(void **state)
{
    struct deploy deploy;
    struct mold *mold;

    (void)state;
    deploy_open(&deploy);
    mold = prepare(&deploy, false);
    assert_string_equal(last(mold->release), "1");
    assert_string_equal(last(mold->rackup), "config.ru");
    mold_free(mold);
    deploy_close(&deploy);
}

static void a_generation_keeps_its_release_while_that_exists(void **state)
{
    struct deploy deploy;
    struct faults faults = {.size = 0};
    struct mold *mold;
    char path[128];

    (void)state;
    deploy_open(&deploy);
    mold = prepare(&deploy, false);
    point(&deploy, "2");
    assert_int_equal(mold_prepare(mold, deploy.world.pool, &faults), 0);
    assert_string_equal(last(mold->release), "1");
    (void)snprintf(path, sizeof path, "%s/1", deploy.folder);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mold_prepare(mold, deploy.world.pool, &faults), 0);
    assert_string_equal(last(mold->release), "2");
    mold_free(mold);
    deploy_close(&deploy);
}

static void a_folder_that_is_gone_is_a_fault_that_names_it(void **state)
{
    struct deploy deploy;
    struct faults faults = {.size = 0};
    struct mold *mold = mold_new(1, false);

    (void)state;
    deploy_open(&deploy);
    (void)unlink(deploy.current);
    assert_int_equal(mold_prepare(mold, deploy.world.pool, &faults), -1);
    assert_non_null(strstr(faults.items[0].reason, deploy.current));
    faults_done(&faults);
    mold_free(mold);
    deploy_close(&deploy);
}

static void the_environment_is_that_of_before_bundler_with_the_pools_own_on_top(void **state)
{
    static struct config_variable variables[] = {{"MALLOC_ARENA_MAX", "2"}};
    struct deploy deploy;
    struct mold *mold;

    (void)state;
    deploy_open(&deploy);
    deploy.world.settings.env = variables;
    deploy.world.settings.env_size = 1;
    mold = prepare(&deploy, false);
    assert_string_equal(environment_get(&mold->environment, "RUBYOPT"), "-w");
    assert_string_equal(environment_get(&mold->environment, "MALLOC_ARENA_MAX"), "2");
    assert_string_equal(environment_get(&mold->environment, "RACK_ENV"), "production");
    assert_string_equal(environment_get(&mold->environment, "PWD"), mold->release);
    assert_null(environment_get(&mold->environment, "NOTIFY_SOCKET"));
    mold_free(mold);
    deploy_close(&deploy);
}

static void an_env_file_that_cannot_be_read_is_a_fault(void **state)
{
    struct deploy deploy;
    struct faults faults = {.size = 0};
    struct mold *mold = mold_new(1, false);

    (void)state;
    deploy_open(&deploy);
    deploy.world.settings.env_file = "/nonexistent/env";
    assert_int_equal(mold_prepare(mold, deploy.world.pool, &faults), -1);
    faults_done(&faults);
    mold_free(mold);
    deploy_close(&deploy);
}

static void a_rackup_file_may_be_named_relative_or_whole(void **state)
{
    struct deploy deploy;
    struct mold *mold;

    (void)state;
    deploy_open(&deploy);
    deploy.world.settings.rackup = "admin.ru";
    mold = prepare(&deploy, false);
    assert_string_equal(last(mold->rackup), "admin.ru");
    mold_free(mold);
    deploy.world.settings.rackup = "/srv/other.ru";
    mold = prepare(&deploy, false);
    assert_string_equal(mold->rackup, "/srv/other.ru");
    mold_free(mold);
    deploy_close(&deploy);
}

/* Plays the Ruby process: reads one message of the control socket. */
static void read_message(int control, char *bytes, struct protocol_message *ret_message, int *fds,
                         size_t *ret_count)
{
    ssize_t size = fd_receive(control, bytes, PROTOCOL_BYTES, fds, FD_PASS_MAX, ret_count);

    assert_true(size > 0);
    assert_true(protocol_parse(bytes, (size_t)size, ret_message));
}

static void a_hello_says_everything_and_carries_the_descriptors(void **state)
{
    struct deploy deploy;
    struct mold *mold;
    struct protocol_message message;
    char *bytes = must_alloc(1, PROTOCOL_BYTES);
    int fds[FD_PASS_MAX];
    int pair[2];
    uint64_t number;
    size_t count;

    (void)state;
    deploy_open(&deploy);
    mold = prepare(&deploy, false);
    deploy.world.pool->options.death_pipe = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(mold_greet(mold, deploy.world.pool, "worker", 5, pair[0]), 0);
    read_message(pair[1], bytes, &message, fds, &count);
    assert_true(span_is(message.verb, "hello"));
    assert_true(span_is(protocol_get(&message, "role"), "worker"));
    assert_true(span_is(protocol_get(&message, "pool"), "shop"));
    assert_true(span_is(protocol_get(&message, "app"), mold->release));
    assert_true(span_is(protocol_get(&message, "rackup"), mold->rackup));
    assert_true(span_is(protocol_get(&message, "environment"), "production"));
    assert_true(span_is(protocol_get(&message, "preload"), "auto"));
    assert_true(protocol_get_number(&message, "generation", &number) && number == 7);
    assert_true(protocol_get_number(&message, "threads", &number) && number == 2);
    assert_true(protocol_get_number(&message, "index", &number) && number == 5);
    assert_true(protocol_get_number(&message, "master", &number) && number == (uint64_t)getpid());
    assert_int_equal(count, INSTANCE_FIXED + BOARD_FRONTS);
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    (void)close(pair[0]);
    (void)close(pair[1]);
    (void)close(deploy.world.pool->options.death_pipe);
    mold_free(mold);
    free(bytes);
    deploy_close(&deploy);
}

static int exec_one(struct deploy *deploy, struct mold *mold, struct faults *faults)
{
    int control = -1;
    pid_t pid = 0;
    int result;

    deploy->world.pool->options.death_pipe = open("/dev/null", O_RDONLY | O_CLOEXEC);
    result = mold_exec(mold, deploy->world.pool, "mold", UINT32_MAX, &pid, &control, faults);
    if (result == 0)
        assert_int_equal(pid, 4711);
    fd_close(&control);
    fd_close(&deploy->world.pool->options.death_pipe);
    return result;
}

static void ruby_is_run_in_the_release_with_its_end_of_the_socket(void **state)
{
    struct deploy deploy;
    struct faults faults = {.size = 0};
    struct mold *mold;

    (void)state;
    deploy_open(&deploy);
    mold = prepare(&deploy, false);
    assert_int_equal(exec_one(&deploy, mold, &faults), 0);
    assert_string_equal(spawned.boot, "/lib/leat/boot.rb");
    assert_string_equal(spawned.folder, mold->release);
    assert_true(span_of(spawned.control).size > 0);
    /* Only in development is the terminal the worker's. */
    assert_int_equal(spawned.in, -1);
    mold_free(mold);
    mold = prepare(&deploy, true);
    assert_int_equal(exec_one(&deploy, mold, &faults), 0);
    assert_int_equal(spawned.in, STDIN_FILENO);
    deploy.world.config.daemonize = true;
    assert_int_equal(exec_one(&deploy, mold, &faults), 0);
    assert_int_equal(spawned.in, -1);
    mold_free(mold);
    deploy_close(&deploy);
}

static void a_ruby_that_cannot_be_run_is_a_fault_with_step_and_reason(void **state)
{
    struct deploy deploy;
    struct faults faults = {.size = 0};
    struct mold *mold;

    (void)state;
    deploy_open(&deploy);
    mold = prepare(&deploy, false);
    spawned.fails = true;
    assert_int_equal(exec_one(&deploy, mold, &faults), -1);
    assert_non_null(strstr(faults.items[0].reason, "cannot run"));
    assert_non_null(strstr(faults.items[0].reason, "No such file"));
    faults_done(&faults);
    mold_free(mold);
    deploy_close(&deploy);
}

static void a_mold_is_asked_for_a_fork_and_told_to_quit(void **state)
{
    struct mold *mold = mold_new(1, false);
    char bytes[100] = "";
    size_t count;
    int pair[2];

    (void)state;
    played.now_ms = 1000;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    mold->control = pair[0];
    mold->pid = 4711;
    assert_int_equal(mold_ask_fork(mold, 3), 0);
    assert_true(fd_receive(pair[1], bytes, sizeof bytes, NULL, 0, &count) > 0);
    assert_string_equal(bytes, "fork\nindex=3\n");
    mold_quit(mold);
    assert_int_equal(mold->state, MOLD_LEAVING);
    assert_int_equal(mold->deadline_ms, 6000);
    assert_int_equal(fd_receive(pair[1], bytes, sizeof bytes, NULL, 0, &count), 5);
    assert_int_equal(fd_receive(pair[1], bytes, sizeof bytes, NULL, 0, &count), 0);
    /* Once is enough. */
    played.now_ms = 2000;
    mold_quit(mold);
    assert_int_equal(mold->deadline_ms, 6000);
    (void)close(pair[1]);
    mold_free(mold);
}

static void asking_a_mold_that_is_gone_fails(void **state)
{
    struct mold *mold = mold_new(1, false);
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    (void)close(pair[1]);
    mold->control = pair[0];
    assert_int_equal(mold_ask_fork(mold, 0), -EPIPE);
    mold_free(mold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_is_resolved_through_its_links),
        cmocka_unit_test(a_generation_keeps_its_release_while_that_exists),
        cmocka_unit_test(a_folder_that_is_gone_is_a_fault_that_names_it),
        cmocka_unit_test(the_environment_is_that_of_before_bundler_with_the_pools_own_on_top),
        cmocka_unit_test(an_env_file_that_cannot_be_read_is_a_fault),
        cmocka_unit_test(a_rackup_file_may_be_named_relative_or_whole),
        cmocka_unit_test(a_hello_says_everything_and_carries_the_descriptors),
        cmocka_unit_test(ruby_is_run_in_the_release_with_its_end_of_the_socket),
        cmocka_unit_test(a_ruby_that_cannot_be_run_is_a_fault_with_step_and_reason),
        cmocka_unit_test(a_mold_is_asked_for_a_fork_and_told_to_quit),
        cmocka_unit_test(asking_a_mold_that_is_gone_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

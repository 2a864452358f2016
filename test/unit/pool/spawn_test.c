/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/spawn.c"

#include <stdio.h>
#include <stdlib.h>

static char *const environment[] = {"PATH=/usr/bin:/bin", NULL};

static struct spawn shell(char *const *argv)
{
    return (struct spawn){
        .argv = argv, .environ = environment, .in = -1, .out = -1, .err = -1, .umask = UINT32_MAX};
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    return status;
}

static void a_program_is_found_through_path_and_runs_in_its_folder(void **state)
{
    char *const argv[] = {"sh", "-c", "test \"$(pwd)\" = / && exit 7", NULL};
    struct spawn spawn = shell(argv);
    const char *step;
    pid_t pid;

    (void)state;
    spawn.folder = "/";
    pid = spawn_start(&spawn, &step);
    assert_true(pid > 0);
    assert_int_equal(WEXITSTATUS(wait_for(pid)), 7);
}

static void a_program_that_is_not_there_is_told_with_its_step(void **state)
{
    char *const argv[] = {"/nonexistent/ruby", NULL};
    struct spawn spawn = shell(argv);
    const char *step;

    (void)state;
    assert_int_equal(spawn_start(&spawn, &step), -ENOENT);
    assert_string_equal(step, "cannot run the program");
}

static void a_folder_that_is_not_there_is_told_with_its_step(void **state)
{
    char *const argv[] = {"sh", NULL};
    struct spawn spawn = shell(argv);
    const char *step;

    (void)state;
    spawn.folder = "/nonexistent";
    assert_int_equal(spawn_start(&spawn, &step), -ENOENT);
    assert_string_equal(step, "cannot enter the folder");
}

static void only_named_descriptors_reach_the_program(void **state)
{
    char command[200];
    char *const argv[] = {"sh", "-c", command, NULL};
    struct spawn spawn = shell(argv);
    int kept = dup(STDERR_FILENO);
    int other = dup(STDERR_FILENO);
    const char *step;

    (void)state;
    (void)snprintf(command, sizeof command,
                   "test -e /proc/$$/fd/%d && test ! -e /proc/$$/fd/%d && exit 5", kept, other);
    spawn.keep = &kept;
    spawn.keep_size = 1;
    assert_int_equal(WEXITSTATUS(wait_for(spawn_start(&spawn, &step))), 5);
    (void)close(kept);
    (void)close(other);
}

static void blocked_and_ignored_signals_are_the_program_s_own_again(void **state)
{
    char *const argv[] = {"sh", "-c", "kill -TERM $$; exit 3", NULL};
    struct spawn spawn = shell(argv);
    sigset_t set;
    sigset_t before;
    const char *step;
    int status;

    (void)state;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    (void)signal(SIGTERM, SIG_IGN);
    status = wait_for(spawn_start(&spawn, &step));
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void a_signal_goes_to_children_only(void **state)
{
    char *const argv[] = {"sleep", "60", NULL};
    struct spawn spawn = shell(argv);
    const char *step;
    pid_t pid = spawn_start(&spawn, &step);

    (void)state;
    assert_int_equal(spawn_signal(getpid(), 0), -ECHILD);
    assert_int_equal(spawn_signal(0, SIGKILL), -ECHILD);
    assert_int_equal(spawn_signal(pid, SIGKILL), 0);
    assert_int_equal(WTERMSIG(wait_for(pid)), SIGKILL);
    assert_int_equal(spawn_signal(pid, SIGKILL), -ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_found_through_path_and_runs_in_its_folder),
        cmocka_unit_test(a_program_that_is_not_there_is_told_with_its_step),
        cmocka_unit_test(a_folder_that_is_not_there_is_told_with_its_step),
        cmocka_unit_test(only_named_descriptors_reach_the_program),
        cmocka_unit_test(blocked_and_ignored_signals_are_the_program_s_own_again),
        cmocka_unit_test(a_signal_goes_to_children_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

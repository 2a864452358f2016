/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.c"

#include <signal.h>
#include <sys/wait.h>

/* Runs action in a child whose standard error goes to said; returns how the child ended. */
static int run_apart(void (*action)(void), char *said, size_t room)
{
    int ends[2], status;
    ssize_t size;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], 2);
        action();
        _exit(0);
    }
    (void)close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    size = read(ends[0], said, room - 1);
    said[size > 0 ? size : 0] = '\0';
    (void)close(ends[0]);
    return status;
}

static void break_a_promise(void)
{
    CHECK(1 + 1 == 3);
}

static void keep_a_promise(void)
{
    CHECK(1 + 1 == 2);
}

static void run_out_of_memory(void)
{
    out_of_memory(4711);
}

static void a_broken_promise_aborts_with_its_place(void **state)
{
    char said[600];
    int status = run_apart(break_a_promise, said, sizeof(said));
    (void)state;

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, "base_test.c:"));
    assert_non_null(strstr(said, "check failed: 1 + 1 == 3\n"));
}

static void a_kept_promise_says_nothing(void **state)
{
    char said[600];
    int status = run_apart(keep_a_promise, said, sizeof(said));
    (void)state;

    assert_true(WIFEXITED(status));
    assert_string_equal(said, "");
}

static void without_memory_the_process_ends_with_one_line(void **state)
{
    char said[600];
    int status = run_apart(run_out_of_memory, said, sizeof(said));
    (void)state;

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_string_equal(said, "leat: out of memory (4711 bytes wanted)\n");
}

static void memory_is_zeroed_and_copies_are_equal(void **state)
{
    char *bytes = must_alloc(3, 5);
    char *copy = must_copy("copied");
    void *nothing = must_alloc(0, 8);
    (void)state;

    for (int i = 0; i < 15; i++)
        assert_int_equal(bytes[i], 0);
    bytes = must_resize(bytes, 100);
    assert_int_equal(bytes[14], 0);
    assert_string_equal(copy, "copied");
    assert_non_null(nothing);
    free(bytes);
    free(copy);
    free(nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_promise_aborts_with_its_place),
        cmocka_unit_test(a_kept_promise_says_nothing),
        cmocka_unit_test(without_memory_the_process_ends_with_one_line),
        cmocka_unit_test(memory_is_zeroed_and_copies_are_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

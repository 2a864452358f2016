/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/pidfile.c"

#include <signal.h>
#include <sys/wait.h>

static char folder[64];
static char path[160];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/pidfile-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof path, "%s/tmp/pids/leat.pid", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[120];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void put(const char *text)
{
    FILE *file;

    assert_int_equal(files_make_parents(path), 0);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void assert_holds_our_number(void)
{
    char expected[32];
    char *text;
    size_t size;

    (void)snprintf(expected, sizeof expected, "%d\n", (int)getpid());
    /* Closing the file would give up the lock: another process has to look. */
    if (fork() == 0)
        _exit(fd_read_file(path, 100, &text, &size) == 0 && strcmp(text, expected) == 0 ? 0 : 1);
    int status;
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
}

static enum pidfile_result take(struct pidfile *ret_pidfile, pid_t *ret_holder)
{
    struct faults faults = {.size = 0};
    enum pidfile_result result = pidfile_take(path, ret_pidfile, ret_holder, &faults);

    faults_done(&faults);
    return result;
}

static void a_new_file_is_ours_and_goes_with_us(void **state)
{
    struct pidfile pidfile;
    pid_t holder = 0;

    (void)state;
    assert_int_equal(take(&pidfile, &holder), PIDFILE_OWNED);
    assert_holds_our_number();
    pidfile_give(&pidfile);
    assert_int_equal(access(path, F_OK), -1);
    pidfile_give(&pidfile);
}

static void whatever_is_written_in_it_never_blocks_a_start(void **state)
{
    static const char *const contents[] = {"", "0", "garbage\n", "1\n", "99999999999999999999"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        struct pidfile pidfile;
        pid_t holder = 0;
        put(contents[i]);
        assert_int_equal(take(&pidfile, &holder), PIDFILE_STALE);
        assert_holds_our_number();
        pidfile_give(&pidfile);
    }
}

/* rackup has written it before it became the server; by chance a dead process may have had the number. */
static void our_own_number_is_nothing_to_speak_of(void **state)
{
    struct pidfile pidfile;
    pid_t holder = 0;
    char own[32];

    (void)state;
    (void)snprintf(own, sizeof own, "%d\n", (int)getpid());
    put(own);
    assert_int_equal(take(&pidfile, &holder), PIDFILE_OWNED);
    assert_holds_our_number();
    pidfile_give(&pidfile);
}

static void one_that_a_running_server_holds_names_it(void **state)
{
    struct pidfile pidfile;
    pid_t holder = 0;
    int ready[2];
    char byte;
    pid_t other;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    other = fork();
    if (other == 0) {
        (void)take(&pidfile, &holder);
        (void)!write(ready[1], "x", 1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(take(&pidfile, &holder), PIDFILE_TAKEN);
    assert_int_equal(holder, other);
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    assert_int_equal(take(&pidfile, &holder), PIDFILE_STALE);
    pidfile_give(&pidfile);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void a_file_that_somebody_put_in_its_place_is_left_alone(void **state)
{
    struct pidfile pidfile;
    pid_t holder = 0;

    (void)state;
    assert_int_equal(take(&pidfile, &holder), PIDFILE_OWNED);
    assert_int_equal(unlink(path), 0);
    put("123\n");
    pidfile_give(&pidfile);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_place_that_cannot_be_written_is_a_fault(void **state)
{
    struct faults faults = {.size = 0};
    struct pidfile pidfile;
    pid_t holder = 0;

    (void)state;
    assert_int_equal(pidfile_take("/proc/nonexistent/leat.pid", &pidfile, &holder, &faults),
                     PIDFILE_FAILED);
    assert_string_equal(faults.items[0].key, "pid");
    faults_done(&faults);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_file_is_ours_and_goes_with_us),
        TEST(our_own_number_is_nothing_to_speak_of),
        TEST(whatever_is_written_in_it_never_blocks_a_start),
        TEST(one_that_a_running_server_holds_names_it),
        TEST(a_file_that_somebody_put_in_its_place_is_left_alone),
        TEST(a_place_that_cannot_be_written_is_a_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

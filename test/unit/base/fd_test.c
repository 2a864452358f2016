/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fd.c"

#include <sys/stat.h>
#include <sys/wait.h>

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

static int open_null(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void open_pair(int type, int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
}

static void close_pair(int ends[2])
{
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

/* The number the next descriptor would get: equal before and after when none was leaked. */
static int next_fd(void)
{
    int fd = open_null();

    (void)close(fd);
    return fd;
}

static void closing_forgets_the_number(void **state)
{
    int fd = open_null();
    int kept = fd;
    (void)state;

    fd_close(&fd);
    assert_int_equal(fd, -1);
    assert_false(is_open(kept));
    fd_close(&fd);
    assert_int_equal(fd, -1);
}

static void flags_are_set_and_errors_named(void **state)
{
    int fd = open_null();
    (void)state;

    assert_int_equal(fd_set_nonblocking(fd), 0);
    assert_int_equal(fd_set_nonblocking(fd), 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(fd_set_cloexec(fd, false), 0);
    assert_int_equal(fcntl(fd, F_GETFD), 0);
    assert_int_equal(fd_set_cloexec(fd, true), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    fd_close(&fd);
    assert_int_equal(fd_set_nonblocking(-1), -EBADF);
    assert_int_equal(fd_set_cloexec(-1, true), -EBADF);
}

static void more_than_a_pipe_holds_goes_through_it_whole(void **state)
{
    static char sent[300000], received[300001];
    int ends[2];
    pid_t child;
    (void)state;

    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (char)(i * 7 + i / 251);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(fd_write_all(ends[1], span_make(sent, sizeof(sent))) != 0);
    fd_close(&ends[1]);
    assert_int_equal(fd_read_all(ends[0], received, sizeof(received)), sizeof(sent));
    assert_memory_equal(received, sent, sizeof(sent));
    assert_int_equal(waitpid(child, NULL, 0), child);
    fd_close(&ends[0]);
    assert_int_equal(fd_read_all(-1, received, 1), -EBADF);
    assert_int_equal(fd_write_all(-1, span_of("x")), -EBADF);
}

/* Writes size bytes to a file of its own and reads it with the limit. */
static int read_with_limit(size_t size, size_t limit, size_t *ret_size)
{
    char path[] = "/tmp/fd_test-XXXXXX";
    char *bytes = must_alloc(size, 1);
    char *text = NULL;
    int fd = mkstemp(path);
    int error;

    assert_true(fd >= 0);
    memset(bytes, 'x', size);
    assert_int_equal(fd_write_all(fd, span_make(bytes, size)), 0);
    error = fd_read_file(path, limit, &text, ret_size);
    if (error == 0) {
        assert_memory_equal(text, bytes, size);
        assert_int_equal(text[size], '\0');
    } else {
        assert_null(text);
    }
    free(text);
    free(bytes);
    (void)close(fd);
    (void)unlink(path);
    return error;
}

static void files_are_read_up_to_the_limit(void **state)
{
    size_t size = 0;
    char *text = NULL;
    (void)state;

    assert_int_equal(read_with_limit(0, 0, &size), 0);
    assert_int_equal(size, 0);
    assert_int_equal(read_with_limit(10000, 10000, &size), 0);
    assert_int_equal(size, 10000);
    assert_int_equal(read_with_limit(8192, 100000, &size), 0);
    assert_int_equal(size, 8192);
    assert_int_equal(read_with_limit(10000, 9999, &size), -EFBIG);
    assert_int_equal(size, 8192);
    assert_int_equal(fd_read_file("/no/such", 10, &text, &size), -ENOENT);
    assert_int_equal(fd_read_file("/", 10, &text, &size), -EISDIR);
    assert_int_equal(fd_read_file("/proc/self/stat", 10000, &text, &size), 0);
    assert_int_equal(strlen(text), size);
    free(text);
}

static void descriptors_arrive_with_their_message_and_are_closed_on_exec(void **state)
{
    int ends[2], sent[2] = {open_null(), open_null()}, received[4];
    char text[16] = {0};
    size_t count = 99;
    (void)state;

    open_pair(SOCK_SEQPACKET, ends);
    assert_int_equal(fd_send(ends[0], span_of("two"), sent, 2), 0);
    assert_int_equal(fd_send(ends[0], span_of("none"), NULL, 0), 0);
    assert_int_equal(fd_receive(ends[1], text, sizeof(text), received, 4, &count), 3);
    assert_string_equal(text, "two");
    assert_int_equal(count, 2);
    assert_int_equal(fcntl(received[1], F_GETFD), FD_CLOEXEC);
    close_pair(received);
    assert_int_equal(fd_receive(ends[1], text, sizeof(text), received, 4, &count), 4);
    assert_int_equal(count, 0);
    close_pair(sent);
    close_pair(ends);
}

static void descriptors_nobody_wanted_are_closed(void **state)
{
    int ends[2], many[FD_PASS_MAX], received[2];
    int fd = open_null(), before;
    size_t count = 99;
    char text[4];
    (void)state;

    for (size_t i = 0; i < FD_PASS_MAX; i++)
        many[i] = fd;
    open_pair(SOCK_SEQPACKET, ends);
    before = next_fd();
    assert_int_equal(fd_send(ends[0], span_of("x"), many, FD_PASS_MAX), 0);
    assert_int_equal(fd_receive(ends[1], text, sizeof(text), received, 1, &count), 1);
    assert_int_equal(count, 1);
    fd_close(&received[0]);
    assert_int_equal(next_fd(), before);

    /* A message that was cut is useless, and so is what came with it. */
    count = 99;
    assert_int_equal(fd_send(ends[0], span_of("too long"), many, 3), 0);
    assert_int_equal(fd_receive(ends[1], text, sizeof(text), received, 1, &count), -EMSGSIZE);
    assert_int_equal(count, 99);
    assert_int_equal(next_fd(), before);
    fd_close(&fd);
    close_pair(ends);
}

static void an_empty_socket_is_not_waited_for_and_a_closed_one_is_at_its_end(void **state)
{
    int ends[2], received[1];
    size_t count = 0;
    char text[4];
    (void)state;

    open_pair(SOCK_SEQPACKET, ends);
    assert_int_equal(fd_receive(ends[1], text, sizeof(text), received, 1, &count), -EAGAIN);
    fd_close(&ends[0]);
    assert_int_equal(fd_receive(ends[1], text, sizeof(text), received, 1, &count), 0);
    assert_int_equal(fd_send(ends[1], span_of("x"), NULL, 0), -EPIPE);
    close_pair(ends);
}

static void a_full_socket_says_so(void **state)
{
    int ends[2], error;
    (void)state;

    open_pair(SOCK_SEQPACKET, ends);
    do
        error = fd_send(ends[0], span_of("message"), NULL, 0);
    while (error == 0);
    assert_int_equal(error, -EAGAIN);
    close_pair(ends);
}

static void check_temporary(int fd)
{
    struct stat facts;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &facts), 0);
    assert_int_equal(facts.st_nlink, 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fd_write_all(fd, span_of("body")), 0);
    (void)close(fd);
}

static void temporary_files_have_no_name(void **state)
{
    (void)state;

    check_temporary(fd_temporary("/tmp"));
    check_temporary(temporary_by_name("/tmp"));
    assert_int_equal(fd_temporary("/no/such"), -ENOENT);
}

static bool by_kernel(const int *keep, size_t count)
{
    return close_gaps(keep, count);
}

static bool by_list(const int *keep, size_t count)
{
    return close_listed(keep, count);
}

static bool by_any(const int *keep, size_t count)
{
    fd_close_others(keep, count);
    return true;
}

/* In a child that holds descriptors at 3.. and far up: keeps two of them by the given way. The
 * child's answer is a bit for each mistake. */
static int keep_two(bool (*close_others)(const int *keep, size_t count))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        int keep[] = {700, -1, 5};
        int wrong = 0;

        for (int fd = 3; fd < 300; fd++)
            (void)dup2(null, fd);
        (void)dup2(null, 700);
        (void)dup2(null, 701);
        if (!close_others(keep, 3))
            _exit(128);
        wrong |= !is_open(0) || !is_open(2) ? 1 : 0;
        wrong |= !is_open(5) || !is_open(700) ? 2 : 0;
        for (int fd = 3; fd < 800; fd++)
            if (fd != 5 && fd != 700 && is_open(fd))
                wrong |= 4;
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void all_but_the_kept_descriptors_are_closed(void **state)
{
    (void)state;

    assert_int_equal(keep_two(by_any), 0);
    assert_int_equal(keep_two(by_list), 0);
    if (keep_two(by_kernel) != 128) /* kernels before 5.9 do not know how */
        assert_int_equal(keep_two(by_kernel), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_forgets_the_number),
        cmocka_unit_test(flags_are_set_and_errors_named),
        cmocka_unit_test(more_than_a_pipe_holds_goes_through_it_whole),
        cmocka_unit_test(files_are_read_up_to_the_limit),
        cmocka_unit_test(descriptors_arrive_with_their_message_and_are_closed_on_exec),
        cmocka_unit_test(descriptors_nobody_wanted_are_closed),
        cmocka_unit_test(an_empty_socket_is_not_waited_for_and_a_closed_one_is_at_its_end),
        cmocka_unit_test(a_full_socket_says_so),
        cmocka_unit_test(temporary_files_have_no_name),
        cmocka_unit_test(all_but_the_kept_descriptors_are_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/access_log.c"

#include <fcntl.h>

static _Atomic uint64_t dropped;

static struct exchange *make(struct loop *loop)
{
    static struct exchange exchange;

    exchange_init(&exchange, loop, NULL, NULL, NULL);
    exchange.request.method_text = span_of("GET");
    exchange.request.target = span_of("/");
    exchange.response.status = 200;
    return &exchange;
}

static void lines_are_written_in_order_and_reopening_moves_on(void **state)
{
    struct loop *loop = loop_new();
    int first = fd_temporary("/tmp"), second = fd_temporary("/tmp");
    int first_copy = dup(first), second_copy = dup(second);
    struct access_log *log = access_log_new(first, CONFIG_LOG_COMBINED, &dropped);
    struct access_log_buffer buffer;
    char text[1024];
    ssize_t size;
    (void)state;

    access_log_buffer_init(&buffer, log, loop);
    access_log_add(&buffer, make(loop), NULL);
    access_log_buffer_done(&buffer);
    do
        size = pread(first_copy, text, sizeof(text), 0);
    while (size == 0);
    access_log_reopen(log, second);
    access_log_buffer_init(&buffer, log, loop);
    access_log_add(&buffer, make(loop), NULL);
    access_log_add(&buffer, make(loop), NULL);
    access_log_buffer_done(&buffer);
    access_log_free(log);
    assert_int_equal(pread(first_copy, text, sizeof(text), 0), size);
    assert_int_equal(pread(second_copy, text, sizeof(text), 0), 2 * size);
    assert_int_equal(dropped, 0);
    close(first_copy);
    close(second_copy);
    loop_free(loop);
}

static void a_line_is_written_within_a_second_and_then_nothing_ticks(void **state)
{
    struct loop *loop = loop_new();
    int fd = fd_temporary("/tmp"), copy = dup(fd);
    struct access_log *log = access_log_new(fd, CONFIG_LOG_JSON, &dropped);
    struct access_log_buffer buffer;
    uint64_t begin_ms = clock_ms();
    char text[1024];
    (void)state;

    access_log_buffer_init(&buffer, log, loop);
    access_log_add(&buffer, make(loop), "app");
    while (timer_is_set(&buffer.timer) && clock_ms() - begin_ms < 3000)
        loop_step(loop, 2000);
    assert_in_range(clock_ms() - begin_ms, 900, 1500);
    access_log_free(log);
    assert_true(pread(copy, text, sizeof(text), 0) > 0);
    access_log_buffer_done(&buffer);
    close(copy);
    loop_free(loop);
}

static void a_full_disk_drops_lines_and_counts_them(void **state)
{
    struct loop *loop = loop_new();
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct access_log *log = access_log_new(fd, CONFIG_LOG_COMBINED, &dropped);
    struct access_log_buffer buffer;
    (void)state;

    dropped = 0;
    access_log_buffer_init(&buffer, log, loop);
    for (int i = 0; i < 10; i++)
        access_log_add(&buffer, make(loop), NULL);
    access_log_buffer_done(&buffer);
    access_log_free(log);
    assert_int_equal(dropped, 10);
    loop_free(loop);
}

static void a_full_pipe_holds_up_neither_the_loop_nor_the_end(void **state)
{
    struct loop *loop = loop_new();
    struct access_log_buffer buffer;
    struct access_log *log;
    uint64_t begin_ms = clock_ms();
    int ends[2];
    (void)state;

    assert_int_equal(pipe(ends), 0);
    log = access_log_new(ends[1], CONFIG_LOG_COMBINED, &dropped);
    dropped = 0;
    access_log_buffer_init(&buffer, log, loop);
    for (int i = 0; i < 20000; i++)
        access_log_add(&buffer, make(loop), NULL);
    access_log_buffer_done(&buffer);
    access_log_free(log);
    assert_true(dropped > 10000 && dropped < 20000);
    assert_in_range(clock_ms() - begin_ms, 0, 5000);
    close(ends[0]);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_written_in_order_and_reopening_moves_on),
        cmocka_unit_test(a_line_is_written_within_a_second_and_then_nothing_ticks),
        cmocka_unit_test(a_full_disk_drops_lines_and_counts_them),
        cmocka_unit_test(a_full_pipe_holds_up_neither_the_loop_nor_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

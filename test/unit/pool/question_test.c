/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/question.c"

#include "pool_world.h"

#include <sys/mman.h>
#include <unistd.h>

/* A server with one worker that serves: entry 0, PID 500. */
static void open_serving(struct world *world)
{
    world_open(world, 1, 1);
    world_start(world);
    assert_int_equal(world->pool->workers[0].pid, 500);
}

static void whoever_asks_gets_the_answer_in_one_piece(void **state)
{
    struct world world;
    uint32_t worker = 9;

    (void)state;
    open_serving(&world);
    assert_true(pool_backtrace(world.pool, 500, &worker));
    assert_int_equal(worker, 0);
    assert_int_equal(atomic_load(&world.pool->instance.board.workers[0].question), 1);
    assert_int_equal(atomic_load(&world.pool->instance.board.workers[0].bell), 1);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=0\ntext=one\\n\n");
    assert_int_equal(played.backtraces, 0);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext=two\\n\n");
    assert_int_equal(played.backtraces, 1);
    assert_true(played.backtrace_ok);
    assert_string_equal(played.backtrace, "one\ntwo\n");
    assert_null(world.pool->workers[0].question);
    world_close(&world);
}

static void who_asks_meanwhile_gets_the_same_answer(void **state)
{
    struct world world;
    uint32_t worker;

    (void)state;
    open_serving(&world);
    assert_true(pool_backtrace(world.pool, 500, &worker));
    question_ask(world.pool, 0, QUESTION_FOR_LOG);
    assert_int_equal(atomic_load(&world.pool->instance.board.workers[0].question), 1);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext=x\n");
    assert_int_equal(played.backtraces, 1);
    assert_true(pool_backtrace(world.pool, 500, &worker));
    assert_int_equal(atomic_load(&world.pool->instance.board.workers[0].question), 2);
    world_close(&world);
}

static void there_is_no_asking_who_is_no_worker(void **state)
{
    struct world world;
    uint32_t worker;

    (void)state;
    open_serving(&world);
    assert_false(pool_backtrace(world.pool, 501, &worker));
    assert_false(pool_backtrace(world.pool, 0, &worker));
    world_end(&world, 500, WORLD_KILLED);
    assert_false(pool_backtrace(world.pool, 500, &worker));
    world_close(&world);
}

static void answers_of_others_of_before_and_to_nothing_count_for_nothing(void **state)
{
    struct world world;
    uint32_t worker;

    (void)state;
    open_serving(&world);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext=x\n");
    assert_true(pool_backtrace(world.pool, 500, &worker));
    world_say(&world, "backtrace\nindex=0\npid=501\nnumber=1\nlast=1\ntext=x\n");
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=7\nlast=1\ntext=x\n");
    world_say(&world, "backtrace\nindex=0\npid=500\nlast=1\ntext=x\n");
    assert_int_equal(played.backtraces, 0);
    assert_non_null(world.pool->workers[0].question);
    world_close(&world);
}

static void an_answer_without_end_is_cut(void **state)
{
    struct world world;
    struct question *question;
    struct buf message = {.size = 0};
    char part[50000];

    (void)state;
    open_serving(&world);
    question_ask(world.pool, 0, QUESTION_FOR_HOST);
    question = world.pool->workers[0].question;
    memset(part, 'x', sizeof part);
    for (int i = 0; i < 15; i++) {
        assert_int_equal(protocol_begin(&message, "backtrace"), 0);
        assert_int_equal(buf_printf(&message, "index=0\npid=500\nnumber=1\nlast=0\ntext=%.*s\n",
                                    (int)sizeof part, part),
                         0);
        assert_int_equal(fd_send(world.pool->instance.report_peer, buf_span(&message), NULL, 0), 0);
        world_run(&world);
    }
    assert_int_equal(question->text.size, QUESTION_BYTES);
    buf_done(&message);
    world_close(&world);
}

static void who_says_nothing_is_described_by_the_kernel(void **state)
{
    struct world world;

    (void)state;
    open_serving(&world);
    /* A process that can be looked at: this one. */
    world.pool->workers[0].pid = getpid();
    question_ask(world.pool, 0, QUESTION_FOR_HOST);
    world_wait(&world, QUESTION_MS - 1);
    assert_int_equal(played.backtraces, 0);
    world_wait(&world, 1);
    assert_int_equal(played.backtraces, 1);
    assert_true(played.backtrace_ok);
    assert_non_null(strstr(played.backtrace, "gave no answer within 2.0 s"));
    assert_non_null(strstr(played.backtrace, "\nthread \"question_test\": running"));
    world_close(&world);
}

static void an_end_is_an_answer_too(void **state)
{
    struct world world;

    (void)state;
    open_serving(&world);
    question_ask(world.pool, 0, QUESTION_FOR_HOST);
    world_end(&world, 500, WORLD_KILLED);
    assert_int_equal(played.backtraces, 1);
    assert_false(played.backtrace_ok);
    assert_non_null(strstr(played.backtrace, "ended before"));
    world_close(&world);
}

static void the_log_has_a_line_for_each_thread_that_does_something(void **state)
{
    struct world world;
    char text[4096] = "";
    int file = memfd_create("log", MFD_CLOEXEC);

    (void)state;
    open_serving(&world);
    question_ask(world.pool, 0, QUESTION_FOR_LOG);
    log_to(file);
    world_say(&world, "backtrace\nindex=0\npid=500\nnumber=1\nlast=1\ntext="
                      "thread \"leat 0\" (sleep): request id=abc for 2.0 s\\n"
                      "    config.ru:1:in `sleep'\\n    config.ru:7\\n"
                      "thread \"leat 1\" (sleep): waits for a request\\n"
                      "thread \"mine\" (run)\\n    a.rb:1\\n\n");
    log_to(-1);
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    (void)close(file);
    assert_non_null(strstr(text, "pool=shop worker 500 thread \"leat 0\" (sleep): request id=abc "
                                 "for 2.0 s: config.ru:1:in `sleep' < config.ru:7\n"));
    assert_non_null(strstr(text, "thread \"mine\" (run): a.rb:1\n"));
    assert_null(strstr(text, "\"leat 1\""));
    assert_int_equal(played.backtraces, 0);
    world_close(&world);
}

static void a_worker_with_a_thousand_threads_does_not_fill_the_log(void **state)
{
    struct world world;
    struct buf text = {.size = 0};
    char read_back[65536] = "";
    unsigned lines = 0;
    int file = memfd_create("log", MFD_CLOEXEC);

    (void)state;
    open_serving(&world);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_printf(&text, "thread \"%d\" (run)\n    a.rb:1\n", i), 0);
    log_to(file);
    log_threads(world.pool, 500, buf_span(&text));
    log_to(-1);
    assert_true(pread(file, read_back, sizeof read_back - 1, 0) > 0);
    (void)close(file);
    for (const char *byte = read_back; *byte; byte++)
        lines += *byte == '\n';
    assert_int_equal(lines, QUESTION_LOGGED_THREADS);
    buf_done(&text);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_asks_gets_the_answer_in_one_piece),
        cmocka_unit_test(who_asks_meanwhile_gets_the_same_answer),
        cmocka_unit_test(there_is_no_asking_who_is_no_worker),
        cmocka_unit_test(answers_of_others_of_before_and_to_nothing_count_for_nothing),
        cmocka_unit_test(an_answer_without_end_is_cut),
        cmocka_unit_test(who_says_nothing_is_described_by_the_kernel),
        cmocka_unit_test(an_end_is_an_answer_too),
        cmocka_unit_test(the_log_has_a_line_for_each_thread_that_does_something),
        cmocka_unit_test(a_worker_with_a_thousand_threads_does_not_fill_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

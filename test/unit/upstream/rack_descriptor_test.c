/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_descriptor.c"

#include "rack_world.h"

static const char *const socket_path = "/tmp/leat-descriptor-test.0";
static struct rack_descriptors *descriptors;
static int listener;
static struct post *posts[1];

static void open_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct rack_descriptor_options options = {
        .loop = world.loop, .board = &world.board, .racks = &world.rack, .posts = posts};

    (void)unlink(socket_path);
    memcpy(address.sun_path, socket_path, strlen(socket_path));
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 4), 0);
    options.listener = listener;
    descriptors = rack_descriptors_open(&options);
    assert_non_null(descriptors);
    /* This process plays worker 0. */
    atomic_store(&world.board.workers[0].pid, (uint32_t)getpid());
}

static void close_socket(void)
{
    rack_descriptors_close(descriptors);
    close(listener);
    (void)unlink(socket_path);
}

static int connect_worker(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, socket_path, strlen(socket_path));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* The status of the answer, or -1 when the connection ended; *ret_fd is -1 or what came. */
static int ask_front(int fd, const struct page_writer *writer, uint32_t kind, int passed,
                     int *ret_fd)
{
    struct descriptor_question question = {kind, writer->slot, writer->turn, writer->thread};
    struct descriptor_answer answer;
    size_t count;

    *ret_fd = -1;
    (void)fd_send(fd, span_make((char *)&question, sizeof(question)), &passed, passed != -1);
    world_turn(10);
    world_turn(10);
    if (fd_receive(fd, (char *)&answer, sizeof(answer), ret_fd, 1, &count) != sizeof(answer))
        return -1;
    return answer.status;
}

static struct exchange *start_with_body(const char *text)
{
    struct exchange *exchange = world_request("POST", "/");

    exchange->request.has_body = true;
    exchange->request.body.fd = fd_temporary("/tmp");
    exchange->request.body.size = strlen(text);
    assert_int_equal(fd_write_all(exchange->request.body.fd, span_of(text)), 0);
    rack_start(world.rack, exchange);
    return exchange;
}

static void give_up(struct exchange *exchange)
{
    exchange_abort(exchange, REFUSAL_CLIENT_LEFT);
    world_end(exchange);
}

static void a_worker_gets_its_body_for_reading_only(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    char text[16];
    int worker, fd;
    (void)state;

    world_open(0, 0);
    open_socket();
    exchange = start_with_body("the body");
    writer = world_take(0);
    worker = connect_worker();
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_BODY, -1, &fd), 0);
    assert_int_equal(read(fd, text, sizeof(text)), 8);
    assert_int_equal(write(fd, "x", 1), -1);
    close(fd);
    give_up(exchange);
    close(worker);
    close_socket();
    world_close();
}

static void a_question_about_anothers_slot_gets_nothing(void **state)
{
    struct exchange *exchange;
    struct page_writer writer, odd;
    int worker, fd;
    (void)state;

    world_open(0, 0);
    open_socket();
    exchange = start_with_body("secret");
    writer = world_take(1);
    worker = connect_worker();
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_BODY, -1, &fd), EACCES);
    odd = writer;
    odd.thread = 0;
    assert_int_equal(ask_front(worker, &odd, DESCRIPTOR_BODY, -1, &fd), ESTALE);
    odd.turn++;
    assert_int_equal(ask_front(worker, &odd, DESCRIPTOR_BODY, -1, &fd), ESTALE);
    odd.slot = 1000000;
    assert_int_equal(ask_front(worker, &odd, DESCRIPTOR_BODY, -1, &fd), ESTALE);
    odd.thread = 1000000;
    assert_int_equal(ask_front(worker, &odd, DESCRIPTOR_BODY, -1, &fd), EACCES);
    assert_int_equal(ask_front(worker, &odd, 77, -1, &fd), EINVAL);
    give_up(exchange);
    close(worker);
    close_socket();
    world_close();
}

static void only_regular_files_that_can_be_read_are_taken(void **state)
{
    struct exchange *exchange;
    struct page_writer writer;
    int worker, fd, file = fd_temporary("/tmp"), pipes[2];
    (void)state;

    world_open(0, 0);
    open_socket();
    exchange = world_start("GET", "/");
    writer = world_take(0);
    worker = connect_worker();
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_FILE, -1, &fd), EBADF);
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_FILE, pipes[0], &fd), EBADF);
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_FILE, file, &fd), 0);
    assert_true(rack_find_job(world.rack, writer.slot, writer.turn)->file_fd != -1);
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_BODY, -1, &fd), ENOENT);
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_HIJACK, -1, &fd), ENOTSUP);
    give_up(exchange);
    close(file);
    close(pipes[0]);
    close(pipes[1]);
    close(worker);
    close_socket();
    world_close();
}

static void who_is_no_worker_or_speaks_nonsense_is_hung_up_on(void **state)
{
    struct page_writer writer = {0};
    int worker, fd;
    (void)state;

    world_open(0, 0);
    open_socket();
    worker = connect_worker();
    assert_int_equal(write(worker, "nonsense", 8), 8);
    world_turn(10);
    world_turn(10);
    assert_int_equal(read(worker, &fd, 1), 0);
    close(worker);
    atomic_store(&world.board.workers[0].pid, 1);
    worker = connect_worker();
    assert_int_equal(ask_front(worker, &writer, DESCRIPTOR_BODY, -1, &fd), -1);
    close(worker);
    close_socket();
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_gets_its_body_for_reading_only),
        cmocka_unit_test(a_question_about_anothers_slot_gets_nothing),
        cmocka_unit_test(only_regular_files_that_can_be_read_are_taken),
        cmocka_unit_test(who_is_no_worker_or_speaks_nonsense_is_hung_up_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "upstream/rack_descriptor.h"

#include "base/base.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/descriptor.h"
#include "upstream/rack_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REFUSED_LOG_S = 60 };

struct rack_descriptors {
    struct rack_descriptor_options options;
    struct watch listener;
    struct list connections;
};

/* One worker thread's connection. While a question is under way it is not read from, and another loop may
 * hold its item. */
struct connection {
    struct list link;
    struct rack_descriptors *owner;
    struct watch watch;
    int fd;
    uint32_t worker;
    struct descriptor_question question;
    uint32_t asked_loop; /* where the question is answered */
    int passed_fd;
    bool is_broken; /* the answer could not be sent */
    struct post_item item;
};

/* ---- Answers: on the loop that holds the slot ---- */

static bool is_held_by(const struct board *board, const struct descriptor_question *question)
{
    struct slot_word word = slot_look(board, question->slot);

    return word.turn == question->turn && word.owner == question->thread &&
           word.state >= SLOT_TAKEN && word.state <= SLOT_REPLYING;
}

/* Opened anew, so that the worker can neither write nor share our position. */
static int reopen(int fd, int *ret_fd)
{
    char path[64];
    int opened;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened == -1)
        return errno;
    *ret_fd = opened;
    return 0;
}

static int answer_body(const struct rack_job *job, int *ret_fd)
{
    int fd = job->exchange->request.body.fd;

    return fd == -1 ? ENOENT : reopen(fd, ret_fd);
}

static int take_passed_file(struct rack_job *job, int *passed_fd)
{
    struct stat status;
    int flags = *passed_fd == -1 ? -1 : fcntl(*passed_fd, F_GETFL);

    if (flags == -1 || (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY ||
        fstat(*passed_fd, &status) == -1 || !S_ISREG(status.st_mode))
        return EBADF;
    fd_close(&job->file_fd);
    job->file_fd = *passed_fd;
    *passed_fd = -1;
    return 0;
}

static int answer(struct rack *rack, const struct descriptor_question *question, int *passed_fd,
                  int *ret_fd)
{
    struct rack_job *job = rack_find_job(rack, question->slot, question->turn);

    if (!job || !is_held_by(rack->options.board, question))
        return ESTALE;
    switch (question->kind) {
    case DESCRIPTOR_BODY:
        return answer_body(job, ret_fd);
    case DESCRIPTOR_FILE:
        return take_passed_file(job, passed_fd);
    case DESCRIPTOR_HIJACK:
        return rack_tunnel_offer(job, ret_fd);
    }
    return EINVAL;
}

static void send_answer(struct connection *connection, int status, int fd)
{
    struct descriptor_answer message = {.status = status};
    struct span bytes = span_make((const char *)&message, sizeof(message));

    connection->is_broken = fd_send(connection->fd, bytes, &fd, fd == -1 ? 0 : 1) != 0;
}

static void answer_question(struct connection *connection, struct rack *rack)
{
    int fd = -1;
    int status = answer(rack, &connection->question, &connection->passed_fd, &fd);

    fd_close(&connection->passed_fd);
    send_answer(connection, status, fd);
    fd_close(&fd);
}

/* ---- Connections: on their own loop ---- */

static void close_connection(struct connection *connection)
{
    list_remove(&connection->link);
    loop_unwatch(&connection->watch);
    fd_close(&connection->fd);
    fd_close(&connection->passed_fd);
    free(connection);
}

static void on_ready(struct watch *watch, uint32_t events);

static void listen_again(struct connection *connection)
{
    if (connection->is_broken || loop_watch(connection->owner->options.loop, &connection->watch,
                                            connection->fd, EPOLLIN, on_ready))
        close_connection(connection);
}

static void on_answered(struct post_item *item)
{
    listen_again(CONTAINER_OF(item, struct connection, item));
}

static void on_asked_elsewhere(struct post_item *item)
{
    struct connection *connection = CONTAINER_OF(item, struct connection, item);
    const struct rack_descriptor_options *options = &connection->owner->options;

    answer_question(connection, options->racks[connection->asked_loop]);
    item->run = on_answered;
    post_send(options->posts[options->home], item);
}

static void ask(struct connection *connection, uint32_t loop)
{
    const struct rack_descriptor_options *options = &connection->owner->options;

    loop_unwatch(&connection->watch);
    if (loop == options->home) {
        answer_question(connection, options->racks[loop]);
        listen_again(connection);
        return;
    }
    connection->asked_loop = loop;
    connection->item.run = on_asked_elsewhere;
    post_send(options->posts[loop], &connection->item);
}

static int check_question(const struct connection *connection, uint32_t *ret_loop)
{
    const struct board *board = connection->owner->options.board;
    const struct descriptor_question *question = &connection->question;
    struct slot_word word;
    uint32_t loop;

    if (question->kind < DESCRIPTOR_BODY || question->kind > DESCRIPTOR_HIJACK)
        return EINVAL;
    if (question->thread >= board_thread_count(board) ||
        board_worker_of(board, question->thread) != connection->worker)
        return EACCES;
    if (question->slot >= board->shape.slots)
        return ESTALE;
    /* Acquires what the loop wrote into the slot before it was QUEUED. */
    word = slot_look(board, question->slot);
    if (!slot_is_held(word) || word.turn != question->turn || word.owner != question->thread)
        return ESTALE;
    /* Where to ask; whether it is true the loop decides by its own table. */
    loop = *(volatile uint32_t *)&slot_request(board, question->slot)->loop;
    if (loop >= board->shape.loops)
        return ESTALE;
    *ret_loop = loop;
    return 0;
}

static bool receive(struct connection *connection)
{
    size_t count = 0;
    ssize_t size = fd_receive(connection->fd, (char *)&connection->question,
                              sizeof(connection->question), &connection->passed_fd, 1, &count);

    if (!count)
        connection->passed_fd = -1;
    return size == sizeof(connection->question);
}

static void on_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = CONTAINER_OF(watch, struct connection, watch);
    uint32_t loop = 0;
    int status;

    (void)events;
    if (!receive(connection)) {
        close_connection(connection);
        return;
    }
    status = check_question(connection, &loop);
    if (!status) {
        ask(connection, loop);
        return;
    }
    fd_close(&connection->passed_fd);
    send_answer(connection, status, -1);
    if (connection->is_broken)
        close_connection(connection);
}

/* ---- Accepting ---- */

static bool find_worker(const struct board *board, uint32_t pid, uint32_t *ret_worker)
{
    for (uint32_t worker = 0; worker < board->shape.workers; worker++) {
        struct board_worker *entry = &board->workers[worker];
        uint32_t life = atomic_load_explicit(&entry->life, memory_order_acquire);

        if (life == BOARD_FREE || life == BOARD_DEAD)
            continue;
        if (atomic_load_explicit(&entry->pid, memory_order_relaxed) == pid) {
            *ret_worker = worker;
            return true;
        }
    }
    return false;
}

static bool is_worker(int fd, const struct board *board, uint32_t *ret_worker)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1)
        return false;
    if (find_worker(board, (uint32_t)peer.pid, ret_worker))
        return true;
    if (log_allow(span_of("descriptor-peer"), REFUSED_LOG_S, NULL))
        log_warn("descriptor socket: process %ld is no worker of this pool, refused",
                 (long)peer.pid);
    return false;
}

static void open_connection(struct rack_descriptors *descriptors, int fd)
{
    struct connection *connection;
    uint32_t worker;

    if (!is_worker(fd, descriptors->options.board, &worker)) {
        fd_close(&fd);
        return;
    }
    connection = must_alloc(1, sizeof(*connection));
    *connection =
        (struct connection){.owner = descriptors, .fd = fd, .passed_fd = -1, .worker = worker};
    list_init(&connection->link);
    list_push_back(&descriptors->connections, &connection->link);
    if (loop_watch(descriptors->options.loop, &connection->watch, fd, EPOLLIN, on_ready))
        close_connection(connection);
}

static void on_connect(struct watch *watch, uint32_t events)
{
    struct rack_descriptors *descriptors = CONTAINER_OF(watch, struct rack_descriptors, listener);

    (void)events;
    for (;;) {
        int fd = listen_accept(watch->fd, NULL);

        if (fd < 0)
            return;
        open_connection(descriptors, fd);
    }
}

struct rack_descriptors *rack_descriptors_open(const struct rack_descriptor_options *options)
{
    struct rack_descriptors *descriptors = must_alloc(1, sizeof(*descriptors));

    descriptors->options = *options;
    list_init(&descriptors->connections);
    if (loop_watch(options->loop, &descriptors->listener, options->listener, EPOLLIN, on_connect)) {
        free(descriptors);
        return NULL;
    }
    return descriptors;
}

void rack_descriptors_close(struct rack_descriptors *descriptors)
{
    if (!descriptors)
        return;
    list_for_each_safe (link, &descriptors->connections)
        close_connection(CONTAINER_OF(link, struct connection, link));
    loop_unwatch(&descriptors->listener);
    free(descriptors);
}

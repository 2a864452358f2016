/* SPDX-License-Identifier: MIT */
/*
 * A whole front in a child process, with a board of one worker that the test plays itself, a channel on
 * which it plays master, and a listener on a port of the system's choice: the world of the tests of
 * front/'s parts.
 */
#pragma once

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "board/audit.h"
#include "board/page.h"
#include "board/queue.h"
#include "front/front.h"
#include "front/message.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORLD_PATIENCE_MS = 10000 };

struct world {
    struct board board;
    int board_fd;
    struct config_pool pool;
    struct config_pool *pools[1];
    struct config_site site;
    struct config config;
    struct front_listener listeners[2]; /* clients', admin's */
    struct front_pool front_pool;
    struct front_options options;
    int descriptor_listener;
    int channel; /* master's end */
    int death;   /* master's end */
    struct front_counters *counters;
    pid_t front;
    uint32_t sequence, page; /* of the worker's thread */
};

/* Of the running test. */
static struct world world;

static const char *const world_exit_words[] = {"normal", "crash"};

static inline int world_listen(struct address *ret_address)
{
    struct listen_options options = {.backlog = 16, .mode = 0666, .uid = -1, .gid = -1};
    const char *reason;
    int fd;

    assert_true(address_parse(span_of("127.0.0.1:0"), ret_address));
    fd = listen_open(ret_address, &options, &reason);
    assert_true(fd >= 0);
    ret_address->size = sizeof(ret_address->socket.ip4);
    assert_int_equal(getsockname(fd, &ret_address->socket.any, &ret_address->size), 0);
    return fd;
}

static inline void world_configure(void)
{
    memset(&world, 0, sizeof(world));
    world.pool = (struct config_pool){.name = "app", .app = "/nowhere", .threads = 1};
    world.pool.queue_timeout_ms = 5000;
    world.pool.workers_min = 1;
    world.pools[0] = &world.pool;
    world.site = (struct config_site){.pool = &world.pool, .pulse = "/pulse"};
    world.config = (struct config){
        .limits = {4096, 4096, 8192, 64, 8192, 1 << 20, 1 << 30, 100},
        .timeouts = {10000, 500, 500, 10000, 1000, 0, 1000},
        .spool = "/tmp",
        .pools = world.pools,
        .pool_size = 1,
        .sites = &world.site,
        .site_size = 1,
    };
}

static inline void world_make_board(void)
{
    struct board_shape shape = {8, 2, 1, 1, board_slot_bytes(4096, 8192, 64)};

    world.board_fd = board_make(&shape, "/tmp/leat-front-test", &world.board);
    assert_true(world.board_fd >= 0);
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        world.board.bells[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    atomic_store(&world.board.fronts[0].life, BOARD_ALIVE);
    atomic_store(&world.board.workers[0].life, BOARD_ALIVE);
    atomic_store(&world.board.workers[0].ready, 1);
}

static inline struct front_message world_hear(uint32_t kind)
{
    struct front_message message;
    struct pollfd poll_fd = {.fd = world.channel, .events = POLLIN};
    int fds[2];

    do {
        assert_int_equal(poll(&poll_fd, 1, WORLD_PATIENCE_MS), 1);
        assert_int_equal(front_message_receive(world.channel, &message, fds), 1);
    } while (message.kind != kind);
    return message;
}

static inline void world_say(uint32_t kind, uint32_t worker, uint64_t number)
{
    struct front_message message = {.kind = kind, .worker = worker, .number = number};

    assert_int_equal(front_message_send(world.channel, &message, NULL, 0), 0);
}

/* Starts the front of the configured world and waits until it accepts. */
static inline void world_start(void)
{
    int channel[2], death[2];

    world_make_board();
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel), 0);
    assert_int_equal(pipe(death), 0);
    world.counters = mmap(NULL, sizeof(*world.counters), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        world.listeners[i].fd = world_listen(&world.listeners[i].address);
    world.front_pool = (struct front_pool){&world.pool, &world.board, 0};
    world.descriptor_listener = -1;
    world.options = (struct front_options){
        .config = &world.config,
        .loops = 1,
        .listeners = world.listeners,
        .listener_size = 2,
        .pools = &world.front_pool,
        .pool_size = 1,
        .descriptor_listeners = &world.descriptor_listener,
        .channel = channel[1],
        .death_pipe = death[0],
        .access_log_fd = -1,
        .admin_listener = 1,
        .counters = world.counters,
        .exit_words = world_exit_words,
        .exit_size = ARRAY_LEN(world_exit_words),
    };
    world.front = fork();
    if (world.front == 0) {
        close(channel[0]);
        close(death[1]);
        _exit(front_run(&world.options));
    }
    close(channel[1]);
    close(death[0]);
    world.channel = channel[0];
    world.death = death[1];
    (void)world_hear(FRONT_ACCEPTING);
}

/* The front's exit status. */
static inline int world_end(void)
{
    int status;

    assert_int_equal(waitpid(world.front, &status, 0), world.front);
    close(world.channel);
    fd_close(&world.death);
    for (int i = 0; i < 2; i++)
        close(world.listeners[i].fd);
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        close(world.board.bells[i]);
    board_unmap(&world.board);
    close(world.board_fd);
    munmap(world.counters, sizeof(*world.counters));
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline void world_stop(void)
{
    world_say(FRONT_DRAIN, 0, 2000);
    assert_int_equal(world_end(), 0);
}

/* ---- Clients ---- */

static inline int world_connect(int listener)
{
    int fd = address_connect(&world.listeners[listener].address, WORLD_PATIENCE_MS);
    struct timeval patience = {.tv_sec = WORLD_PATIENCE_MS / 1000};

    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

static inline void world_send(int fd, const char *text)
{
    assert_int_equal(fd_write_all(fd, span_of(text)), 0);
}

/* Reads until the text has come; returns what was read, NUL behind it. */
static inline const char *world_read_until(int fd, const char *text)
{
    static char room[128 * 1024];
    size_t size = 0;

    room[0] = '\0';
    while (!strstr(room, text)) {
        ssize_t got = recv(fd, room + size, sizeof(room) - 1 - size, 0);

        if (got <= 0)
            fail_msg("connection ended before '%s' came: %s", text, room);
        size += (size_t)got;
        room[size] = '\0';
    }
    return room;
}

/* The whole answer to a request on a connection of its own, which the front closes. */
static inline const char *world_get(int listener, const char *line)
{
    static char room[128 * 1024];
    char request[512];
    int fd = world_connect(listener);
    ssize_t size;

    snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
             line);
    world_send(fd, request);
    size = fd_read_all(fd, room, sizeof(room) - 1);
    assert_true(size > 0);
    room[size] = '\0';
    close(fd);
    return room;
}

static inline bool world_is_over(int fd)
{
    char byte;

    return recv(fd, &byte, 1, 0) <= 0;
}

/* ---- The worker ---- */

static inline struct page_writer world_take(void)
{
    uint64_t begin_ms = clock_ms();
    struct slot_word word;
    int64_t slot;

    do
        slot = queue_take(&world.board, 0, &word);
    while (slot < 0 && clock_ms() - begin_ms < WORLD_PATIENCE_MS);
    assert_true(slot >= 0);
    return (struct page_writer){.board = &world.board,
                                .slot = (uint32_t)slot,
                                .turn = word.turn,
                                .sequence = world.sequence,
                                .page = world.page};
}

static inline void world_answer(struct page_writer *writer, const char *body)
{
    struct page_head head = {200, 0};

    slot_advance(&world.board, writer->slot, 0, SLOT_CALLED);
    slot_advance(&world.board, writer->slot, 0, SLOT_REPLYING);
    while (!page_can_write(writer))
        sched_yield();
    memcpy(page_put(writer, PAGE_HEAD, 0, sizeof(head)), &head, sizeof(head));
    memcpy(page_put(writer, PAGE_DATA, 0, (uint32_t)strlen(body)), body, strlen(body));
    (void)page_put(writer, PAGE_END, 0, 0);
    page_publish(writer);
    slot_finish(&world.board, writer->slot, 0);
    world.sequence = writer->sequence;
    world.page = writer->page;
}

/* SPDX-License-Identifier: MIT */
/*
 * A board with one front loop and two workers of one thread each, a rack on it, and exchanges without a
 * connection: the world of the tests of upstream/rack and its parts. The test plays the workers itself.
 */
#pragma once

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/audit.h"
#include "board/bell.h"
#include "board/queue.h"
#include "upstream/rack_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WORLD_SLOTS = 4, WORLD_WORKERS = 2 };

struct world {
    struct board board;
    int board_fd;
    struct loop *loop;
    struct rack *rack;
    uint64_t spool_used;
    _Atomic uint64_t shed, expired, abandoned, reruns, underscores, streams;
    unsigned wanted, late, killed, broken, files, internals;
    uint32_t last_worker;
};

/* Of the running test. */
static struct world world;

static inline void world_on_wanted(void *data)
{
    ((struct world *)data)->wanted++;
}

static inline void world_on_late(void *data, uint32_t worker, uint32_t slot)
{
    (void)slot;
    ((struct world *)data)->late++;
    ((struct world *)data)->last_worker = worker;
}

static inline void world_on_killed(void *data, uint32_t worker)
{
    ((struct world *)data)->killed++;
    ((struct world *)data)->last_worker = worker;
}

static inline void world_on_broken(void *data, uint32_t worker)
{
    ((struct world *)data)->broken++;
    ((struct world *)data)->last_worker = worker;
}

static inline bool world_send_file(void *data, struct exchange *exchange, int fd, unsigned status)
{
    ((struct world *)data)->files++;
    exchange_head(exchange, status, 0);
    exchange_end(exchange, false);
    fd_close(&fd);
    return true;
}

static inline void world_send_internal(void *data, struct exchange *exchange, struct span path,
                                       unsigned status)
{
    ((struct world *)data)->internals += span_is(path, "/inside/a");
    exchange_head(exchange, status, 0);
    exchange_end(exchange, false);
}

static const struct rack_owner world_owner = {
    .on_wanted = world_on_wanted,
    .on_late = world_on_late,
    .on_killed = world_on_killed,
    .on_broken = world_on_broken,
    .send_internal = world_send_internal,
    .send_file = world_send_file,
};

/* ---- Exchanges ---- */

static inline void world_update(struct exchange *exchange)
{
    (void)exchange;
}

static unsigned world_interims;

static inline void world_interim(struct exchange *exchange, unsigned status,
                                 const struct fields *fields)
{
    (void)exchange;
    (void)fields;
    world_interims += status == 103;
}

static const struct conn world_conn = {.interim = world_interim, .update = world_update};

/* The page of a refusal: only its status. */
static inline void world_on_request(struct exchange *exchange)
{
    exchange_head(exchange, http_refusal_status(exchange->refusal), 0);
    exchange_end(exchange, false);
}

static inline void world_on_end(struct exchange *exchange)
{
    (void)exchange;
}

static const struct service world_service = {.on_request = world_on_request,
                                             .on_end = world_on_end};

static inline struct exchange *world_request(const char *method, const char *target)
{
    struct exchange *exchange = must_alloc(1, sizeof(*exchange));
    struct request *request = &exchange->request;

    exchange_init(exchange, world.loop, &world_conn, &world_service, NULL);
    request->method_text = span_of(method);
    request->method = http_method(request->method_text);
    request->target = span_of(target);
    request->query = request->target;
    request->path = span_split(&request->query, '?');
    request->authority = span_of("example.com:8080");
    request->host = span_of("example.com");
    request->minor = 1;
    request->length = 0;
    exchange->client.address = span_of("192.0.2.7");
    exchange->client.port = 8080;
    exchange->id = span_of("id-1");
    exchange->times.body_us = loop_now_us(world.loop);
    return exchange;
}

static inline void world_field(struct exchange *exchange, const char *name, const char *value)
{
    assert_int_equal(fields_add(&exchange->request.fields, span_of(name), span_of(value)), 0);
}

static inline struct exchange *world_start(const char *method, const char *target)
{
    struct exchange *exchange = world_request(method, target);

    rack_start(world.rack, exchange);
    return exchange;
}

static inline void world_end(struct exchange *exchange)
{
    exchange_done(exchange);
    free(exchange);
}

static inline struct span world_text(const struct exchange *exchange, char *room)
{
    size_t size = 0;

    list_for_each (link, &exchange->response.pieces) {
        struct piece *piece = CONTAINER_OF(link, struct piece, link);

        assert_int_equal(piece->kind, PIECE_BYTES);
        memcpy(room + size, piece->data, piece->size);
        size += piece->size;
    }
    return span_make(room, size);
}

/* ---- Workers ---- */

static inline struct page_writer world_take(uint32_t thread)
{
    struct slot_word word;
    int64_t slot = queue_take(&world.board, thread, &word);
    struct page_writer writer = {
        .board = &world.board, .thread = thread, .slot = (uint32_t)slot, .turn = word.turn};

    assert_true(slot >= 0);
    return writer;
}

static inline void world_put(struct page_writer *writer, uint8_t type, uint8_t flags,
                             struct span payload)
{
    assert_true(page_can_write(writer));
    memcpy(page_put(writer, type, flags, (uint32_t)payload.size), payload.data, payload.size);
}

static inline void world_put_head(struct page_writer *writer, uint16_t status, uint8_t flags)
{
    struct page_head head = {status, 0};

    slot_advance(&world.board, writer->slot, writer->thread, SLOT_CALLED);
    slot_advance(&world.board, writer->slot, writer->thread, SLOT_REPLYING);
    world_put(writer, PAGE_HEAD, flags, span_make((char *)&head, sizeof(head)));
}

static inline void world_answer(struct page_writer *writer, const char *body)
{
    world_put_head(writer, 200, 0);
    world_put(writer, PAGE_DATA, 0, span_of(body));
    world_put(writer, PAGE_END, 0, span_of(""));
    page_publish(writer);
    slot_finish(&world.board, writer->slot, writer->thread);
}

/* ---- The world ---- */

/* Lets the loop look at notices and deadlines. */
static inline void world_turn(int wait_ms)
{
    loop_step(world.loop, wait_ms);
    loop_step(world.loop, 0);
}

static inline void world_open(uint64_t queue_timeout_ms, uint64_t timeout_ms)
{
    struct board_shape shape = {WORLD_SLOTS, WORLD_WORKERS, 1, 1, 128 * 1024};
    struct rack_options options = {
        .pool = "test",
        .board = &world.board,
        .queue_timeout_ms = queue_timeout_ms,
        .timeout_ms = timeout_ms,
        .head_limit = 1024,
        .spool_folder = "/tmp",
        .spool_used = &world.spool_used,
        .spool_limit = 8 * 1024 * 1024,
        .counters = {&world.shed, &world.expired, &world.abandoned, &world.reruns,
                     &world.underscores, &world.streams},
        .owner = &world_owner,
        .owner_data = &world,
    };

    memset(&world, 0, sizeof(world));
    log_to(-1);
    world_interims = 0;
    world.board_fd = board_make(&shape, "/tmp/leat-test", &world.board);
    assert_true(world.board_fd >= 0);
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        world.board.bells[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    atomic_store(&world.board.fronts[0].life, BOARD_ALIVE);
    for (unsigned i = 0; i < WORLD_WORKERS; i++) {
        atomic_store(&world.board.workers[i].life, BOARD_ALIVE);
        atomic_store(&world.board.workers[i].ready, 1);
    }
    world.loop = loop_new();
    world.rack = rack_new(world.loop, &options);
    assert_non_null(world.rack);
}

static inline void world_close(void)
{
    rack_free(world.rack);
    loop_free(world.loop);
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        fd_close(&world.board.bells[i]);
    board_unmap(&world.board);
    fd_close(&world.board_fd);
}

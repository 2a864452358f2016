/* SPDX-License-Identifier: MIT */
/*
 * What the tests of this folder share: a temporary tree of files, a loop with file threads, and one
 * exchange whose connection is a buffer.
 */
#pragma once

#include "base/buf.h"
#include "base/fd.h"
#include "http/exchange.h"
#include "loop/offload.h"
#include "static/static.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
    char folder[64]; /* removed at the end */
    char root_path[80];
    struct loop *loop;
    struct post *post;
    struct offload *offload;
    struct static_cache *cache;
    struct static_root root;
    struct exchange exchange;
    struct address address;
    struct buf body; /* what the client got */
    int missing, refused;
    uint64_t pull_at_most; /* bytes the client takes per pull */
};

static struct world world;

static const char *in_world(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", world.folder, name);
    return path;
}

static inline void make_folder(const char *name)
{
    assert_int_equal(mkdir(in_world(name), 0755), 0);
}

static inline void make_link(const char *target, const char *name)
{
    assert_int_equal(symlink(target, in_world(name)), 0);
}

static inline void write_text(const char *name, const char *text)
{
    int fd = open(in_world(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, span_of(text)), 0);
    close(fd);
}

/* Bytes that tell where they stand. */
static char byte_at(size_t index)
{
    return (char)('a' + index % 23 + index / 1000 % 3);
}

static inline void write_bytes(const char *name, size_t size)
{
    char *bytes = malloc(size);
    int fd = open(in_world(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(fd_write_all(fd, span_make(bytes, size)), 0);
    close(fd);
    free(bytes);
}

/* ---- The exchange's surroundings ---- */

static void on_interim(struct exchange *exchange, unsigned status, const struct fields *fields)
{
    (void)exchange, (void)status, (void)fields;
}

static void on_update(struct exchange *exchange)
{
    (void)exchange;
}

static const struct conn world_conn = {.interim = on_interim, .update = on_update};

static enum refusal on_world_head(struct exchange *exchange)
{
    (void)exchange;
    return REFUSAL_NONE;
}

/* Only a refusal comes here. */
static void on_world_request(struct exchange *exchange)
{
    world.refused++;
    exchange->response.status = http_refusal_status(exchange->refusal);
    exchange->response.ended = true;
}

static void on_world_end(struct exchange *exchange)
{
    (void)exchange;
}

static const struct service world_service = {
    .on_head = on_world_head, .on_request = on_world_request, .on_end = on_world_end};

static inline void on_world_missing(struct exchange *exchange)
{
    world.missing++;
    exchange->response.ended = true;
}

static int world_setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    snprintf(world.folder, sizeof(world.folder), "/tmp/static-test-XXXXXX");
    assert_non_null(mkdtemp(world.folder));
    make_folder("public");
    snprintf(world.root_path, sizeof(world.root_path), "%s/public", world.folder);
    world.root.folder = world.root_path;
    world.loop = loop_new();
    world.post = post_new(world.loop);
    world.offload = offload_new(2);
    world.cache = static_cache_new(world.loop, world.offload, world.post);
    assert_non_null(world.cache);
    world.pull_at_most = UINT64_MAX;
    exchange_init(&world.exchange, world.loop, &world_conn, &world_service, NULL);
    return 0;
}

static int world_teardown(void **state)
{
    char command[256];
    (void)state;

    exchange_done(&world.exchange);
    offload_free(world.offload);
    post_free(world.post);
    static_cache_free(world.cache);
    loop_free(world.loop);
    buf_done(&world.body);
    snprintf(command, sizeof(command), "chmod -R u+w %s; rm -rf %s", world.folder, world.folder);
    return system(command);
}

/* Begins the next request: a method, a path, and pairs of field and value up to a NULL. */
static inline void begin(const char *method, const char *path, ...)
{
    struct exchange *exchange = &world.exchange;
    const char *name;
    va_list list;

    exchange_reset(exchange);
    exchange_init(exchange, world.loop, &world_conn, &world_service, NULL);
    buf_clear(&world.body);
    exchange->request.method = http_method(span_of(method));
    exchange->request.path = span_of(path);
    exchange->request.minor = 1;
    exchange->times.body_us = 1;
    va_start(list, path);
    while ((name = va_arg(list, const char *)))
        fields_add(&exchange->request.fields, span_of(name), span_of(va_arg(list, const char *)));
    va_end(list);
}

static void take_piece(struct piece *piece, uint64_t size)
{
    char *room = buf_reserve(&world.body, size);

    if (piece->kind == PIECE_BYTES)
        memcpy(room, piece->data, size);
    else
        assert_int_equal(pread(piece->fd, room, size, (off_t)piece->offset), (ssize_t)size);
    buf_grow(&world.body, size);
    exchange_consume(&world.exchange, size);
}

/* Takes what stands ready, as a connection would. */
static inline void pull(void)
{
    struct response *response = &world.exchange.response;
    uint64_t left = world.pull_at_most;

    while (left && !list_is_empty(&response->pieces)) {
        struct piece *piece = CONTAINER_OF(response->pieces.next, struct piece, link);
        uint64_t size = piece->size < left ? piece->size : left;

        take_piece(piece, size);
        left -= size;
    }
    exchange_pull(&world.exchange);
}

/* Runs until the answer has ended and was taken whole. */
static inline void run(void)
{
    struct response *response = &world.exchange.response;

    for (int rounds = 0; rounds < 10000; rounds++) {
        pull();
        if (response->ended && list_is_empty(&response->pieces))
            return;
        if (list_is_empty(&response->pieces))
            loop_step(world.loop, 2000);
    }
    fail_msg("the answer does not end");
}

/* The value of a response field, "" when it is not there. */
static inline const char *field(const char *name)
{
    static char values[4][256];
    static unsigned next;
    struct field *found = fields_find_name(&world.exchange.response.fields, span_of(name));
    char *value = values[next++ % 4];

    value[0] = 0;
    if (found)
        snprintf(value, sizeof(values[0]), "%.*s", SPAN_ARG(found->value));
    return value;
}

static inline const char *body(void)
{
    assert_int_equal(buf_append_byte(&world.body, 0), 0);
    return buf_span(&world.body).data;
}

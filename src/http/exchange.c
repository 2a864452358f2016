/* SPDX-License-Identifier: MIT */
#include "http/exchange.h"

#include "base/ascii.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

enum {
    ARENA_BODY =
        16 * 1024, /* a body up to here lies in the arena: no allocation for small answers */
    ARENA_PIECE = 1024,
    HEAP_PIECE = 16 * 1024, /* small writes of a long answer are gathered up to here */
    BODY_KEEP = 16 * 1024   /* request body memory that a reset keeps for the next one */
};

static void free_piece(struct piece *piece)
{
    list_remove(&piece->link);
    if (piece->kind == PIECE_FILE && piece->owns_fd)
        fd_close(&piece->fd);
    if (piece->heap)
        free(piece);
}

static void free_pieces(struct response *response)
{
    list_for_each_safe (link, &response->pieces)
        free_piece(CONTAINER_OF(link, struct piece, link));
    response->pending = response->memory = 0;
}

static void break_off(struct exchange *exchange)
{
    exchange->response.cut = true;
    exchange->response.close = true;
}

static void update(struct exchange *exchange)
{
    if (exchange->conn)
        exchange->conn->update(exchange);
}

void exchange_init(struct exchange *exchange, struct loop *loop, const struct conn *conn,
                   const struct service *service, void *service_data)
{
    struct arena arena = exchange->arena;
    struct buf memory = exchange->request.body.memory;

    *exchange = (struct exchange){.arena = arena,
                                  .loop = loop,
                                  .conn = conn,
                                  .service = service,
                                  .service_data = service_data};
    exchange->request.body.memory = memory;
    exchange->request.body.fd = -1;
    exchange->request.length = -1;
    exchange->response.length = -1;
    list_init(&exchange->response.pieces);
    fields_init(&exchange->request.fields, &exchange->arena);
    fields_init(&exchange->response.fields, &exchange->arena);
}

static void release(struct exchange *exchange)
{
    if (!exchange->response.pieces.next) /* zeros: never prepared, and 0 would be a descriptor */
        return;
    free_pieces(&exchange->response);
    fd_close(&exchange->request.body.fd);
    buf_clear(&exchange->request.body.memory);
}

void exchange_reset(struct exchange *exchange)
{
    release(exchange);
    buf_shrink(&exchange->request.body.memory, BODY_KEEP);
    arena_reset(&exchange->arena);
}

void exchange_done(struct exchange *exchange)
{
    release(exchange);
    buf_done(&exchange->request.body.memory);
    arena_done(&exchange->arena);
}

/* No byte of a field may end it early or begin another one (RFC 9110 5.5): whoever made the field,
 * an illegal one does not leave this server. */
static bool is_legal(struct span name, struct span value)
{
    return ascii_all(name, ASCII_TOKEN) && (!value.size || ascii_all(value, ASCII_VALUE));
}

void exchange_add_field(struct exchange *exchange, struct span name, struct span value)
{
    if (!is_legal(name, value))
        return;
    if (fields_add(&exchange->response.fields, name, value))
        break_off(exchange);
}

void exchange_add_own(struct exchange *exchange, enum field_id id, struct span value)
{
    if (fields_add_id(&exchange->response.fields, id, value))
        break_off(exchange);
}

void exchange_head(struct exchange *exchange, unsigned status, int64_t length)
{
    struct response *response = &exchange->response;

    CHECK(!response->status && !response->ended);
    CHECK(status >= 100 && status <= 999);
    response->status = status;
    response->length = length;
    response->no_body = exchange->request.method == METHOD_HEAD || http_status_has_no_body(status);
    exchange->times.answer_us = loop_now_us(exchange->loop);
    if (exchange->filter)
        exchange->filter->head(exchange);
    update(exchange);
}

void exchange_settle(struct exchange *exchange)
{
    if (exchange->filter && exchange->response.status)
        exchange->filter->settle(exchange);
}

/* How much of size more bytes may follow; the rest would belong to the next answer in the client's
 * eyes, so it is dropped (RFC 9112 6.3). */
static uint64_t admit(struct response *response, uint64_t size)
{
    uint64_t left;

    if (response->length < 0 || response->no_body)
        return size;
    left = (uint64_t)response->length - response->written;
    if (size <= left)
        return size;
    response->cut = response->close = true;
    return left;
}

/* Room for size bytes at least, as a piece of the arena or of its own; NULL when memory is out. */
static struct piece *new_piece(struct exchange *exchange, size_t size)
{
    struct response *response = &exchange->response;
    bool heap = response->written + size > ARENA_BODY;
    size_t least = heap ? HEAP_PIECE : ARENA_PIECE;
    size_t room = size > least ? size : least;
    struct piece *piece;

    piece =
        heap ? malloc(sizeof(*piece) + room) : arena_take(&exchange->arena, sizeof(*piece) + room);
    if (!piece)
        return NULL;
    *piece = (struct piece){
        .kind = PIECE_BYTES, .heap = heap, .fd = -1, .data = (char *)(piece + 1), .room = room};
    list_init(&piece->link);
    list_push_back(&response->pieces, &piece->link);
    return piece;
}

static struct piece *last_piece(struct response *response)
{
    if (list_is_empty(&response->pieces))
        return NULL;
    return CONTAINER_OF(response->pieces.previous, struct piece, link);
}

static void put(struct response *response, struct piece *piece, struct span bytes)
{
    memcpy(piece->data + piece->size, bytes.data, bytes.size);
    piece->size += bytes.size;
    piece->room -= bytes.size;
    response->pending += bytes.size;
    response->memory += bytes.size;
    response->written += bytes.size;
}

static bool append(struct exchange *exchange, struct span bytes)
{
    struct response *response = &exchange->response;
    struct piece *piece = last_piece(response);
    struct span part;

    if (piece && piece->kind == PIECE_BYTES && piece->room) {
        part = span_first(bytes, piece->room);
        put(response, piece, part);
        bytes = span_skip(bytes, part.size);
    }
    if (!bytes.size)
        return true;
    piece = new_piece(exchange, bytes.size);
    if (!piece)
        return false;
    put(response, piece, bytes);
    return true;
}

void exchange_put(struct exchange *exchange, struct span bytes)
{
    struct response *response = &exchange->response;

    CHECK(response->status && !response->ended);
    bytes = span_first(bytes, admit(response, bytes.size));
    if (response->no_body) {
        response->written += bytes.size;
        return;
    }
    if (!bytes.size)
        return;
    if (!append(exchange, bytes))
        break_off(exchange);
    update(exchange);
}

void exchange_write(struct exchange *exchange, struct span bytes)
{
    if (exchange->filter)
        exchange->filter->write(exchange, bytes);
    else
        exchange_put(exchange, bytes);
}

static void put_file(struct exchange *exchange, int fd, bool owns_fd, uint64_t offset,
                     uint64_t size)
{
    struct response *response = &exchange->response;
    struct piece *piece = NULL;

    CHECK(response->status && !response->ended);
    size = admit(response, size);
    if (size && !response->no_body) {
        piece = malloc(sizeof(*piece));
        if (!piece)
            break_off(exchange);
    }
    if (!piece) {
        if (owns_fd)
            fd_close(&fd);
        response->written += response->no_body ? size : 0;
        return;
    }
    *piece = (struct piece){.kind = PIECE_FILE,
                            .heap = true,
                            .fd = fd,
                            .owns_fd = owns_fd,
                            .offset = offset,
                            .size = size};
    list_init(&piece->link);
    list_push_back(&response->pieces, &piece->link);
    response->pending += size;
    response->written += size;
    update(exchange);
}

void exchange_write_file(struct exchange *exchange, int fd, bool owns_fd, uint64_t offset,
                         uint64_t size)
{
    if (exchange->filter)
        exchange->filter->write_file(exchange, fd, owns_fd, offset, size);
    else
        put_file(exchange, fd, owns_fd, offset, size);
}

void exchange_flush(struct exchange *exchange)
{
    if (exchange->filter && exchange->response.status)
        exchange->filter->flush(exchange);
    update(exchange);
}

static bool is_short(const struct response *response)
{
    return !response->no_body && response->length >= 0 &&
           response->written < (uint64_t)response->length;
}

void exchange_finish(struct exchange *exchange, bool cut)
{
    struct response *response = &exchange->response;

    CHECK(!response->ended);
    if (cut || is_short(response))
        break_off(exchange);
    if (response->cut && exchange->refusal == REFUSAL_NONE)
        exchange->refusal = REFUSAL_ANSWER_CUT;
    response->ended = true;
    update(exchange);
}

void exchange_end(struct exchange *exchange, bool cut)
{
    CHECK(!exchange->response.ended);
    if (!exchange->response.status)
        exchange_refuse(exchange, REFUSAL_BAD_ANSWER);
    else if (exchange->filter)
        exchange->filter->end(exchange, cut);
    else
        exchange_finish(exchange, cut);
}

/* Without a page there is nothing to send: the connection closes on an ended answer without head. */
static void end_without_answer(struct exchange *exchange)
{
    break_off(exchange);
    exchange->response.ended = true;
    update(exchange);
}

void exchange_refuse(struct exchange *exchange, enum refusal refusal)
{
    struct response *response = &exchange->response;

    CHECK(!response->ended && refusal != REFUSAL_NONE);
    if (exchange->refusal == REFUSAL_NONE)
        exchange->refusal = refusal;
    if (response->status) {
        exchange_end(exchange, true);
        return;
    }
    exchange->handler = NULL;
    exchange->handler_data = NULL;
    response->fields.size = 0;
    if (!http_refusal_status(refusal)) {
        end_without_answer(exchange);
        return;
    }
    exchange->service->on_request(exchange);
}

void exchange_interim(struct exchange *exchange, unsigned status, const struct fields *fields)
{
    /* An HTTP/1.0 client would take it for the answer (RFC 9110 15.2). */
    if (exchange->request.minor == 0 || exchange->response.status)
        return;
    exchange->conn->interim(exchange, status, fields);
}

void exchange_consume(struct exchange *exchange, uint64_t count)
{
    struct response *response = &exchange->response;

    CHECK(count <= response->pending);
    response->pending -= count;
    while (count) {
        struct piece *piece = CONTAINER_OF(response->pieces.next, struct piece, link);
        uint64_t part = count < piece->size ? count : piece->size;

        piece->size -= part;
        count -= part;
        if (piece->kind == PIECE_FILE) {
            piece->offset += part;
        } else {
            piece->data += part;
            response->memory -= part;
        }
        if (!piece->size)
            free_piece(piece);
    }
}

static ssize_t read_file(const struct piece *file, char *out, size_t size, bool may_wait)
{
    struct iovec part = {.iov_base = out, .iov_len = size};
    ssize_t result;

    do
        result = preadv2(file->fd, &part, 1, (off_t)file->offset, may_wait ? 0 : RWF_NOWAIT);
    while (result == -1 && errno == EINTR);
    return result == -1 ? -errno : result;
}

ssize_t exchange_load(struct exchange *exchange, size_t limit, bool may_wait)
{
    struct response *response = &exchange->response;
    struct piece *file = CONTAINER_OF(response->pieces.next, struct piece, link);
    size_t room = file->size < limit ? file->size : limit;
    struct piece *piece = malloc(sizeof(*piece) + room);
    ssize_t size;

    CHECK(!list_is_empty(&response->pieces) && file->kind == PIECE_FILE);
    if (!piece)
        return -ENOMEM;
    size = read_file(file, (char *)(piece + 1), room, may_wait);
    if (size <= 0) {
        free(piece);
        return size;
    }
    *piece = (struct piece){.kind = PIECE_BYTES,
                            .heap = true,
                            .fd = -1,
                            .size = (uint64_t)size,
                            .data = (char *)(piece + 1)};
    list_init(&piece->link);
    list_push_front(&response->pieces, &piece->link);
    response->memory += piece->size;
    file->offset += piece->size;
    file->size -= piece->size;
    if (!file->size)
        free_piece(file);
    return size;
}

void exchange_abort(struct exchange *exchange, enum refusal refusal)
{
    bool started = exchange->times.body_us;

    if (exchange->finished)
        return;
    if (exchange->refusal == REFUSAL_NONE)
        exchange->refusal = refusal;
    if (!exchange->response.ended) {
        break_off(exchange);
        if (started && exchange->handler && exchange->handler->cancel)
            exchange->handler->cancel(exchange);
        exchange->response.ended = true;
    }
    exchange->finished = true;
    exchange->service->on_end(exchange);
}

void exchange_pull(struct exchange *exchange)
{
    const struct response *response = &exchange->response;
    const struct filter *filter = exchange->filter;

    if (response->ended || exchange->resuming || !response->status ||
        response->pending >= EXCHANGE_LOW)
        return;
    exchange->resuming = true;
    if ((!filter || filter->pull(exchange)) && exchange->handler && exchange->handler->resume)
        exchange->handler->resume(exchange);
    exchange->resuming = false;
}

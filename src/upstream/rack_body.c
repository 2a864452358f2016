/* SPDX-License-Identifier: MIT */
/*
 * From pages to the exchange. An answer is taken off its worker at once: up to EXCHANGE_HIGH it lies in
 * memory, beyond that in an unlinked file, and only when that cannot be had does the worker wait for its
 * client. Streams are meant to wait.
 */
#include "base/ascii.h"
#include "base/base.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "upstream/rack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPOOL_LOG_S = 60 };

/* ---- The spool ---- */

static void close_spool(void *object)
{
    struct rack_spool *spool = object;

    *spool->used -= spool->written;
    fd_close(&spool->fd);
}

static struct rack_spool *open_spool(struct rack_job *job)
{
    const struct rack_options *options = &job->rack->options;
    struct rack_spool *spool = arena_zero(&job->exchange->arena, sizeof(*spool));

    if (!spool || !options->spool_folder)
        return NULL;
    spool->used = options->spool_used;
    spool->fd = fd_temporary(options->spool_folder);
    if (spool->fd < 0) {
        if (log_allow(span_of("answer-spool"), SPOOL_LOG_S, NULL))
            log_warn("pool=%s spool file in %s: %s, workers wait for slow clients", options->pool,
                     options->spool_folder, strerror(-spool->fd));
        return NULL;
    }
    if (arena_defer(&job->exchange->arena, close_spool, spool)) {
        fd_close(&spool->fd);
        return NULL;
    }
    return spool;
}

static bool write_spool(struct rack_spool *spool, struct span bytes)
{
    uint64_t end = spool->written;

    while (bytes.size) {
        ssize_t size = pwrite(spool->fd, bytes.data, bytes.size, (off_t)end);

        if (size == -1 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        end += (uint64_t)size;
        bytes = span_skip(bytes, (size_t)size);
    }
    *spool->used += end - spool->written;
    spool->written = end;
    return true;
}

static bool has_waiting(const struct rack_spool *spool)
{
    return spool && spool->written > spool->handed;
}

/* Puts bytes into the spool; false when they must go to memory after all. */
static bool try_spool(struct rack_job *job, struct span bytes)
{
    const struct rack_options *options = &job->rack->options;

    if (*options->spool_used + bytes.size > options->spool_limit)
        return false;
    if (!job->spool)
        job->spool = open_spool(job);
    return job->spool && write_spool(job->spool, bytes);
}

static void hand_over_all(struct rack_job *job)
{
    struct rack_spool *spool = job->spool;
    uint64_t offset;

    if (!has_waiting(spool))
        return;
    offset = spool->handed;
    spool->handed = spool->written;
    exchange_write_file(job->exchange, spool->fd, false, offset, spool->written - offset);
}

void rack_hand_over(struct rack_job *job)
{
    hand_over_all(job);
}

/* ---- Records ---- */

static void reject(struct rack_job *job, const char *reason)
{
    rack_break(job, board_worker_of(job->rack->options.board, job->thread), reason);
}

static bool is_passed(enum field_id id)
{
    return !(http_field_flags(id) & FIELD_HOP) && id != FIELD_ID_CONTENT_LENGTH &&
           id != FIELD_ID_X_ACCEL_REDIRECT && id != FIELD_ID_X_SENDFILE;
}

/* A head that stands for itself: only a connection that becomes a tunnel can change its protocol. */
static bool read_head(struct span payload, uint8_t flags, struct reply_head *ret_head)
{
    return reply_head_read(payload, false, ret_head) &&
           (ret_head->status != 101 || (flags & PAGE_RAW));
}

/* The length that the application gave, or -1; false when it is none or there are two. */
static bool read_length(struct span value, int64_t *length)
{
    uint64_t number;

    if (!num_decimal(value, &number) || number > INT64_MAX)
        return false;
    if (*length >= 0 && (uint64_t)*length != number)
        return false;
    *length = (int64_t)number;
    return true;
}

/* Adds the fields to the answer; the bytes are copied into the exchange's arena once for all. */
static bool add_fields(struct rack_job *job, const struct reply_head *head, int64_t *ret_length)
{
    struct span name, value, rest = arena_copy(&job->exchange->arena, head->fields);

    if (!rest.data)
        return false;
    while (reply_field(&rest, &name, &value)) {
        enum field_id id = http_field_id(name);

        if (id == FIELD_ID_CONTENT_LENGTH && !read_length(value, ret_length))
            return false;
        if (id == FIELD_ID_X_ACCEL_REDIRECT)
            job->internal = value;
        if (is_passed(id) || (id == FIELD_ID_UPGRADE && head->status == 101))
            exchange_add_field(job->exchange, name, value);
    }
    return true;
}

/* The body that came with the head is not wanted; the worker may finish it. */
static bool serve_internal(struct rack_job *job, unsigned status)
{
    const struct rack_options *options = &job->rack->options;
    struct exchange *exchange = job->exchange;
    struct span path = job->internal;

    rack_detach(job);
    exchange->handler = NULL;
    options->owner->send_internal(options->owner_data, exchange, path, status);
    return false;
}

static bool start_answer(struct rack_job *job, struct span payload, uint8_t flags)
{
    struct exchange *exchange = job->exchange;
    struct reply_head head;
    int64_t length = -1;

    if (payload.size > job->rack->options.head_limit) {
        log_warn(
            "pool=%s answer's head has %zu bytes, limits.response_header is %llu, answered 502",
            job->rack->options.pool, payload.size,
            (unsigned long long)job->rack->options.head_limit);
        rack_refuse(job, REFUSAL_BAD_ANSWER, SLOT_LEFT);
        return false;
    }
    if (!read_head(payload, flags, &head) || !add_fields(job, &head, &length)) {
        exchange->response.fields.size = 0;
        reject(job, "head");
        return false;
    }
    exchange->times.taken_us = rack_taken_us(job);
    exchange->response.close |= (flags & PAGE_CLOSE) != 0;
    if (job->internal.size && job->rack->options.owner->send_internal)
        return serve_internal(job, head.status);
    exchange->response.stream = (flags & PAGE_STREAM) != 0;
    exchange->response.raw = (flags & PAGE_RAW) != 0;
    exchange->response.raw_chunked = (flags & PAGE_CHUNKED) != 0 && exchange->request.minor > 0;
    rack_set_stream(job, exchange->response.stream);
    exchange_head(exchange, head.status, length);
    return true;
}

static bool gather_head(struct rack_job *job, struct span payload)
{
    if (job->head.size + payload.size > job->rack->options.head_limit + BOARD_PAGE_BYTES ||
        buf_append(&job->head, payload)) {
        rack_refuse(job, REFUSAL_BAD_ANSWER, SLOT_LEFT);
        return false;
    }
    return true;
}

static bool take_head(struct rack_job *job, struct span payload, uint8_t flags)
{
    if (!job->head.size)
        return start_answer(job, payload, flags);
    if (!gather_head(job, payload))
        return false;
    return start_answer(job, buf_span(&job->head), flags);
}

static bool take_interim(struct rack_job *job, struct span payload)
{
    struct exchange *exchange = job->exchange;
    struct reply_head head;
    struct fields fields;
    struct span name, value, rest;

    if (!reply_head_read(payload, true, &head)) {
        reject(job, "interim head");
        return false;
    }
    fields_init(&fields, &exchange->arena);
    rest = arena_copy(&exchange->arena, head.fields);
    while (rest.data && reply_field(&rest, &name, &value))
        if (is_passed(http_field_id(name)) && (!value.size || ascii_all(value, ASCII_VALUE)))
            (void)fields_add(&fields, name, value);
    exchange_interim(exchange, head.status, &fields);
    return true;
}

static bool take_data(struct rack_job *job, struct span payload)
{
    struct exchange *exchange = job->exchange;
    bool must_spool = has_waiting(job->spool) || exchange_is_full(exchange);

    if (!job->is_stream && must_spool && try_spool(job, payload))
        return true;
    /* Back-pressure: what is here is kept in order, what follows stays in the board. */
    hand_over_all(job);
    exchange_write(exchange, payload);
    if (must_spool && !job->rack->burying)
        job->is_held_back = true;
    return true;
}

static bool take_file(struct rack_job *job, struct span payload)
{
    struct exchange *exchange = job->exchange;
    struct page_file file;
    struct stat status;
    int fd = job->file_fd;

    if (fd == -1 || !reply_file_read(payload, &file) || fstat(fd, &status) == -1 ||
        !S_ISREG(status.st_mode)) {
        reject(job, "file");
        return false;
    }
    job->file_fd = -1;
    hand_over_all(job);
    /* A file that has shrunk since the worker looked is sent as far as it goes, and visibly cut. */
    if (file.offset > (uint64_t)status.st_size)
        file.offset = (uint64_t)status.st_size;
    if (file.size > (uint64_t)status.st_size - file.offset)
        file.size = (uint64_t)status.st_size - file.offset;
    exchange_write_file(exchange, fd, true, file.offset, file.size);
    return true;
}

/* Trailers need a carrier that has them; the fields are checked and go no further. */
static bool take_trailers(struct rack_job *job, struct span payload)
{
    unsigned count;

    if (reply_fields_are_valid(payload, &count))
        return true;
    reject(job, "trailers");
    return false;
}

static bool take_tunnel(struct rack_job *job)
{
    if (!rack_tunnel_take(job))
        reject(job, "tunnel");
    return false;
}

static bool take_end(struct rack_job *job, uint8_t flags)
{
    struct exchange *exchange = job->exchange;

    hand_over_all(job);
    rack_detach(job);
    exchange_end(exchange, flags & PAGE_CUT);
    return false;
}

/* A file that is the whole answer is served as one of ours: with validators and ranges. */
static bool is_whole_file(const struct rack_job *job, struct span payload, struct stat *ret_status)
{
    struct page_file file;

    return job->file_fd != -1 && reply_file_read(payload, &file) && file.offset == 0 &&
           fstat(job->file_fd, ret_status) == 0 && S_ISREG(ret_status->st_mode) &&
           file.size == (uint64_t)ret_status->st_size;
}

static bool is_file_record(struct span records, struct span *ret_payload)
{
    struct page_record record;
    bool broken;

    return page_next(&records, &record, ret_payload, &broken) && record.type == PAGE_FILE;
}

static bool serve_file(struct rack_job *job, struct span head_payload, uint8_t flags)
{
    struct rack *rack = job->rack;
    struct exchange *exchange = job->exchange;
    struct reply_head head;
    int64_t length = -1;
    int fd = job->file_fd;

    if (!read_head(head_payload, flags, &head) || !add_fields(job, &head, &length)) {
        exchange->response.fields.size = 0;
        reject(job, "head");
        return false;
    }
    exchange->times.taken_us = rack_taken_us(job);
    exchange->response.close |= (flags & PAGE_CLOSE) != 0;
    job->file_fd = -1;
    rack_detach(job);
    exchange->handler = NULL;
    if (!rack->options.owner->send_file(rack->options.owner_data, exchange, fd, head.status))
        exchange_refuse(exchange, REFUSAL_BAD_ANSWER);
    return false;
}

/* Whether the head and what follows it are a file to be served; decided before the head is given on. */
static bool try_file(struct rack_job *job, const struct page_record *record, struct span payload,
                     struct span rest)
{
    struct span file_payload;
    struct stat status;

    if (record->type != PAGE_HEAD || job->head.size || !job->rack->options.owner->send_file ||
        payload.size > job->rack->options.head_limit)
        return false;
    return is_file_record(rest, &file_payload) && is_whole_file(job, file_payload, &status);
}

/* A bare 500 (no field, no body) is how a worker says that the application raised: the client gets our own
 * page, or the site's. */
static bool is_failure(const struct page_record *record, struct span payload, struct span rest)
{
    struct page_record end;
    struct reply_head head;
    struct span nothing;
    bool broken;

    return record->type == PAGE_HEAD && reply_head_read(payload, false, &head) &&
           head.status == 500 && head.field_count == 0 &&
           page_next(&rest, &end, &nothing, &broken) && end.type == PAGE_END &&
           !(end.flags & PAGE_CUT);
}

static bool answer_failure(struct rack_job *job)
{
    struct exchange *exchange = job->exchange;

    exchange->times.taken_us = rack_taken_us(job);
    rack_detach(job);
    exchange_refuse(exchange, REFUSAL_APP_FAILED);
    return false;
}

/* Takes one record; false when the job is over. */
static bool take_record(struct rack_job *job, const struct page_record *record, struct span payload,
                        struct span rest)
{
    switch (reply_step(&job->reply, record)) {
    case REPLY_INTERIM:
        return take_interim(job, payload);
    case REPLY_HEAD_PART:
        return gather_head(job, payload);
    case REPLY_HEAD:
        if (!job->head.size && is_failure(record, payload, rest))
            return answer_failure(job);
        if (try_file(job, record, payload, rest))
            return serve_file(job, payload, record->flags);
        return take_head(job, payload, record->flags);
    case REPLY_DATA:
        return take_data(job, payload);
    case REPLY_FILE:
        return take_file(job, payload);
    case REPLY_TRAILERS:
        return take_trailers(job, payload);
    case REPLY_END:
        return take_end(job, record->flags);
    case REPLY_TUNNEL:
        return take_tunnel(job);
    case REPLY_BROKEN:
        break;
    }
    reject(job, "order of records");
    return false;
}

void rack_take_records(struct rack_job *job, struct span records)
{
    struct page_record record;
    struct span payload;
    bool broken = false;

    while (page_next(&records, &record, &payload, &broken))
        if (!take_record(job, &record, payload, records))
            return;
    if (broken) {
        reject(job, "record");
        return;
    }
    if (job->is_stream) {
        exchange_flush(job->exchange);
        if (exchange_is_full(job->exchange) && !job->rack->burying)
            job->is_held_back = true;
    }
}

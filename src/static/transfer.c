/* SPDX-License-Identifier: MIT */
#include "static/transfer.h"

#include "loop/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PIECE = 512 * 1024, /* bytes whose pages are looked for at once */
    SCRATCH = 64 * 1024,
    AT_ONCE =
        128 * 1024,   /* so much goes out in one system call, right behind the look at the file */
    FINAL = 16 * 1024 /* held until the rest is out */
};

struct warming;

struct transfer {
    struct exchange *exchange;
    struct offload *offload;
    struct post *post;
    struct transfer_plan plan;
    unsigned at;             /* the part being sent */
    uint64_t sent;           /* bytes of it */
    bool led;                /* what stands before it was written */
    bool is_guarded;         /* the last bytes wait for a look at the file */
    bool in_memory;          /* the next piece has been read by a file thread just now */
    struct warming *warming; /* a file thread reads for us */
};

/* A file thread's errand; it may outlive the exchange. */
struct warming {
    struct offload_job job;
    struct transfer *transfer; /* NULL once the exchange was cancelled */
    struct open_file *file;    /* a reference */
    uint64_t offset, size;
};

static void send_more(struct transfer *transfer);

/* ---- Reading ahead ---- */

static void warm(struct offload_job *job)
{
    struct warming *warming = CONTAINER_OF(job, struct warming, job);
    uint64_t end = warming->offset + warming->size;
    char scratch[SCRATCH];

    for (uint64_t at = warming->offset; at < end; at += sizeof(scratch)) {
        ssize_t got = pread(warming->file->fd, scratch, sizeof(scratch), (off_t)at);

        if (got == 0 || (got == -1 && errno != EINTR))
            return;
    }
}

static void on_warm(struct offload_job *job)
{
    struct warming *warming = CONTAINER_OF(job, struct warming, job);
    struct transfer *transfer = warming->transfer;

    open_file_unref(warming->file);
    free(warming);
    if (!transfer)
        return;
    transfer->warming = NULL;
    transfer->in_memory = true;
    send_more(transfer);
}

static bool start_warming(struct transfer *transfer, uint64_t offset, uint64_t size)
{
    struct warming *warming = malloc(sizeof(*warming));

    if (!warming)
        return false;
    *warming = (struct warming){
        .job = {.post = transfer->post,
                .key = transfer->plan.file->identity.inode,
                .work = warm,
                .on_done = on_warm},
        .transfer = transfer,
        .file = open_file_ref(transfer->plan.file),
        .offset = offset,
        .size = size,
    };
    transfer->warming = warming;
    offload_send(transfer->offload, &warming->job);
    return true;
}

/* Whether the byte there can be read without waiting. A file system that cannot tell is taken at its
 * word: only the read itself would show more. */
static bool is_byte_in_memory(int fd, uint64_t offset)
{
    char byte;
    struct iovec part = {&byte, 1};

    return preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT) != -1 || errno != EAGAIN;
}

/* Pages come and go in runs, so both ends speak for what lies between. */
static bool is_in_memory(int fd, uint64_t offset, uint64_t size)
{
    return is_byte_in_memory(fd, offset) && (size == 1 || is_byte_in_memory(fd, offset + size - 1));
}

/* What one request of a batch has found there need not be looked for by the next. */
static bool is_warm(struct open_file *file, uint64_t batch_us, uint64_t offset, uint64_t size)
{
    if (file->warm.batch_us == batch_us && file->warm.offset == offset && file->warm.size == size)
        return true;
    if (!is_in_memory(file->fd, offset, size))
        return false;
    file->warm.batch_us = batch_us;
    file->warm.offset = offset;
    file->warm.size = size;
    return true;
}

static bool must_wait(const struct transfer *transfer, uint64_t offset, uint64_t size)
{
    struct open_file *file = transfer->plan.file;

    if (file->content || transfer->in_memory || !transfer->offload)
        return false;
    return !is_warm(file, loop_now_us(post_loop(transfer->post)), offset, size);
}

/* ---- Sending ---- */

static void write_content(struct transfer *transfer, uint64_t offset, uint64_t size)
{
    const struct open_file *file = transfer->plan.file;

    if (file->content)
        exchange_write(transfer->exchange, span_make(file->content + offset, (size_t)size));
    else
        exchange_write_file(transfer->exchange, file->fd, false, offset, size);
}

static void write_lead(struct transfer *transfer)
{
    if (!transfer->led && transfer->plan.leads)
        exchange_write(transfer->exchange, transfer->plan.leads[transfer->at]);
    transfer->led = true;
}

static uint64_t left_of_part(const struct transfer *transfer)
{
    return transfer->plan.parts[transfer->at].size - transfer->sent;
}

static bool is_in_guarded_part(const struct transfer *transfer)
{
    return transfer->is_guarded && transfer->at == transfer->plan.count - 1;
}

static bool is_at_final(const struct transfer *transfer)
{
    return is_in_guarded_part(transfer) && left_of_part(transfer) <= FINAL;
}

static uint64_t next_size(const struct transfer *transfer)
{
    uint64_t size = left_of_part(transfer);

    if (is_in_guarded_part(transfer) && size > FINAL)
        size -= FINAL;
    return size < PIECE ? size : PIECE;
}

static bool read_final(int fd, uint64_t offset, char *out, size_t size)
{
    while (size) {
        ssize_t got = pread(fd, out, size, (off_t)offset);

        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        out += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

/* Read first, looked at behind it: whoever wrote before the reading has left his mark by then. */
static void send_final(struct transfer *transfer)
{
    struct exchange *exchange = transfer->exchange;
    const struct open_file *file = transfer->plan.file;
    uint64_t offset = transfer->plan.parts[transfer->at].first + transfer->sent;
    size_t size = (size_t)left_of_part(transfer);
    char bytes[FINAL];

    if (must_wait(transfer, offset, size) && start_warming(transfer, offset, size))
        return;
    if (!read_final(file->fd, offset, bytes, size) || !open_file_is_intact(file)) {
        exchange_end(exchange, true);
        return;
    }
    write_lead(transfer);
    exchange_write(exchange, span_make(bytes, size));
    if (transfer->plan.trail.size)
        exchange_write(exchange, transfer->plan.trail);
    exchange_end(exchange, false);
}

/* Appends the next piece of the current part; false when it has to wait for a file thread. */
static bool send_piece(struct transfer *transfer)
{
    const struct transfer_plan *plan = &transfer->plan;
    const struct range *part = &plan->parts[transfer->at];
    uint64_t offset = part->first + transfer->sent, size = next_size(transfer);

    if (must_wait(transfer, offset, size) && start_warming(transfer, offset, size))
        return false;
    transfer->in_memory = false;
    write_lead(transfer);
    write_content(transfer, offset, size);
    transfer->sent += size;
    if (transfer->sent == part->size) {
        transfer->at++;
        transfer->sent = 0;
        transfer->led = false;
    }
    return true;
}

static void send_more(struct transfer *transfer)
{
    struct exchange *exchange = transfer->exchange;

    while (transfer->at < transfer->plan.count) {
        if (exchange->response.pending >= (is_at_final(transfer) ? 1 : EXCHANGE_LOW))
            return;
        if (is_at_final(transfer)) {
            send_final(transfer);
            return;
        }
        if (!send_piece(transfer))
            return;
    }
    if (transfer->plan.trail.size)
        exchange_write(exchange, transfer->plan.trail);
    exchange_end(exchange, false);
}

static void resume(struct exchange *exchange)
{
    struct transfer *transfer = exchange->handler_data;

    if (!transfer->warming)
        send_more(transfer);
}

static void cancel(struct exchange *exchange)
{
    struct transfer *transfer = exchange->handler_data;

    if (transfer->warming)
        transfer->warming->transfer = NULL;
}

static const struct handler handler = {.name = "static", .resume = resume, .cancel = cancel};

static bool needs_guard(const struct transfer_plan *plan)
{
    uint64_t size = 0;

    for (unsigned i = 0; i < plan->count; i++)
        size += plan->parts[i].size;
    return !plan->file->content && size > AT_ONCE;
}

void transfer_start(struct exchange *exchange, struct offload *offload, struct post *post,
                    const struct transfer_plan *plan)
{
    struct transfer *transfer = arena_zero(&exchange->arena, sizeof(*transfer));

    if (!transfer) {
        exchange_end(exchange, true);
        return;
    }
    *transfer = (struct transfer){.exchange = exchange,
                                  .offload = offload,
                                  .post = post,
                                  .plan = *plan,
                                  .is_guarded = needs_guard(plan)};
    exchange->handler = &handler;
    exchange->handler_data = transfer;
    send_more(transfer);
}

/* SPDX-License-Identifier: MIT */
#include "static/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PIECE = 512 * 1024, /* bytes whose pages are looked for at once */
    SCRATCH = 64 * 1024
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
        .job = {.post = transfer->post, .work = warm, .on_done = on_warm},
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

static bool must_wait(const struct transfer *transfer, uint64_t offset, uint64_t size)
{
    const struct open_file *file = transfer->plan.file;

    if (file->content || transfer->in_memory || !transfer->offload)
        return false;
    return !is_in_memory(file->fd, offset, size);
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

/* Appends the next piece of the current part; false when it has to wait for a file thread. */
static bool send_piece(struct transfer *transfer)
{
    const struct transfer_plan *plan = &transfer->plan;
    const struct range *part = &plan->parts[transfer->at];
    uint64_t offset = part->first + transfer->sent, size = part->size - transfer->sent;

    size = size < PIECE ? size : PIECE;
    if (must_wait(transfer, offset, size) && start_warming(transfer, offset, size))
        return false;
    transfer->in_memory = false;
    if (!transfer->led && plan->leads)
        exchange_write(transfer->exchange, plan->leads[transfer->at]);
    transfer->led = true;
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
        if (exchange->response.pending >= EXCHANGE_LOW)
            return;
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

void transfer_start(struct exchange *exchange, struct offload *offload, struct post *post,
                    const struct transfer_plan *plan)
{
    struct transfer *transfer = arena_zero(&exchange->arena, sizeof(*transfer));

    if (!transfer) {
        exchange_end(exchange, true);
        return;
    }
    *transfer =
        (struct transfer){.exchange = exchange, .offload = offload, .post = post, .plan = *plan};
    exchange->handler = &handler;
    exchange->handler_data = transfer;
    send_more(transfer);
}

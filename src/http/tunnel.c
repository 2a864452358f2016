/* SPDX-License-Identifier: MIT */
#include "http/tunnel.h"

#include "base/base.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>

enum { PARTS = 16 /* of one direction in a row */ };

enum flow_result {
    FLOW_WAITS,       /* for bytes, or for room */
    FLOW_GOES_ON,     /* more can be done at once */
    FLOW_FROM_FAILED, /* reading failed */
    FLOW_TO_FAILED    /* writing failed */
};

/* ---- One direction ---- */

static void keep_start(struct tunnel_flow *flow, struct span bytes)
{
    struct span part = span_first(bytes, sizeof(flow->start) - flow->start_size);

    if (!part.size)
        return;
    memcpy(flow->start + flow->start_size, part.data, part.size);
    flow->start_size += (uint8_t)part.size;
}

/* Bytes written, 0 when there is no room now, or a negative errno. */
static ssize_t write_some(struct tunnel_flow *flow, struct span bytes)
{
    /* iovec has no const; a write only reads. */
    struct iovec part = {.iov_base = (char *)(uintptr_t)bytes.data, .iov_len = bytes.size};
    ssize_t size = stream_write(flow->to, &part, 1, false);

    if (size == -EAGAIN)
        return 0;
    if (size > 0)
        flow->bytes += (uint64_t)size;
    return size;
}

static enum flow_result write_rest(struct tunnel_flow *flow)
{
    ssize_t size = write_some(flow, buf_span(&flow->rest));

    if (size < 0)
        return FLOW_TO_FAILED;
    buf_consume(&flow->rest, (size_t)size);
    if (flow->rest.size)
        return FLOW_WAITS;
    buf_done(&flow->rest);
    return FLOW_GOES_ON;
}

static enum flow_result pass_on(struct tunnel_flow *flow, struct span bytes)
{
    ssize_t size;

    keep_start(flow, bytes);
    if (flow->is_dead)
        return FLOW_GOES_ON;
    size = write_some(flow, bytes);
    if (size < 0)
        return FLOW_TO_FAILED;
    bytes = span_skip(bytes, (size_t)size);
    if (!bytes.size)
        return FLOW_GOES_ON;
    /* A gap in the bytes would be worse than their end. */
    return buf_append(&flow->rest, bytes) ? FLOW_TO_FAILED : FLOW_WAITS;
}

static enum flow_result read_part(struct tunnel_flow *flow)
{
    char part[TUNNEL_PART];
    ssize_t size = stream_read(flow->from, part, sizeof(part));

    if (size == -EAGAIN)
        return FLOW_WAITS;
    if (size > 0)
        return pass_on(flow, span_make(part, (size_t)size));
    flow->is_ended = true;
    return size == 0 ? FLOW_WAITS : FLOW_FROM_FAILED;
}

static void tell_end(struct tunnel_flow *flow)
{
    if (!flow->is_ended || flow->rest.size || flow->is_told)
        return;
    stream_shutdown(flow->to);
    flow->is_told = true;
}

static enum flow_result move(struct tunnel_flow *flow)
{
    enum flow_result result = FLOW_GOES_ON;

    for (int i = 0; i < PARTS && result == FLOW_GOES_ON; i++) {
        if (flow->rest.size)
            result = write_rest(flow);
        else
            result = flow->is_ended ? FLOW_WAITS : read_part(flow);
    }
    tell_end(flow);
    return result;
}

static void kill_flow(struct tunnel_flow *flow)
{
    flow->is_dead = true;
    buf_done(&flow->rest);
}

/* ---- Both ---- */

/* Whether the client's stream is over in both directions although we have ended none: a reset. */
static bool is_reset(const struct tunnel *tunnel)
{
    return tunnel->client_hung_up && !tunnel->down.is_told;
}

/* False when the client is gone. */
static bool move_both(struct tunnel *tunnel, bool *ret_again)
{
    enum flow_result up = move(&tunnel->up), down;

    if (up == FLOW_FROM_FAILED)
        return false;
    /* The application reads no more, but may still have something to say. */
    if (up == FLOW_TO_FAILED)
        kill_flow(&tunnel->up);
    /* A local socket whose end left bytes unread fails after its last byte was read: that is its end. */
    down = move(&tunnel->down);
    if (down == FLOW_TO_FAILED || is_reset(tunnel))
        return false;
    *ret_again = up == FLOW_GOES_ON || up == FLOW_TO_FAILED || down == FLOW_GOES_ON;
    return true;
}

static bool is_over(const struct tunnel *tunnel)
{
    return tunnel->down.is_told &&
           (tunnel->up.is_told || tunnel->up.is_dead || tunnel->local_hung_up);
}

static unsigned wants_of(const struct tunnel_flow *in, const struct tunnel_flow *out)
{
    unsigned wants = !in->is_ended && !in->rest.size ? STREAM_READ : 0;

    return out->rest.size ? wants | STREAM_WRITE : wants;
}

static void run(struct tunnel *tunnel)
{
    bool again = false;

    if (!move_both(tunnel, &again)) {
        tunnel->on_over(tunnel, true);
        return;
    }
    if (is_over(tunnel)) {
        tunnel->on_over(tunnel, false);
        return;
    }
    stream_want(tunnel->client, wants_of(&tunnel->up, &tunnel->down));
    stream_want(&tunnel->local, wants_of(&tunnel->down, &tunnel->up));
    /* Not only for the others' turn: bytes that TLS has decoded already are told by nobody. */
    if (again)
        loop_defer(tunnel->client->loop, &tunnel->task);
}

static void on_task(struct task *task)
{
    run(CONTAINER_OF(task, struct tunnel, task));
}

static void on_client(struct stream *stream, unsigned events)
{
    struct tunnel *tunnel = stream->owner;

    tunnel->client_hung_up |= (events & STREAM_HANGUP) != 0;
    run(tunnel);
}

static void on_local(struct stream *stream, unsigned events)
{
    struct tunnel *tunnel = CONTAINER_OF(stream, struct tunnel, local);

    tunnel->local_hung_up |= (events & STREAM_HANGUP) != 0;
    run(tunnel);
}

static void init(struct tunnel *tunnel, const struct tunnel_options *options)
{
    *tunnel = (struct tunnel){
        .client = options->client,
        .up = {.from = options->client, .to = &tunnel->local, .is_ended = options->client_ended},
        .down = {.from = &tunnel->local, .to = options->client},
        .on_over = options->on_over,
        .owner = options->owner,
        .former_on_event = options->client->on_event,
        .former_owner = options->client->owner,
    };
    task_init(&tunnel->task, on_task);
}

int tunnel_open(struct tunnel *tunnel, const struct tunnel_options *options)
{
    int fd = options->fd, error;

    init(tunnel, options);
    error = buf_append(&tunnel->down.rest, options->head);
    if (error) {
        fd_close(&fd);
        return error;
    }
    error = stream_open_socket(&tunnel->local, options->client->loop, fd, on_local);
    if (error) {
        buf_done(&tunnel->down.rest);
        return error;
    }
    tunnel->up.rest = *options->early;
    *options->early = (struct buf){0};
    if (!tunnel->up.rest.size)
        buf_done(&tunnel->up.rest);
    keep_start(&tunnel->up, buf_span(&tunnel->up.rest));
    keep_start(&tunnel->down, options->head);
    options->client->on_event = on_client;
    options->client->owner = tunnel;
    loop_defer(options->client->loop, &tunnel->task);
    return 0;
}

void tunnel_close(struct tunnel *tunnel)
{
    task_cancel(&tunnel->task);
    tunnel->client->on_event = tunnel->former_on_event;
    tunnel->client->owner = tunnel->former_owner;
    stream_close(&tunnel->local, false);
    buf_done(&tunnel->up.rest);
    buf_done(&tunnel->down.rest);
}

/* SPDX-License-Identifier: MIT */
/*
 * Hijacked connections: the worker gets one end of a socket pair, the exchange's carrier relays to the
 * other. The slot is free as soon as the worker lets go of it; what remains is the exchange, which is
 * counted as a stream until it ends.
 */
#include "base/fd.h"
#include "base/log.h"
#include "upstream/rack_table.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { FAILURE_LOG_S = 60 };

/* Nothing is left to resume or to cancel: the application sees the end of its socket. */
static const struct handler tunnel_handler = {.name = "tunnel"};

int rack_tunnel_offer(struct rack_job *job, int *ret_fd)
{
    const struct exchange *exchange = job->exchange;
    int fds[2], error;

    if (!exchange->conn || !exchange->conn->tunnel)
        return ENOTSUP;
    if (exchange->response.status)
        return EINVAL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == -1)
        return errno;
    error = fd_set_nonblocking(fds[0]);
    if (error) {
        fd_close(&fds[0]);
        fd_close(&fds[1]);
        return -error;
    }
    fd_close(&job->tunnel_fd);
    job->tunnel_fd = fds[0];
    *ret_fd = fds[1];
    return 0;
}

static void uncount(void *object)
{
    _Atomic uint64_t *gauge = object;

    atomic_fetch_sub_explicit(gauge, 1, memory_order_relaxed);
}

/* Until the exchange's memory is reset, which every end of it comes to. */
static void count(struct exchange *exchange, _Atomic uint64_t *gauge)
{
    if (gauge && arena_defer(&exchange->arena, uncount, gauge) == 0)
        rack_count(gauge);
}

static void forget(void *object)
{
    struct rack_tunnel *tunnel = object;
    struct rack_entry *entry = rack_find_tunnel_entry(tunnel);

    list_remove(&tunnel->link);
    if (entry)
        entry->is_tunnel = false;
}

/* So that it can be seen and ended by hand; without memory it lives on unseen. */
static void remember(struct rack_job *job)
{
    struct exchange *exchange = job->exchange;
    struct rack_tunnel *tunnel = arena_zero(&exchange->arena, sizeof(*tunnel));

    if (!tunnel || arena_defer(&exchange->arena, forget, tunnel))
        return;
    tunnel->rack = job->rack;
    tunnel->exchange = exchange;
    tunnel->slot = job->slot;
    tunnel->turn = job->turn;
    tunnel->queued_us = job->queued_us;
    tunnel->taken_us = rack_taken_us(job);
    if (job->thread != RACK_NOBODY)
        tunnel->pid = rack_pid(job->rack, board_worker_of(job->rack->options.board, job->thread));
    list_init(&tunnel->link);
    list_push_back(&job->rack->tunnels, &tunnel->link);
    job->rack->entries[job->slot].is_tunnel = true;
}

static void refuse(const struct rack *rack, struct exchange *exchange, int error)
{
    if (log_allow(span_of("tunnel"), FAILURE_LOG_S, NULL))
        log_warn("pool=%s a hijacked connection cannot be relayed: %s, it is closed id=%.*s",
                 rack->options.pool, strerror(-error), SPAN_ARG(exchange->id));
    exchange_refuse(exchange, REFUSAL_OVERLOAD);
}

bool rack_tunnel_take(struct rack_job *job)
{
    struct rack *rack = job->rack;
    struct exchange *exchange = job->exchange;
    int fd = job->tunnel_fd, error;

    if (fd == -1)
        return false;
    job->tunnel_fd = -1;
    exchange->times.taken_us = rack_taken_us(job);
    remember(job);
    rack_detach(job);
    exchange->handler = &tunnel_handler;
    exchange->handler_data = NULL;
    count(exchange, rack->options.counters.streams);
    if (exchange->response.raw_chunked)
        count(exchange, rack->options.counters.answers);
    error = exchange->conn->tunnel(exchange, fd);
    if (error)
        refuse(rack, exchange, error);
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "loop/stream.h"

#include "base/base.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

enum { PARTS_MAX = 1024 }; /* UIO_MAXIOV, the system's limit of one call */

static uint32_t epoll_events(unsigned wants)
{
    return (wants & STREAM_READ ? EPOLLIN : 0) | (wants & STREAM_WRITE ? EPOLLOUT : 0);
}

static ssize_t socket_read(struct stream *stream, char *out, size_t room)
{
    ssize_t size;

    do
        size = recv(stream->fd, out, room, 0);
    while (size == -1 && errno == EINTR);
    return size == -1 ? -errno : size;
}

static ssize_t socket_write(struct stream *stream, const struct iovec *parts, int count, bool more)
{
    struct msghdr message = {
        .msg_iov = (struct iovec *)parts,
        .msg_iovlen = (size_t)(count < PARTS_MAX ? count : PARTS_MAX),
    };
    ssize_t size;

    do
        size = sendmsg(stream->fd, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    while (size == -1 && errno == EINTR);
    return size == -1 ? -errno : size;
}

static ssize_t socket_send_file(struct stream *stream, int fd, off_t offset, size_t size)
{
    ssize_t sent;

    do
        sent = sendfile(stream->fd, fd, &offset, size);
    while (sent == -1 && errno == EINTR);
    if (sent == -1 && (errno == EINVAL || errno == ESPIPE || errno == ENOSYS))
        return -EOPNOTSUPP;
    return sent == -1 ? -errno : sent;
}

static void socket_shutdown(struct stream *stream)
{
    (void)shutdown(stream->fd, SHUT_WR);
}

static void socket_close(struct stream *stream, bool reset)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (reset)
        (void)setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    task_cancel(&stream->told_again);
    loop_forget(&stream->watch);
    fd_close(&stream->fd);
}

static const struct stream_ops socket_ops = {
    .read = socket_read,
    .write = socket_write,
    .send_file = socket_send_file,
    .shutdown = socket_shutdown,
    .close = socket_close,
};

/* Nothing can happen on the socket any more, but epoll would report the hang-up for ever. */
static void hang_up(struct stream *stream)
{
    stream->hung_up = true;
    loop_unwatch(&stream->watch);
}

static void tell_again(struct task *task)
{
    struct stream *stream = CONTAINER_OF(task, struct stream, told_again);

    stream->on_event(stream, STREAM_HANGUP | stream->wants);
}

/* EPOLLRDHUP is not asked for: a client that has ended its direction still gets its answer. */
static void on_ready(struct watch *watch, uint32_t events)
{
    struct stream *stream = CONTAINER_OF(watch, struct stream, watch);
    unsigned told = 0;

    if (events & EPOLLIN)
        told |= stream->wants & STREAM_READ;
    if (events & EPOLLOUT)
        told |= stream->wants & STREAM_WRITE;
    if ((events & (EPOLLERR | EPOLLHUP)) || loop_rewatch(watch, epoll_events(stream->wants))) {
        told |= STREAM_HANGUP;
        hang_up(stream);
    }
    if (told)
        stream->on_event(stream, told);
}

int stream_open_socket(struct stream *stream, struct loop *loop, int fd,
                       void (*on_event)(struct stream *, unsigned))
{
    int error;

    *stream = (struct stream){
        .ops = &socket_ops,
        .loop = loop,
        .fd = fd,
        .wants = STREAM_READ,
        .on_event = on_event,
    };
    task_init(&stream->told_again, tell_again);
    error = loop_watch(loop, &stream->watch, fd, epoll_events(stream->wants), on_ready);
    if (error)
        fd_close(&stream->fd);
    return error;
}

void stream_want(struct stream *stream, unsigned wants)
{
    uint32_t events = epoll_events(wants);

    stream->wants = wants;
    if (!stream->hung_up && stream->watch.loop && (events & ~stream->watch.events))
        if (loop_rewatch(&stream->watch, events))
            hang_up(stream);
    if (stream->hung_up && wants)
        loop_defer(stream->loop, &stream->told_again);
}

/* SPDX-License-Identifier: MIT */
#include "front/proxy_wait.h"

#include "base/base.h"
#include "base/fd.h"
#include "loop/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct proxy_wait {
    struct watch watch;
    struct timer timer;
    struct proxy_wait_options options;
    int fd;                          /* owned */
    char bytes[PROXY_PROTOCOL_ROOM]; /* the header's first ones */
    size_t size;                     /* of them */
    bool complete;                   /* header is set */
    size_t left;                     /* of the header, still in the socket */
    struct proxy_protocol header;
};

enum progress { READ_ON, WAIT, DONE, NO_HEADER, NO_MORE };

static ssize_t receive(const struct proxy_wait *wait, char *out, size_t room, int flags)
{
    ssize_t size;

    do
        size = recv(wait->fd, out, room, flags | MSG_DONTWAIT);
    while (size == -1 && errno == EINTR);
    return size == -1 ? -errno : size;
}

/* Without more to come there is no header. */
static enum progress judge_failure(ssize_t size)
{
    return size == -EAGAIN ? WAIT : NO_MORE;
}

/* Looks at what is there and takes it when all of it is the header's: left in the socket it would be
 * reported again and again. */
static enum progress look(struct proxy_wait *wait)
{
    char *out = wait->bytes + wait->size;
    ssize_t size = receive(wait, out, sizeof(wait->bytes) - wait->size, MSG_PEEK);

    if (size <= 0)
        return judge_failure(size);
    switch (proxy_protocol_read(span_make(wait->bytes, wait->size + (size_t)size), &wait->header)) {
    case PROXY_PROTOCOL_MORE:
        size = receive(wait, out, (size_t)size, 0);
        if (size <= 0)
            return judge_failure(size);
        wait->size += (size_t)size;
        return READ_ON;
    case PROXY_PROTOCOL_DONE:
        wait->complete = true;
        wait->left = wait->header.size - wait->size;
        return READ_ON;
    default:
        return NO_HEADER;
    }
}

static enum progress drop_rest(struct proxy_wait *wait)
{
    char dropped[4096];
    ssize_t size;

    if (!wait->left)
        return DONE;
    size = receive(wait, dropped, wait->left < sizeof(dropped) ? wait->left : sizeof(dropped), 0);
    if (size <= 0)
        return judge_failure(size);
    wait->left -= (size_t)size;
    return READ_ON;
}

/* Lets go of loop and memory; the socket stays open. */
static void release(struct proxy_wait *wait)
{
    timer_stop(&wait->timer);
    loop_unwatch(&wait->watch);
    free(wait);
}

static void end(struct proxy_wait *wait, enum proxy_wait_end how)
{
    struct proxy_wait_options options = wait->options;
    struct proxy_protocol header = wait->header;
    bool counts = how == PROXY_WAIT_DONE && options.believed && header.named;
    int fd = wait->fd;

    release(wait);
    if (how != PROXY_WAIT_DONE)
        fd_close(&fd);
    options.on_end(options.data, how, fd, counts ? &header.peer : &options.peer,
                   counts ? &header.local : options.local);
}

static void on_ready(struct watch *watch, uint32_t events)
{
    struct proxy_wait *wait = CONTAINER_OF(watch, struct proxy_wait, watch);
    enum progress progress = READ_ON;

    (void)events;
    while (progress == READ_ON)
        progress = wait->complete ? drop_rest(wait) : look(wait);
    if (progress == DONE)
        end(wait, PROXY_WAIT_DONE);
    else if (progress == NO_MORE && !wait->size && !wait->complete)
        end(wait, PROXY_WAIT_LEFT);
    else if (progress != WAIT)
        end(wait, PROXY_WAIT_REFUSED);
}

static void on_late(struct timer *timer)
{
    end(CONTAINER_OF(timer, struct proxy_wait, timer), PROXY_WAIT_LATE);
}

struct proxy_wait *proxy_wait_open(struct loop *loop, int fd,
                                   const struct proxy_wait_options *options)
{
    struct proxy_wait *wait = calloc(1, sizeof(*wait));

    if (!wait) {
        fd_close(&fd);
        return NULL;
    }
    wait->options = *options;
    wait->fd = fd;
    if (loop_watch(loop, &wait->watch, fd, EPOLLIN, on_ready)) {
        proxy_wait_close(wait);
        return NULL;
    }
    timer_set(loop, &wait->timer, options->limit_ms, on_late);
    return wait;
}

void proxy_wait_close(struct proxy_wait *wait)
{
    int fd = wait->fd;

    release(wait);
    fd_close(&fd);
}

/* SPDX-License-Identifier: MIT */
#include "front/channel.h"

#include "base/base.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/audit.h"
#include "front/admin.h"
#include "front/drain.h"
#include "front/inquiry.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    RETRY_MS = 5,
    LAST_WAIT_MS = 1000, /* for the words of a front that ends */
    ORPHAN_STATUS = 70   /* exit status of a front whose master is gone */
};

/* A message that master did not take at once. */
struct untold {
    struct post_item item;
    struct list link;
    struct channel *channel;
    struct front_message message;
    int fd; /* goes with it, owned; -1 = none */
};

struct channel {
    struct front *front;
    struct watch watch;
    struct watch death;
    struct list untold; /* loop 0 */
    struct timer retry;
};

/* One dead worker, on its way through all loops. */
struct burial {
    struct front *front;
    uint32_t pool, worker;
    _Atomic uint32_t left;
    struct burial_item {
        struct post_item item;
        struct burial *burial;
        struct front_loop *loop;
    } items[];
};

/* ---- To master ---- */

static int send_message(const struct front *front, const struct front_message *message, int fd)
{
    return front_message_send(front->options->channel, message, &fd, fd == -1 ? 0 : 1);
}

static void free_untold(struct untold *untold)
{
    list_remove(&untold->link);
    fd_close(&untold->fd);
    free(untold);
}

static void on_retry(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, retry);

    list_for_each_safe (link, &channel->untold) {
        struct untold *untold = CONTAINER_OF(link, struct untold, link);

        if (send_message(channel->front, &untold->message, untold->fd) == -EAGAIN) {
            timer_set(channel->front->loops[0]->loop, &channel->retry, RETRY_MS, on_retry);
            return;
        }
        free_untold(untold);
    }
}

static void keep(struct post_item *item)
{
    struct untold *untold = CONTAINER_OF(item, struct untold, item);
    struct channel *channel = untold->channel;

    list_init(&untold->link);
    list_push_back(&channel->untold, &untold->link);
    timer_set(channel->front->loops[0]->loop, &channel->retry, RETRY_MS, on_retry);
}

void front_tell_file(struct front *front, const struct front_message *message, int fd)
{
    struct untold *untold;

    if (send_message(front, message, fd) != -EAGAIN) {
        fd_close(&fd);
        return;
    }
    untold = must_alloc(1, sizeof(*untold));
    *untold = (struct untold){
        .item = {.run = keep}, .channel = front->channel, .message = *message, .fd = fd};
    post_send(front->posts[0], &untold->item);
}

void front_tell(struct front *front, const struct front_message *message)
{
    front_tell_file(front, message, -1);
}

/* ---- From master ---- */

static void finish_burial(struct burial *burial)
{
    struct front *front = burial->front;
    struct front_message message = {
        .kind = FRONT_AUDITED, .pool = burial->pool, .worker = burial->worker};

    audit_worker_done(front->options->pools[burial->pool].board, burial->worker,
                      front->options->entry);
    front_tell(front, &message);
    free(burial);
}

static void bury(struct post_item *item)
{
    struct burial_item *part = CONTAINER_OF(item, struct burial_item, item);
    struct burial *burial = part->burial;

    rack_bury_worker(part->loop->racks[burial->pool], burial->worker);
    /* The last loop sees what all others did before it. */
    if (atomic_fetch_sub_explicit(&burial->left, 1, memory_order_acq_rel) == 1)
        finish_burial(burial);
}

static void on_worker_dead(struct front *front, uint32_t pool, uint32_t worker)
{
    uint32_t loops = front->options->loops;
    struct burial *burial;

    if (!front->options->pools[pool].board || !front->loops[0]->racks[pool])
        return;
    burial = must_alloc(1, sizeof(*burial) + loops * sizeof(burial->items[0]));
    burial->front = front;
    burial->pool = pool;
    burial->worker = worker;
    burial->left = loops;
    for (uint32_t i = 0; i < loops; i++) {
        burial->items[i] =
            (struct burial_item){.item = {.run = bury}, .burial = burial, .loop = front->loops[i]};
        post_send(front->posts[i], &burial->items[i].item);
    }
}

static void on_pool_state(struct front *front, const struct front_message *message)
{
    struct front_pool_view *view = &front->pools[message->pool];

    atomic_store_explicit(&view->next_try_s, message->value, memory_order_relaxed);
    atomic_store_explicit(&view->state, (uint32_t)message->number, memory_order_relaxed);
}

static void on_reopen(struct front *front, int fds[2])
{
    if (fds[0] != -1) {
        int former = log_fd();

        log_to(fds[0]);
        /* Standard descriptors stay what they are. */
        if (former > STDERR_FILENO)
            (void)close(former);
        fds[0] = -1;
    }
    if (fds[1] != -1 && front->access_log) {
        access_log_reopen(front->access_log, fds[1]);
        fds[1] = -1;
    }
}

static bool names_pool(uint32_t kind)
{
    return kind == FRONT_WORKER_DEAD || kind == FRONT_WORKER_READY || kind == FRONT_POOL_STATE ||
           kind == FRONT_RELEASE;
}

static void take_message(struct front *front, const struct front_message *message, int fds[2])
{
    if (names_pool(message->kind) && message->pool >= front->options->pool_size)
        return;
    switch (message->kind) {
    case FRONT_DRAIN:
        drain_start(front, message->number);
        break;
    case FRONT_LEAVE:
        drain_announce(front);
        break;
    case FRONT_GIVE_UP:
        if (message->number < front->options->listener_size)
            front->given_up[message->number] = true;
        break;
    case FRONT_RETIRE:
        drain_retire(front);
        break;
    case FRONT_END_STREAMS:
        drain_end_streams(front);
        break;
    case FRONT_WORKER_DEAD:
        on_worker_dead(front, message->pool, message->worker);
        break;
    case FRONT_WORKER_READY:
        atomic_store_explicit(&front->pools[message->pool].state, FRONT_POOL_UP,
                              memory_order_relaxed);
        break;
    case FRONT_POOL_STATE:
        on_pool_state(front, message);
        break;
    case FRONT_RELEASE:
        former_take(front, message);
        break;
    case FRONT_REOPEN:
        on_reopen(front, fds);
        break;
    case FRONT_REQUESTS_WANTED:
        inquiry_start(front, message->number, (struct span){0});
        break;
    case FRONT_REQUEST_KILL:
        inquiry_start(front, message->number, span_of(message->text));
        break;
    case FRONT_STATUS:
        admin_take_status(front->loops[0]->admin, message->number, fds[0]);
        fds[0] = -1;
        break;
    default:
        log_warn("channel: master said %s, which a front does not know",
                 front_message_word(message->kind));
    }
}

/* Whatever this front holds is of no use without master, who owns listeners and workers. */
static _Noreturn void leave(void)
{
    _exit(ORPHAN_STATUS);
}

static void on_message(struct watch *watch, uint32_t events)
{
    struct channel *channel = CONTAINER_OF(watch, struct channel, watch);
    struct front_message message;
    int fds[2];

    (void)events;
    for (;;) {
        int result = front_message_receive(watch->fd, &message, fds);

        if (result == -EAGAIN)
            return;
        if (result == 0 || result == -ECONNRESET)
            leave();
        if (result < 0) {
            log_error("channel: receiving from master: %s, the message is lost", strerror(-result));
            return;
        }
        take_message(channel->front, &message, fds);
        fd_close(&fds[0]);
        fd_close(&fds[1]);
    }
}

static void on_death(struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
    leave();
}

/* ---- Life ---- */

struct channel *channel_new(struct front *front)
{
    const struct front_options *options = front->options;
    struct loop *loop = front->loops[0]->loop;
    struct channel *channel = must_alloc(1, sizeof(*channel));

    channel->front = front;
    list_init(&channel->untold);
    if (fd_set_nonblocking(options->channel) ||
        loop_watch(loop, &channel->watch, options->channel, EPOLLIN, on_message))
        goto fail;
    if (options->death_pipe != -1 &&
        loop_watch(loop, &channel->death, options->death_pipe, EPOLLIN, on_death))
        goto fail;
    return channel;

fail:
    loop_unwatch(&channel->watch);
    free(channel);
    return NULL;
}

static bool wait_for_master(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

    return poll(&poll_fd, 1, LAST_WAIT_MS) == 1;
}

static void send_last(struct channel *channel, const struct untold *untold)
{
    while (send_message(channel->front, &untold->message, untold->fd) == -EAGAIN)
        if (!wait_for_master(channel->front->options->channel))
            return;
}

void channel_free(struct channel *channel)
{
    if (!channel)
        return;
    timer_stop(&channel->retry);
    list_for_each_safe (link, &channel->untold) {
        struct untold *untold = CONTAINER_OF(link, struct untold, link);

        send_last(channel, untold);
        free_untold(untold);
    }
    loop_unwatch(&channel->watch);
    loop_unwatch(&channel->death);
    free(channel);
}

/* SPDX-License-Identifier: MIT */
#include "loop/post.h"

#include "base/base.h"
#include "base/fd.h"
#include "loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct post {
    struct watch watch;
    int bell_fd;          /* eventfd, rung when the first item comes in */
    bool running;         /* an item is being run */
    struct list taken;    /* items about to be run; the loop's thread only */
    pthread_mutex_t lock; /* guards items */
    struct list items;
};

/* Moves all links of one list to an empty other one. */
static void move_all(struct list *from, struct list *to)
{
    list_push_front(from, to);
    list_remove(from);
}

static bool take_items(struct post *post)
{
    bool any;

    pthread_mutex_lock(&post->lock);
    any = !list_is_empty(&post->items);
    if (any)
        move_all(&post->items, &post->taken);
    pthread_mutex_unlock(&post->lock);
    return any;
}

static void run_taken(struct post *post)
{
    post->running = true;
    while (!list_is_empty(&post->taken)) {
        struct post_item *item = CONTAINER_OF(post->taken.next, struct post_item, link);

        list_remove(&item->link);
        item->run(item);
    }
    post->running = false;
}

static void ring(struct post *post)
{
    uint64_t one = 1;

    /* The counter cannot be full: it is rung at most once per emptying of the list. */
    CHECK(write(post->bell_fd, &one, sizeof(one)) == sizeof(one));
}

/* The bell is silenced before the items are taken: one that comes in between rings it again. */
static void on_bell(struct watch *watch, uint32_t events)
{
    struct post *post = CONTAINER_OF(watch, struct post, watch);
    uint64_t rung;

    (void)events;
    CHECK(read(post->bell_fd, &rung, sizeof(rung)) == sizeof(rung) || errno == EAGAIN);
    if (take_items(post))
        run_taken(post);
}

struct post *post_new(struct loop *loop)
{
    struct post *post = must_alloc(1, sizeof(*post));

    list_init(&post->taken);
    list_init(&post->items);
    post->bell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (post->bell_fd == -1)
        goto fail;
    if (loop_watch(loop, &post->watch, post->bell_fd, EPOLLIN, on_bell))
        goto fail;
    pthread_mutex_init(&post->lock, NULL);
    return post;

fail:
    fd_close(&post->bell_fd);
    free(post);
    return NULL;
}

struct loop *post_loop(const struct post *post)
{
    return post->watch.loop;
}

void post_free(struct post *post)
{
    if (!post)
        return;
    CHECK(!post->running);
    while (take_items(post))
        run_taken(post);
    loop_unwatch(&post->watch);
    fd_close(&post->bell_fd);
    pthread_mutex_destroy(&post->lock);
    free(post);
}

/* The bell is rung under the lock: the item's run may be the last before its loop closes the box. */
void post_send(struct post *post, struct post_item *item)
{
    pthread_mutex_lock(&post->lock);
    list_init(&item->link);
    list_push_back(&post->items, &item->link);
    if (post->items.next == &item->link)
        ring(post);
    pthread_mutex_unlock(&post->lock);
}

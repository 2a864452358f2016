/* SPDX-License-Identifier: MIT */
#include "static/open_cache.h"

#include "base/fd.h"
#include "static/mime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Files in the cache ---- */

static void drop(struct static_cache *cache, struct open_file *file)
{
    (void)map_remove(&file->home->files, span_of(file->name));
    list_remove(&file->link);
    file->home = NULL;
    cache->size--;
    open_file_unref(file);
}

static struct open_file *oldest(struct static_cache *cache)
{
    return CONTAINER_OF(cache->used.previous, struct open_file, link);
}

static void sweep(struct timer *timer)
{
    struct static_cache *cache = CONTAINER_OF(timer, struct static_cache, sweep);
    uint64_t now_ms = loop_now_ms(cache->loop);

    while (cache->size && oldest(cache)->used_ms + OPEN_CACHE_IDLE_MS <= now_ms)
        drop(cache, oldest(cache));
    if (cache->size)
        timer_set(cache->loop, timer, oldest(cache)->used_ms + OPEN_CACHE_IDLE_MS - now_ms, sweep);
}

static void touch(struct static_cache *cache, struct open_file *file)
{
    file->used_ms = loop_now_ms(cache->loop);
    list_remove(&file->link);
    list_push_front(&cache->used, &file->link);
}

/* A change within one second is told by the tag only: the date of both versions is the same (RFC 9110
 * 8.8.2.2). */
static void note_shared_date(const struct open_file *before, struct open_file *file)
{
    if (before->identity.modified.tv_sec == file->identity.modified.tv_sec &&
        (before->date_is_shared || strcmp(before->etag, file->etag) != 0))
        file->date_is_shared = true;
}

/* Takes the caller's reference, or gives it back when memory is out. */
static void insert(struct static_cache *cache, struct cache_root *root, struct span name,
                   struct open_file *file)
{
    struct open_file *before = map_find(&root->files, name);

    file->name = strndup(name.data, name.size);
    if (!file->name) {
        open_file_unref(file);
        return;
    }
    if (before) {
        note_shared_date(before, file);
        drop(cache, before);
    }
    if (cache->size == OPEN_CACHE_FILES)
        drop(cache, oldest(cache));
    file->home = root;
    (void)map_set(&root->files, name, file);
    list_push_front(&cache->used, &file->link);
    cache->size++;
    touch(cache, file);
    if (!timer_is_set(&cache->sweep))
        timer_set(cache->loop, &cache->sweep, OPEN_CACHE_IDLE_MS, sweep);
}

/* ---- Roots ---- */

static struct span key_of(const struct static_root *const *root)
{
    return span_make((const char *)root, sizeof(*root));
}

struct cache_root *open_cache_root(struct static_cache *cache, const struct static_root *root)
{
    struct cache_root *known = map_find(&cache->roots, key_of(&root));

    if (known)
        return known;
    known = must_alloc(1, sizeof(*known));
    *known = (struct cache_root){.root = root, .fd = -1};
    (void)map_set(&cache->roots, key_of(&root), known);
    return known;
}

static bool is_same_folder(const struct resolve_identity *a, const struct resolve_identity *b)
{
    return a->inode == b->inode && a->device == b->device;
}

static void forget_root(struct cache_root *root)
{
    if (root->fd >= 0)
        fd_close(&root->fd);
}

bool static_is_same_folder(struct static_cache *cache, const struct static_root *a,
                           const struct static_root *b)
{
    const struct cache_root *one = open_cache_root(cache, a), *other = open_cache_root(cache, b);

    return one->fd >= 0 && other->fd >= 0 && is_same_folder(&one->identity, &other->identity);
}

void static_close_root(struct static_cache *cache, const struct static_root *root)
{
    struct cache_root *known = open_cache_root(cache, root);

    list_for_each_safe (link, &cache->used) {
        struct open_file *file = CONTAINER_OF(link, struct open_file, link);

        if (file->home == known)
            drop(cache, file);
    }
    forget_root(known);
    known->checked_us = 0;
}

/* Sees once per batch whether the root's path, with every link in it, still leads to the folder that
 * is open. RESOLVED_FOLDER when it does. */
static enum resolved check_root(struct static_cache *cache, struct cache_root *root)
{
    uint64_t now_us = loop_now_us(cache->loop);
    struct resolve_identity identity;
    bool in_memory = root->in_memory;
    int fd;

    if (root->checked_us == now_us)
        return root->is_missing ? RESOLVED_MISSING : RESOLVED_FOLDER;
    fd = resolve_root(root->root, false, &identity, &in_memory);
    if (fd == -EAGAIN)
        return RESOLVED_LATER;
    root->is_missing = fd < 0;
    if (fd < 0) {
        root->checked_us = now_us;
        return RESOLVED_MISSING;
    }
    /* Until a file thread has opened it for the first time it is not known how to look below. */
    if (root->fd < 0) {
        fd_close(&fd);
        return RESOLVED_LATER;
    }
    root->checked_us = now_us;
    if (is_same_folder(&identity, &root->identity)) {
        fd_close(&fd);
        return RESOLVED_FOLDER;
    }
    forget_root(root);
    root->fd = fd;
    root->identity = identity;
    return RESOLVED_FOLDER;
}

/* ---- Looking ---- */

static enum resolved check_file(struct static_cache *cache, struct cache_root *root,
                                struct open_file *file)
{
    struct resolve_identity now;
    enum resolved answer = resolve_look(root->fd, file->name, false, root->in_memory, &now);

    if (answer == RESOLVED_FILE && resolve_is_same(&now, &file->identity)) {
        file->checked_us = loop_now_us(cache->loop);
        return RESOLVED_FILE;
    }
    /* A changed one stays until its successor comes, which learns from it whether they share a date. */
    if (answer == RESOLVED_MISSING)
        drop(cache, file);
    return answer == RESOLVED_FILE ? RESOLVED_LATER : answer;
}

enum resolved open_cache_look(struct static_cache *cache, struct cache_root *root, struct span name,
                              struct open_file **ret_file)
{
    enum resolved answer = check_root(cache, root);
    struct resolve_identity identity;
    struct open_file *file;

    if (answer != RESOLVED_FOLDER)
        return answer;
    file = map_find(&root->files, name);
    if (!file) {
        answer = resolve_look(root->fd, name.data, true, root->in_memory, &identity);
        return answer == RESOLVED_FILE ? RESOLVED_LATER : answer;
    }
    if (file->checked_us != loop_now_us(cache->loop)) {
        answer = check_file(cache, root, file);
        if (answer != RESOLVED_FILE)
            return answer;
        touch(cache, file);
    }
    *ret_file = file;
    return RESOLVED_FILE;
}

void open_cache_adopt(struct static_cache *cache, struct cache_root *root, int root_fd,
                      const struct resolve_identity *root_identity, bool in_memory,
                      struct span name, struct open_file *file)
{
    if (root_fd >= 0 && root->fd >= 0 && is_same_folder(root_identity, &root->identity)) {
        fd_close(&root_fd);
    } else if (root_fd >= 0) {
        /* Which of the two is the newer one is seen at the next look. */
        forget_root(root);
        root->fd = root_fd;
        root->identity = *root_identity;
        root->in_memory = in_memory;
        root->checked_us = 0;
    }
    if (file)
        insert(cache, root, name, file);
}

/* ---- Misses ---- */

static size_t miss_place(struct span name)
{
    return map_hash(name) % OPEN_CACHE_MISSES;
}

bool open_cache_is_missing(const struct static_cache *cache, const struct static_root *root,
                           struct span name)
{
    const struct cache_miss *miss = &cache->misses[miss_place(name)];

    return miss->batch_us == loop_now_us(cache->loop) && miss->root == root &&
           span_equal(span_make(miss->name, miss->size), name);
}

void open_cache_note_missing(struct static_cache *cache, const struct static_root *root,
                             struct span name)
{
    struct cache_miss *miss = &cache->misses[miss_place(name)];

    if (name.size > sizeof(miss->name))
        return;
    miss->batch_us = loop_now_us(cache->loop);
    miss->root = root;
    miss->size = name.size;
    memcpy(miss->name, name.data, name.size);
}

/* ---- The cache itself ---- */

struct static_cache *static_cache_new(struct loop *loop, struct offload *offload, struct post *post)
{
    struct static_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return NULL;
    cache->loop = loop;
    cache->offload = offload;
    cache->post = post;
    list_init(&cache->used);
    mime_load();
    return cache;
}

static void free_cache(struct static_cache *cache)
{
    while (cache->size)
        drop(cache, oldest(cache));
    timer_stop(&cache->sweep);
    map_for_each (entry, &cache->roots) {
        struct cache_root *root = entry->value;

        forget_root(root);
        map_done(&root->files);
        free(root);
    }
    map_done(&cache->roots);
    free(cache);
}

void static_cache_free(struct static_cache *cache)
{
    if (!cache)
        return;
    cache->closed = true;
    if (!cache->jobs)
        free_cache(cache);
}

void open_cache_hold(struct static_cache *cache)
{
    cache->jobs++;
}

void open_cache_release(struct static_cache *cache)
{
    CHECK(cache->jobs > 0);
    if (--cache->jobs == 0 && cache->closed)
        free_cache(cache);
}

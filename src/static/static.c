/* SPDX-License-Identifier: MIT */
#include "static/static.h"

#include "base/fd.h"
#include "base/log.h"
#include "http/target.h"
#include "static/open_cache.h"
#include "static/reply.h"

#include <limits.h>
#include <stdlib.h>

enum { DENIED_INTERVAL_S = 60 };

/* ---- The names that a path may stand for ---- */

/* What is tried behind the request's name, in this order. A folder's index is only looked for when the
 * name is a folder, so that most requests for the application cost two look-ups. */
static const struct span plain_endings[] = {SPAN(""), SPAN(".html"), SPAN("/index.html")};
static const struct span folder_endings[] = {SPAN("index.html")};

enum { ENDING_SELF, ENDING_PAGE, ENDING_INDEX, LONGEST_ENDING = 11 };

/* A name with room for the endings. */
struct names {
    const struct static_root *root;
    char *text;
    size_t size; /* of the name itself; an ending may follow it */
};

static struct span set_ending(struct names *names, struct span ending)
{
    size_t size = names->size + ending.size;

    memcpy(names->text + names->size, ending.data, ending.size);
    names->text[size] = 0;
    return span_make(names->text, size);
}

/* The first name that stands for something, in *ret_name, as look says, which is given a NUL behind
 * each. RESOLVED_FOLDER: the site wants a slash at the end of the request's path. */
static enum resolved try_names(struct names *names, enum resolved (*look)(void *, struct span),
                               void *data, struct span *ret_name)
{
    bool has_slash = !names->size || names->text[names->size - 1] == '/', is_folder = false;
    const struct span *endings = has_slash ? folder_endings : plain_endings;
    size_t count = has_slash ? ARRAY_LEN(folder_endings) : ARRAY_LEN(plain_endings);
    enum resolved result = RESOLVED_MISSING;

    for (size_t i = 0; i < count; i++) {
        struct span name = set_ending(names, endings[i]);
        enum resolved answer;

        if (i == ENDING_INDEX && !is_folder)
            break;
        if (i == ENDING_INDEX && names->root->directories)
            return RESOLVED_FOLDER;
        if (resolve_is_refused(names->root, name))
            continue;
        answer = look(data, name);
        *ret_name = name;
        if (answer == RESOLVED_FOLDER)
            is_folder |= i == ENDING_SELF;
        else if (answer == RESOLVED_DENIED)
            result = answer;
        else if (answer != RESOLVED_MISSING)
            return answer;
    }
    return result;
}

/* ---- On a file thread ---- */

/* A look-up that could block; it may outlive its exchange. */
struct search {
    struct offload_job job;
    struct static_cache *cache; /* held */
    const struct static_root *root;
    struct exchange *exchange; /* NULL once it was cancelled */
    void (*on_missing)(struct exchange *exchange);
    struct names names;

    /* What the thread found. */
    enum resolved answer;
    struct span name;
    int root_fd;
    struct resolve_identity root_identity;
    bool in_memory;
    struct open_file *file;
    char words[RESOLVE_WORDS];
    char text[];
};

static enum resolved open_name(void *data, struct span name)
{
    struct search *search = data;
    struct resolve_identity identity;
    int fd = -1;
    enum resolved answer =
        resolve_open(search->root, search->root_fd, name.data, &fd, &identity, search->words);

    if (answer != RESOLVED_FILE)
        return answer;
    search->file = open_file_new(fd, &identity, name);
    if (!search->file)
        return RESOLVED_FAILED;
    open_file_load(search->file);
    return RESOLVED_FILE;
}

static void work(struct offload_job *job)
{
    struct search *search = CONTAINER_OF(job, struct search, job);

    search->root_fd = resolve_root(search->root, true, &search->root_identity, &search->in_memory);
    if (search->root_fd >= 0)
        search->answer = try_names(&search->names, open_name, search, &search->name);
    else
        search->answer = resolve_explain(search->root_fd, search->words);
}

static void log_denied(const struct search *search)
{
    struct span name = span_make(search->names.text, search->names.size);

    if (log_allow(name, DENIED_INTERVAL_S, NULL))
        log_warn("file=%s/%.*s %s; it is not sent", search->root->folder, SPAN_ARG(name),
                 search->words);
}

static void finish(struct exchange *exchange, struct static_cache *cache, enum resolved answer,
                   struct open_file *file, void (*on_missing)(struct exchange *exchange))
{
    exchange->handler = NULL;
    exchange->handler_data = NULL;
    switch (answer) {
    case RESOLVED_FILE:
        reply_send(exchange, cache->offload, cache->post, file, 200, true);
        break;
    case RESOLVED_FOLDER:
        reply_redirect(exchange);
        break;
    case RESOLVED_MISSING:
    case RESOLVED_DENIED:
        on_missing(exchange);
        break;
    case RESOLVED_LATER:
    case RESOLVED_FAILED:
        exchange_refuse(exchange, REFUSAL_OVERLOAD);
        break;
    }
}

static void on_done(struct offload_job *job)
{
    struct search *search = CONTAINER_OF(job, struct search, job);
    struct static_cache *cache = search->cache;
    struct open_file *file = search->file ? open_file_ref(search->file) : NULL;

    open_cache_adopt(cache, open_cache_root(cache, search->root), search->root_fd,
                     &search->root_identity, search->in_memory, search->name, search->file);
    if (search->answer == RESOLVED_DENIED)
        log_denied(search);
    if (search->exchange)
        finish(search->exchange, cache, search->answer, file, search->on_missing);
    open_file_unref(file);
    open_cache_release(cache);
    free(search);
}

static void cancel(struct exchange *exchange)
{
    struct search *search = exchange->handler_data;

    search->exchange = NULL;
}

static const struct handler searching = {.name = "static", .cancel = cancel};

static bool start_search(struct exchange *exchange, struct static_cache *cache,
                         const struct names *names, void (*on_missing)(struct exchange *exchange))
{
    struct search *search = calloc(1, sizeof(*search) + names->size + LONGEST_ENDING + 1);

    if (!search)
        return false;
    memcpy(search->text, names->text, names->size);
    search->job = (struct offload_job){.post = cache->post, .work = work, .on_done = on_done};
    search->cache = cache;
    search->root = names->root;
    search->exchange = exchange;
    search->on_missing = on_missing;
    search->names = (struct names){names->root, search->text, names->size};
    search->answer = RESOLVED_FAILED; /* what a job that was never begun has found */
    search->root_fd = -1;
    exchange->handler = &searching;
    exchange->handler_data = search;
    open_cache_hold(cache);
    offload_send(cache->offload, &search->job);
    return true;
}

/* ---- On the loop ---- */

struct glance {
    struct static_cache *cache;
    struct cache_root *root;
    struct open_file *file;
};

static enum resolved look_at(void *data, struct span name)
{
    struct glance *glance = data;

    return open_cache_look(glance->cache, glance->root, name, &glance->file);
}

/* The decoded name with room for the endings behind it. */
static bool decode(struct exchange *exchange, struct span *ret_name, char **ret_text)
{
    struct span name;
    char *text;

    if (!target_decode(exchange->request.path, &exchange->arena, &name) || name.size >= PATH_MAX)
        return false;
    text = arena_take(&exchange->arena, name.size + LONGEST_ENDING + 1);
    if (!text)
        return false;
    memcpy(text, name.data, name.size);
    *ret_name = span_make(text, name.size);
    *ret_text = text;
    return true;
}

void static_find(struct exchange *exchange, struct static_cache *cache,
                 const struct static_root *root, void (*on_missing)(struct exchange *exchange))
{
    struct names names = {.root = root};
    struct glance glance = {.cache = cache};
    struct span whole, found = {0};
    enum resolved answer;

    if (!decode(exchange, &whole, &names.text) || open_cache_is_missing(cache, root, whole)) {
        on_missing(exchange);
        return;
    }
    names.size = whole.size;
    glance.root = open_cache_root(cache, root);
    answer = try_names(&names, look_at, &glance, &found);
    if (answer == RESOLVED_MISSING)
        open_cache_note_missing(cache, root, whole);
    if (answer == RESOLVED_LATER && start_search(exchange, cache, &names, on_missing))
        return;
    finish(exchange, cache, answer, glance.file, on_missing);
}

bool static_send_open(struct exchange *exchange, int fd, struct span name, unsigned status,
                      bool full)
{
    struct resolve_identity identity;
    struct open_file *file;

    if (!resolve_identify(fd, &identity)) {
        fd_close(&fd);
        return false;
    }
    file = open_file_new(fd, &identity, name);
    if (!file) {
        exchange_refuse(exchange, REFUSAL_INTERNAL);
        return true;
    }
    reply_send(exchange, NULL, NULL, file, status, full);
    open_file_unref(file);
    return true;
}

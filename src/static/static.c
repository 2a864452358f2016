/* SPDX-License-Identifier: MIT */
#include "static/static.h"

#include "base/fd.h"
#include "base/log.h"
#include "http/target.h"
#include "static/form.h"
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

enum { ENDING_SELF, ENDING_PAGE, ENDING_INDEX, LONGEST_ENDING = 11 + FORM_ENDING };

/* Which names are tried. */
enum breadth {
    BREADTH_ONE,  /* the name itself */
    BREADTH_FILE, /* the same, asked for by a client: no cached page */
    BREADTH_ALL   /* with all endings */
};

/* A name with room for the endings, and what is to become of the file. */
struct names {
    const struct static_root *root;
    char *text;
    size_t size; /* of the name itself; an ending may follow it */
    enum breadth breadth;
    unsigned status;
    bool full;
    struct coding_wish wish;
};

static struct span set_ending(struct names *names, struct span ending)
{
    size_t size = names->size + ending.size;

    memcpy(names->text + names->size, ending.data, ending.size);
    names->text[size] = 0;
    return span_make(names->text, size);
}

static bool is_barred(enum resolved answer)
{
    return answer == RESOLVED_DENIED || answer == RESOLVED_CLOSED;
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

    if (names->breadth != BREADTH_ALL)
        count = has_slash ? 0 : 1;

    for (size_t i = 0; i < count; i++) {
        struct span name = set_ending(names, endings[i]);
        enum resolved answer;

        if (i == ENDING_INDEX && !is_folder)
            break;
        if (i == ENDING_INDEX && names->root->directories)
            return RESOLVED_FOLDER;
        if (!names->root->any_name && resolve_is_refused(names->root, name))
            continue;
        answer = look(data, name);
        *ret_name = name;
        if (answer == RESOLVED_FOLDER)
            is_folder |= i == ENDING_SELF;
        else if (is_barred(answer))
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
    struct exchange *exchange;  /* NULL once it was cancelled */
    void (*on_missing)(struct exchange *exchange);
    struct names names;

    /* What the thread found. */
    enum resolved answer;
    size_t name_size; /* of the name in names.text */
    int root_fd;
    struct resolve_identity root_identity;
    bool in_memory;
    struct open_file *file;
    struct open_file *coded[CODING_COUNT]; /* its other forms */
    char words[RESOLVE_WORDS];
    char text[];
};

/* What an application may be writing at this moment, and can answer itself meanwhile. */
static bool is_page(const struct search *search, const struct open_file *file, struct span name)
{
    static const struct span types[] = {SPAN("text/html"), SPAN("application/json"),
                                        SPAN("application/xml"), SPAN("text/xml")};

    if (search->names.root->directories || search->names.breadth == BREADTH_ONE)
        return false;
    if (name.size > search->names.size)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (span_starts_with(file->type, types[i]))
            return true;
    return span_ends_with(file->type, (struct span)SPAN("+xml"));
}

/* Whether nobody was writing before and after it was read. */
static bool is_settled(const struct open_file *file)
{
    struct resolve_identity now;

    return !resolve_is_written(file->fd) && resolve_identify(file->fd, &now) &&
           resolve_is_same(&now, &file->identity);
}

static enum resolved open_file_at(struct search *search, struct span name,
                                  struct open_file **ret_file)
{
    struct resolve_identity identity;
    int fd = -1;
    enum resolved answer =
        resolve_open(search->names.root, search->root_fd, name.data, &fd, &identity, search->words);

    if (answer != RESOLVED_FILE)
        return answer;
    *ret_file = open_file_new(fd, &identity, name);
    if (!*ret_file)
        return RESOLVED_FAILED;
    return RESOLVED_FILE;
}

static enum resolved open_name(void *data, struct span name)
{
    struct search *search = data;
    enum resolved answer = open_file_at(search, name, &search->file);
    bool is_cached_page;

    if (answer != RESOLVED_FILE)
        return answer;
    search->name_size = name.size;
    is_cached_page = is_page(search, search->file, name);
    open_file_load(search->file, is_cached_page ? OPEN_FILE_PAGE : OPEN_FILE_SMALL);
    if (!is_cached_page || is_settled(search->file))
        return RESOLVED_FILE;
    open_file_unref(search->file);
    search->file = NULL;
    return RESOLVED_MISSING;
}

/* A form that is being written, or cannot be had for any reason, is no reason against the file. */
static void open_coded(struct search *search, enum coding coding)
{
    struct open_file **coded = &search->coded[coding];
    struct span name = form_set_ending(search->text, search->name_size, coding);

    if (open_file_at(search, name, coded) == RESOLVED_FILE) {
        open_file_load(*coded, OPEN_FILE_SMALL);
        if (!form_is_current(&(*coded)->identity, &search->file->identity) || !is_settled(*coded)) {
            open_file_unref(*coded);
            *coded = NULL;
        }
    }
    search->text[search->name_size] = 0;
}

static bool has_forms(const struct names *names)
{
    return names->full && names->breadth != BREADTH_ONE;
}

static void work(struct offload_job *job)
{
    struct search *search = CONTAINER_OF(job, struct search, job);
    struct span name;

    search->root_fd =
        resolve_root(search->names.root, true, &search->root_identity, &search->in_memory);
    if (search->root_fd >= 0)
        search->answer = try_names(&search->names, open_name, search, &name);
    else
        search->answer = resolve_explain(search->root_fd, search->words);
    /* A root that is no folder for us bars no way to the application. */
    if (search->root_fd < 0 && search->answer == RESOLVED_DENIED)
        search->answer = RESOLVED_CLOSED;
    if (search->answer != RESOLVED_FILE || !has_forms(&search->names))
        return;
    for (enum coding coding = CODING_IDENTITY + 1; coding < CODING_COUNT; coding++)
        open_coded(search, coding);
}

static void log_denied(const struct search *search)
{
    struct span name = span_make(search->names.text, search->names.size);

    if (log_allow(name, DENIED_INTERVAL_S, NULL))
        log_warn("file=%s/%.*s %s; it is not sent", search->names.root->folder, SPAN_ARG(name),
                 search->words);
}

static void finish(struct exchange *exchange, struct static_cache *cache, const struct names *names,
                   enum resolved answer, const struct form *form,
                   void (*on_missing)(struct exchange *exchange))
{
    exchange->handler = NULL;
    exchange->handler_data = NULL;
    switch (answer) {
    case RESOLVED_FILE:
        reply_send(exchange, cache->offload, cache->post, form, names->status, names->full);
        break;
    case RESOLVED_FOLDER:
        reply_redirect(exchange);
        break;
    case RESOLVED_DENIED:
        /* A page or a file of the application's choice has an answer for its absence. */
        if (names->breadth == BREADTH_ONE)
            on_missing(exchange);
        else
            exchange_refuse(exchange, REFUSAL_NOT_FOUND);
        break;
    case RESOLVED_MISSING:
    case RESOLVED_CLOSED:
        on_missing(exchange);
        break;
    case RESOLVED_LATER:
    case RESOLVED_FAILED:
        exchange_refuse(exchange, REFUSAL_OVERLOAD);
        break;
    }
}

/* Gives the cache what the thread found, and notes with the file which forms there are. */
static void adopt(struct search *search)
{
    struct static_cache *cache = search->cache;
    struct cache_root *root = open_cache_root(cache, search->names.root);
    struct open_file *file = search->file;

    if (file)
        file->forms_looked_ms = loop_now_ms(cache->loop);
    open_cache_adopt(cache, root, search->root_fd, &search->root_identity, search->in_memory,
                     span_make(search->text, search->name_size), file);
    for (enum coding coding = CODING_IDENTITY + 1; coding < CODING_COUNT; coding++) {
        struct open_file *coded = search->coded[coding];

        if (!coded)
            continue;
        file->forms |= 1u << coding;
        open_cache_adopt(cache, root, -1, NULL, false,
                         form_set_ending(search->text, search->name_size, coding), coded);
    }
}

static struct form found_form(const struct search *search)
{
    struct open_file *file = search->file;
    enum coding coding = form_choose(file->forms, &search->names.wish);
    struct form form = form_coded(file, search->coded[coding], coding);

    form.varies = file->forms != 0;
    return form;
}

static void hold(struct search *search)
{
    if (search->file)
        open_file_ref(search->file);
    for (size_t i = 0; i < CODING_COUNT; i++)
        if (search->coded[i])
            open_file_ref(search->coded[i]);
}

static void let_go(struct search *search)
{
    open_file_unref(search->file);
    for (size_t i = 0; i < CODING_COUNT; i++)
        open_file_unref(search->coded[i]);
}

static void on_done(struct offload_job *job)
{
    struct search *search = CONTAINER_OF(job, struct search, job);
    struct static_cache *cache = search->cache;
    struct form form = {0};

    hold(search); /* the cache may drop one for another */
    adopt(search);
    if (is_barred(search->answer))
        log_denied(search);
    if (search->answer == RESOLVED_FILE)
        form = found_form(search);
    if (search->exchange)
        finish(search->exchange, cache, &search->names, search->answer, &form, search->on_missing);
    let_go(search);
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
    search->job = (struct offload_job){
        .post = cache->post,
        .key = map_hash(span_make(names->text, names->size)),
        .work = work,
        .on_done = on_done,
    };
    search->cache = cache;
    search->exchange = exchange;
    search->on_missing = on_missing;
    search->names = *names;
    search->names.text = search->text;
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

/* Below a route's path lies its root; the path itself is the root. */
static struct span path_of(const struct request *request)
{
    struct span inner = request_inner(request);

    return inner.size ? inner : (struct span)SPAN("/");
}

/* The decoded name with room for the endings behind it. */
static bool decode(struct exchange *exchange, struct span *ret_name, char **ret_text)
{
    struct span name;
    char *text;

    if (!target_decode(path_of(&exchange->request), &exchange->arena, &name) ||
        name.size >= PATH_MAX)
        return false;
    text = arena_take(&exchange->arena, name.size + LONGEST_ENDING + 1);
    if (!text)
        return false;
    memcpy(text, name.data, name.size);
    *ret_name = span_make(text, name.size);
    *ret_text = text;
    return true;
}

static void find(struct exchange *exchange, struct static_cache *cache, struct names *names,
                 void (*on_missing)(struct exchange *exchange))
{
    const struct static_root *root = names->root;
    struct glance glance = {.cache = cache};
    struct span found = {0};
    struct form form;
    enum resolved answer;

    if (open_cache_is_missing(cache, root, span_make(names->text, names->size))) {
        on_missing(exchange);
        return;
    }
    glance.root = open_cache_root(cache, root);
    answer = try_names(names, look_at, &glance, &found);
    if (answer == RESOLVED_MISSING && names->breadth != BREADTH_FILE)
        open_cache_note_missing(cache, root, span_make(names->text, names->size));
    if (answer == RESOLVED_FILE) {
        form = form_plain(glance.file);
        if (has_forms(names))
            answer = form_look(cache, glance.root, names->text, found.size, glance.file,
                               &names->wish, &form);
    }
    if (answer == RESOLVED_LATER && start_search(exchange, cache, names, on_missing))
        return;
    finish(exchange, cache, names, answer, &form, on_missing);
}

/* A page that was kept answers what it was made for, and that had no query. */
static enum breadth find_breadth(const struct exchange *exchange, const struct static_root *root)
{
    bool any_query = root->directories || root->page_query;

    return any_query || !exchange->request.query.size ? BREADTH_ALL : BREADTH_FILE;
}

static void find_wished(struct exchange *exchange, struct static_cache *cache,
                        const struct static_root *root, enum breadth breadth,
                        void (*on_missing)(struct exchange *exchange))
{
    struct names names = {.root = root,
                          .breadth = breadth,
                          .status = 200,
                          .full = true,
                          .wish = coding_read_wish(&exchange->request.fields)};
    struct span name;

    /* The path of a route is a folder's name. */
    if (root->directories && !request_inner(&exchange->request).size) {
        reply_redirect(exchange);
        return;
    }
    if (!decode(exchange, &name, &names.text)) {
        on_missing(exchange);
        return;
    }
    names.size = name.size;
    find(exchange, cache, &names, on_missing);
}

void static_find(struct exchange *exchange, struct static_cache *cache,
                 const struct static_root *root, void (*on_missing)(struct exchange *exchange))
{
    find_wished(exchange, cache, root, find_breadth(exchange, root), on_missing);
}

void static_find_named(struct exchange *exchange, struct static_cache *cache,
                       const struct static_root *root,
                       void (*on_missing)(struct exchange *exchange))
{
    find_wished(exchange, cache, root, BREADTH_FILE, on_missing);
}

void static_find_file(struct exchange *exchange, struct static_cache *cache,
                      const struct static_root *root, struct span name, unsigned status, bool full,
                      void (*on_missing)(struct exchange *exchange))
{
    struct names names = {
        .root = root, .breadth = BREADTH_ONE, .status = status, .full = full, .size = name.size};

    names.text = arena_take(&exchange->arena, name.size + LONGEST_ENDING + 1);
    if (!names.text || name.size >= PATH_MAX) {
        on_missing(exchange);
        return;
    }
    memcpy(names.text, name.data, name.size);
    find(exchange, cache, &names, on_missing);
}

bool static_send_open(struct exchange *exchange, struct static_cache *cache, int fd,
                      struct span name, unsigned status, bool full)
{
    struct resolve_identity identity;
    struct open_file *file;
    struct form form;

    if (!resolve_identify(fd, &identity)) {
        fd_close(&fd);
        return false;
    }
    file = open_file_new(fd, &identity, name);
    if (!file) {
        exchange_refuse(exchange, REFUSAL_INTERNAL);
        return true;
    }
    form = form_plain(file);
    reply_send(exchange, cache ? cache->offload : NULL, cache ? cache->post : NULL, &form, status,
               full);
    open_file_unref(file);
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "front/front.h"

#include "base/base.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/title.h"
#include "config/origin.h"
#include "front/accept.h"
#include "front/admin.h"
#include "front/channel.h"
#include "front/drain.h"
#include "front/process.h"
#include "front/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_THREADS = 2,
    LINGER_MS = 2000, /* for the rest of a refused request */
    START_FAILED = 1
};

/* ---- Settings ---- */

static uint32_t find_pool(void *data, const struct config_pool *pool)
{
    const struct front_options *options = data;

    for (uint32_t i = 0; i < options->pool_size; i++)
        if (options->pools[i].config == pool)
            return i;
    return SITE_NO_POOL;
}

static void set_trust(struct front *front)
{
    const struct config_strings *words = &front->options->config->trusted_proxies;

    front->trust_named = origin_find(front->options->config, "trusted_proxies");
    for (uint32_t i = 0; i < words->size; i++)
        if (!forwarded_trust_add(&front->trust, span_of(words->items[i])))
            log_warn("trusted_proxies: %s is left out: no address, network or known word, or too "
                     "many of them",
                     words->items[i]);
}

static uint64_t or_none(uint64_t limit)
{
    return limit ? limit : SIZE_MAX;
}

static void set_h1(struct front_loop *loop, struct h1_options *h1, const struct service *service)
{
    const struct config *config = loop->front->options->config;

    *h1 = (struct h1_options){
        .service = service,
        .service_data = loop,
        .target_bytes = or_none(config->limits.target),
        .field_bytes = or_none(config->limits.field),
        .header_bytes = or_none(config->limits.header),
        .field_count = (unsigned)config->limits.headers,
        .body_memory_bytes = BOARD_BODY_INLINE,
        .spool_folder = config->spool,
        .spool_used = &loop->spool_used,
        .spool_limit = or_none(config->limits.spool) / loop->front->options->loops,
        .header_ms = config->timeouts.header_ms,
        .keepalive_ms = config->timeouts.keepalive_ms,
        .body_rate = config->timeouts.body_rate,
        .write_rate = config->timeouts.write_rate,
        .linger_ms = LINGER_MS,
    };
}

/* The front's signals are master's to give, by message: what a terminal or a service manager sends to the
 * whole group must not take the clients' answers away. */
static void ignore_signals(void)
{
    static const int ignored[] = {SIGPIPE, SIGINT,  SIGTERM, SIGQUIT, SIGHUP, SIGUSR1,
                                  SIGUSR2, SIGTTIN, SIGTTOU, SIGIO,   SIGXFSZ};

    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
}

/* ---- Loops ---- */

/* `auto` is a fixed number. */
static uint32_t workers_max(const struct config_pool *pool)
{
    return pool->workers_max == CONFIG_AUTO ? 0 : pool->workers_max;
}

static bool open_rack(struct front_loop *loop, uint32_t pool)
{
    struct front *front = loop->front;
    const struct front_options *options = front->options;
    const struct front_pool *from = &options->pools[pool];
    struct front_pool_counters *counters = front_pool_counters(front, pool);
    struct rack_options rack = {
        .pool = from->config->name,
        .board = from->board,
        .front = options->entry,
        .loop = loop->number,
        .workers_max = workers_max(from->config),
        .queue_timeout_ms = from->config->queue_timeout_ms,
        .timeout_ms = from->config->timeout_ms,
        .head_limit = or_none(options->config->limits.response_header),
        .pass_underscore = options->config->pass_underscore,
        .spool_folder = options->config->spool,
        .spool_used = &loop->spool_used,
        .spool_limit = loop->h1.spool_limit,
        .counters = {.shed = &counters->shed,
                     .expired = &counters->expired,
                     .abandoned = &counters->abandoned,
                     .reruns = &counters->reruns,
                     .underscores = &options->counters->underscore_dropped,
                     .streams = front_streams(front, pool),
                     .answers = &front_gauges(front)->answers},
        .owner = &serve_rack_owner,
        .owner_data = &loop->links[pool],
    };

    loop->links[pool] = (struct rack_link){.loop = loop, .pool = pool};
    if (!from->board)
        return true;
    loop->racks[pool] = front->racks[pool][loop->number] = rack_new(loop->loop, &rack);
    return loop->racks[pool];
}

static bool open_racks(struct front_loop *loop)
{
    for (uint32_t pool = 0; pool < loop->front->options->pool_size; pool++)
        if (!open_rack(loop, pool))
            return false;
    return true;
}

static void open_pages(struct front_loop *loop)
{
    const struct site_table *sites = &loop->front->sites;
    const char **roots = must_alloc(sites->size + 1, sizeof(*roots));

    for (uint32_t i = 0; i < sites->size; i++)
        roots[i] = sites->sites[i].config->root;
    loop->pages = error_pages_new(loop->loop, loop->front->offload, loop->post, roots, sites->size);
    free(roots);
}

static struct front_loop *new_loop(struct front *front, uint32_t number)
{
    struct front_loop *loop = must_alloc(1, sizeof(*loop));

    loop->front = front;
    loop->number = number;
    loop->reserve_fd = -1;
    list_init(&loop->connections);
    former_init(loop);
    loop->racks = must_alloc(front->options->pool_size + 1, sizeof(struct rack *));
    loop->links = must_alloc(front->options->pool_size + 1, sizeof(struct rack_link));
    request_ids_init(&loop->ids);
    return loop;
}

static bool open_loop(struct front_loop *loop)
{
    struct front *front = loop->front;

    loop->loop = loop_new();
    loop->post = loop->loop ? post_new(loop->loop) : NULL;
    if (!loop->post)
        return false;
    front->posts[loop->number] = loop->post;
    loop->trim = (struct trim){.offload = front->offload, .post = loop->post};
    set_h1(loop, &loop->h1, &serve_service);
    set_h1(loop, &loop->admin_h1, &admin_service);
    loop->cache = static_cache_new(loop->loop, front->offload, loop->post);
    if (!loop->cache)
        return false;
    open_pages(loop);
    access_log_buffer_init(&loop->lines, front->access_log, loop->loop);
    if (loop->number == 0)
        loop->admin = admin_new(loop);
    return open_racks(loop);
}

/* Its connections are gone; what the file threads may still hand back was handed back before. */
static void free_loop(struct front_loop *loop)
{
    if (!loop)
        return;
    accept_done(loop);
    for (uint32_t pool = 0; pool < loop->front->options->pool_size; pool++)
        rack_free(loop->racks[pool]);
    admin_free(loop->admin);
    access_log_buffer_done(&loop->lines);
    post_free(loop->post);
    error_pages_free(loop->pages);
    static_cache_free(loop->cache);
    encoder_store_done(&loop->encoders);
    loop_free(loop->loop);
    former_done(loop);
    free(loop->racks);
    free(loop->links);
    free(loop);
}

static void *run_loop(void *data)
{
    struct front_loop *loop = data;

    loop_run(loop->loop);
    h1_conn_free_spares();
    return NULL;
}

/* ---- The process ---- */

static bool open_descriptors(struct front *front, uint32_t pool)
{
    const struct front_options *options = front->options;
    struct rack_descriptor_options descriptors = {
        .loop = front->loops[0]->loop,
        .home = 0,
        .listener = options->descriptor_listeners[pool],
        .board = options->pools[pool].board,
        .racks = front->racks[pool],
        .posts = front->posts,
    };

    if (!options->pools[pool].board || descriptors.listener == -1)
        return true;
    front->descriptors[pool] = rack_descriptors_open(&descriptors);
    return front->descriptors[pool];
}

static bool open_access_log(struct front *front)
{
    const struct front_options *options = front->options;

    if (options->access_log_fd == -1)
        return true;
    front->access_log = access_log_new(options->access_log_fd, options->config->access_log.format,
                                       &options->counters->log_dropped);
    return front->access_log;
}

static void make_tables(struct front *front)
{
    const struct front_options *options = front->options;

    front->loops = must_alloc(options->loops, sizeof(*front->loops));
    front->posts = must_alloc(options->loops, sizeof(*front->posts));
    front->pools = must_alloc(options->pool_size + 1, sizeof(*front->pools));
    front->racks = must_alloc(options->pool_size + 1, sizeof(*front->racks));
    front->descriptors = must_alloc(options->pool_size + 1, sizeof(*front->descriptors));
    front->given_up = must_alloc(options->listener_size + 1, sizeof(*front->given_up));
    for (uint32_t pool = 0; pool < options->pool_size; pool++)
        front->racks[pool] = must_alloc(options->loops, sizeof(struct rack *));
    atomic_store_explicit(&front->loops_running, options->loops, memory_order_relaxed);
    atomic_store_explicit(&front->loops_accepting, options->loops, memory_order_relaxed);
}

static bool open_front(struct front *front)
{
    const struct front_options *options = front->options;

    make_tables(front);
    site_table_init(&front->sites, options->config, find_pool, (void *)options);
    set_trust(front);
    front->offload = offload_new(FILE_THREADS);
    if (!front->offload || !open_access_log(front))
        return false;
    for (uint32_t i = 0; i < options->loops; i++) {
        front->loops[i] = new_loop(front, i);
        if (!open_loop(front->loops[i]))
            return false;
    }
    for (uint32_t pool = 0; pool < options->pool_size; pool++)
        if (!open_descriptors(front, pool))
            return false;
    front->channel = channel_new(front);
    if (!front->channel)
        return false;
    for (uint32_t i = 0; i < options->loops; i++)
        if (accept_start(front->loops[i]))
            return false;
    return true;
}

static void free_front(struct front *front)
{
    const struct front_options *options = front->options;

    offload_free(front->offload);
    channel_free(front->channel);
    for (uint32_t pool = 0; pool < options->pool_size; pool++)
        rack_descriptors_close(front->descriptors[pool]);
    for (uint32_t i = 0; i < options->loops; i++)
        free_loop(front->loops[i]);
    access_log_free(front->access_log);
    for (uint32_t pool = 0; pool < options->pool_size; pool++)
        free(front->racks[pool]);
    site_table_done(&front->sites);
    free(front->descriptors);
    free(front->racks);
    free(front->pools);
    free(front->posts);
    free(front->loops);
    free(front->given_up);
}

/* Loop 0 runs in the process's first thread. A front that cannot have all its threads does not start. */
static void run_loops(struct front *front)
{
    uint32_t count = front->options->loops;
    pthread_t *threads = must_alloc(count, sizeof(*threads));
    struct front_message accepting = {.kind = FRONT_ACCEPTING};

    for (uint32_t i = 1; i < count; i++) {
        int error = pthread_create(&threads[i], NULL, run_loop, front->loops[i]);

        if (error) {
            log_error("front: a loop thread could not be started: %s", strerror(error));
            _exit(START_FAILED);
        }
    }
    title_set("leat: front accepting");
    front_tell(front, &accepting);
    run_loop(front->loops[0]);
    for (uint32_t i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

int front_run(const struct front_options *options)
{
    struct front front = {.options = options};
    bool opened;

    log_name("front");
    ignore_signals();
    opened = open_front(&front);
    if (opened)
        run_loops(&front);
    else
        log_error("front: the system refuses what a front needs: %s", strerror(errno));
    free_front(&front);
    return opened ? 0 : START_FAILED;
}

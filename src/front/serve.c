/* SPDX-License-Identifier: MIT */
#include "front/serve.h"

#include "base/base.h"
#include "base/fd.h"
#include "base/log.h"
#include "front/accept.h"
#include "front/compress.h"
#include "front/internal.h"
#include "front/route.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { SPOOL_LOG_S = 60 };

enum { UNHEARD_LOG_S = 3600 };

static struct front_loop *loop_of(const struct exchange *exchange)
{
    return exchange->service_data;
}

static struct front_counters *counters_of(const struct exchange *exchange)
{
    return loop_of(exchange)->front->options->counters;
}

/* ---- HEAD ---- */

/* Names the exchange, so that whatever becomes of it can be found in the log. */
static enum refusal step_begin(struct front_loop *loop, struct exchange *exchange)
{
    struct span given = fields_value(&exchange->request.fields, FIELD_ID_X_REQUEST_ID);

    exchange->id = request_id_choose(&loop->ids, given, &exchange->arena);
    if (!exchange->id.size)
        exchange->id = span_of("-");
    front_uncount(&front_gauges(loop->front)->idle, 1);
    return REFUSAL_NONE;
}

static void log_unheard(const struct client *client)
{
    char peer[INET6_ADDRSTRLEN + 8];
    char key[sizeof(peer) + 16];

    (void)address_format_host(client->peer, peer, sizeof(peer));
    (void)snprintf(key, sizeof(key), "forwarded %s", peer);
    if (log_allow(span_of(key), UNHEARD_LOG_S, NULL))
        log_warn("peer=%s sends forwarded fields that do not count: it is not in trusted_proxies",
                 peer);
}

static enum refusal step_forward(struct front_loop *loop, struct exchange *exchange)
{
    int error = forwarded_read(&loop->front->trust, &exchange->request, &exchange->arena,
                               &exchange->client);

    if (!error && forwarded_is_unheard(&exchange->client, &exchange->request))
        log_unheard(&exchange->client);
    return error ? REFUSAL_OVERLOAD : REFUSAL_NONE;
}

/* The pulse answers whatever name a prober uses. */
static enum refusal step_find_site(struct front_loop *loop, struct exchange *exchange)
{
    const struct site_table *sites = &loop->front->sites;
    const struct site *site = site_find(sites, exchange->request.host), *pulse = NULL;

    if (!site || site == sites->fallback)
        pulse = site_find_pulse(sites, site, exchange->request.path);
    exchange->site = pulse ? pulse : site;
    return exchange->site ? REFUSAL_NONE : REFUSAL_NO_SITE;
}

static enum refusal step_find_place(struct front_loop *loop, struct exchange *exchange)
{
    struct request *request = &exchange->request;
    const struct site_place *place =
        site_find_place(exchange->site, request->path, &request->mount_bytes);

    (void)loop;
    exchange->place = place;
    request->mount = place->path;
    return REFUSAL_NONE;
}

static enum refusal step_limit_body(struct front_loop *loop, struct exchange *exchange)
{
    const struct site *site = exchange->site;
    uint64_t limit = site->config->limits.body;

    (void)loop;
    exchange->request.body_limit = limit ? limit : UINT64_MAX;
    return REFUSAL_NONE;
}

/* ---- REQUEST ---- */

bool serve_is_pool_ready(const struct front *front, uint32_t pool)
{
    const struct board *board = front->options->pools[pool].board;

    if (!board)
        return false;
    for (uint32_t worker = 0; worker < board->shape.workers; worker++) {
        struct board_worker *entry = &board->workers[worker];

        if (atomic_load_explicit(&entry->life, memory_order_acquire) == BOARD_ALIVE &&
            atomic_load_explicit(&entry->ready, memory_order_relaxed))
            return true;
    }
    return false;
}

static void answer_pulse(struct exchange *exchange, uint32_t pool)
{
    static const struct span body = SPAN("OK");

    /* Whoever asks for it chooses between servers, and this one leaves. */
    if (loop_of(exchange)->leaving || !serve_is_pool_ready(loop_of(exchange)->front, pool)) {
        exchange_refuse(exchange, REFUSAL_NO_WORKER);
        return;
    }
    exchange_add_own(exchange, FIELD_ID_CONTENT_TYPE, span_of("text/plain"));
    exchange_head(exchange, 200, (int64_t)body.size);
    exchange_write(exchange, body);
    exchange_end(exchange, false);
}

/* A pool that will not be tried again before the queue's time is over answers at once. */
static bool is_hopeless(const struct front *front, uint32_t pool, unsigned *ret_retry_s)
{
    struct front_pool_view *view = &front->pools[pool];
    uint64_t limit_ms = front->options->pools[pool].config->queue_timeout_ms;
    uint32_t next_try_s = atomic_load_explicit(&view->next_try_s, memory_order_relaxed);

    if (atomic_load_explicit(&view->state, memory_order_relaxed) != FRONT_POOL_CRASHING ||
        !limit_ms || next_try_s * (uint64_t)1000 <= limit_ms || serve_is_pool_ready(front, pool))
        return false;
    *ret_retry_s = next_try_s;
    return true;
}

static void want_pool(struct front *front, uint32_t pool)
{
    struct front_message message = {.kind = FRONT_POOL_WANTED, .pool = pool};

    front_tell(front, &message);
}

static void run_application(struct exchange *exchange)
{
    struct front_loop *loop = loop_of(exchange);
    const struct site *site = exchange->site;
    uint32_t pool = ((const struct site_place *)exchange->place)->pool;
    struct front_pool_view *view = &loop->front->pools[pool];

    if (!loop->racks[pool] || is_hopeless(loop->front, pool, &exchange->retry_s)) {
        exchange_refuse(exchange, REFUSAL_NO_WORKER);
        return;
    }
    front_count(&front_pool_counters(loop->front, pool)->requests, 1);
    if (atomic_load_explicit(&view->state, memory_order_relaxed) == FRONT_POOL_DOWN)
        want_pool(loop->front, pool);
    if (site->config->compress)
        compress_start(exchange, &loop->encoders);
    rack_start(loop->racks[pool], exchange);
}

static void answer_missing(struct exchange *exchange)
{
    exchange_refuse(exchange, REFUSAL_NOT_FOUND);
}

/* ---- Maintenance: a page that answers all but files, as long as it is there ---- */

static void on_no_maintenance(struct exchange *exchange)
{
    const struct site_place *place = exchange->place;

    exchange->response.fields.size = 0;
    if (place->pool == SITE_NO_POOL)
        answer_missing(exchange);
    else
        run_application(exchange);
}

void serve_no_file(struct exchange *exchange)
{
    static const struct span page = SPAN("system/maintenance.html");
    const struct site_place *place = exchange->place;

    if (!place->has_root) {
        on_no_maintenance(exchange);
        return;
    }
    exchange_add_field(exchange, http_field_name(FIELD_ID_RETRY_AFTER), span_of("60"));
    exchange_add_field(exchange, http_field_name(FIELD_ID_CACHE_CONTROL), span_of("no-store"));
    static_find_file(exchange, loop_of(exchange)->cache, &place->root, page, 503, false,
                     on_no_maintenance);
}

/* Behind the new address stand path and query as they came (RFC 9110 15.4). */
static void send_redirect(struct exchange *exchange, const struct config_site *site)
{
    const struct request *request = &exchange->request;
    struct span to = span_of(site->redirect), path = request->path;

    while (to.size && to.data[to.size - 1] == '/')
        to.size--;
    if (!path.size || path.data[0] != '/') /* `*` of OPTIONS is no path */
        path = (struct span)SPAN("/");
    exchange_add_field(exchange, http_field_name(FIELD_ID_LOCATION),
                       arena_printf(&exchange->arena, "%.*s%.*s%s%.*s", SPAN_ARG(to),
                                    SPAN_ARG(path), request->has_query ? "?" : "",
                                    SPAN_ARG(request->query)));
    exchange_head(exchange, site->redirect_status, 0);
    exchange_end(exchange, false);
}

static void handle(struct exchange *exchange)
{
    const struct site *site = exchange->site;
    const struct site_place *place = exchange->place;
    struct front_loop *loop = loop_of(exchange);

    switch (route_find(site, place, exchange->request.method, exchange->request.path)) {
    case ROUTE_PULSE:
        answer_pulse(exchange, site->whole.pool);
        break;
    case ROUTE_FILES_THEN_POOL:
    case ROUTE_FILES:
        static_find(exchange, loop->cache, &place->root,
                    place == &site->whole ? former_find : serve_no_file);
        break;
    case ROUTE_POOL:
        serve_no_file(exchange);
        break;
    case ROUTE_REDIRECT:
        send_redirect(exchange, site->config);
        break;
    case ROUTE_NOT_FOUND:
        answer_missing(exchange);
        break;
    case ROUTE_NOT_ALLOWED:
        exchange_refuse(exchange, REFUSAL_NOT_ALLOWED);
        break;
    }
}

static void show_page(struct exchange *exchange)
{
    struct front_loop *loop = loop_of(exchange);
    const struct site *site = exchange->site;

    /* A request that could not be read was never begun. */
    if (!exchange->id.size)
        (void)step_begin(loop, exchange);
    if (!exchange->client.address.size)
        (void)step_forward(loop, exchange);
    error_page_send(loop->pages, exchange, site ? site->number : UINT32_MAX, 500);
}

/* ---- END ---- */

static bool is_reached(uint64_t from_us, uint64_t to_us)
{
    return from_us && to_us >= from_us;
}

static void observe(struct front_pool_counters *pool, const struct times *times)
{
    if (is_reached(times->body_us, times->taken_us))
        front_observe(&pool->seconds[FRONT_QUEUE], times->taken_us - times->body_us);
    if (is_reached(times->taken_us, times->answer_us))
        front_observe(&pool->seconds[FRONT_APP], times->answer_us - times->taken_us);
    if (is_reached(times->start_us, times->end_us))
        front_observe(&pool->seconds[FRONT_TOTAL], times->end_us - times->start_us);
}

/* A client that left while its request was queued is counted by the queue. */
static bool is_aborted(const struct exchange *exchange)
{
    if (exchange->refusal != REFUSAL_CLIENT_LEFT && exchange->refusal != REFUSAL_WRITE_RATE)
        return false;
    return exchange->response.status || exchange->times.taken_us;
}

static void count_site(struct front_loop *loop, const struct exchange *exchange, unsigned class)
{
    const struct site *site = exchange->site;
    const struct site_place *place = exchange->place;

    if (!site)
        return;
    front_count(&front_site_counters(loop->front, site->number)->statuses[class], 1);
    if (place && place->pool != SITE_NO_POOL)
        observe(front_pool_counters(loop->front, place->pool), &exchange->times);
}

static void step_count(struct front_loop *loop, struct exchange *exchange)
{
    struct front_counters *counters = counters_of(exchange);
    unsigned class = access_log_status(exchange) / 100;

    front_count(&counters->requests, 1);
    front_count(&counters->bytes_in, exchange->request.body.size);
    front_count(&counters->bytes_out, exchange->sent_bytes);
    if (class >= 1 && class <= 5)
        front_count(&counters->statuses[class], 1);
    if (exchange->refusal != REFUSAL_NONE && exchange->refusal < REFUSAL_COUNT)
        front_count(&counters->refusals[exchange->refusal], 1);
    if (is_aborted(exchange))
        front_count(&counters->aborted, 1);
    if (class >= 1 && class <= 5)
        count_site(loop, exchange, class);
    if (exchange->id.size)
        front_count(&front_gauges(loop->front)->idle, 1);
}

static void step_order(struct front_loop *loop, struct exchange *exchange)
{
    (void)loop;
    accept_note_use(exchange);
}

/* A body that could not be kept is the server's fault, which its operator must hear of. What was wrong
 * is found out by trying again. */
static void warn_of_spool(const struct front_loop *loop, const struct exchange *exchange)
{
    const char *folder = loop->front->options->config->spool;
    int fd;

    if (!log_allow(span_of("request-spool"), SPOOL_LOG_S, NULL))
        return;
    if (!folder) {
        log_warn(
            "spool=off a request body over %d kB cannot be kept, answered 503 id=%.*s %.*s %.*s",
            BOARD_BODY_INLINE / 1024, SPAN_ARG(exchange->id),
            SPAN_ARG(exchange->request.method_text), SPAN_ARG(exchange->request.path));
        return;
    }
    fd = fd_temporary(folder);
    log_warn("spool=%s a request body cannot be kept: %s, answered 503 id=%.*s %.*s %.*s", folder,
             fd < 0 ? strerror(-fd) : "no room on its disk or within limits.spool",
             SPAN_ARG(exchange->id), SPAN_ARG(exchange->request.method_text),
             SPAN_ARG(exchange->request.path));
    if (fd >= 0)
        fd_close(&fd);
}

static void step_log(struct front_loop *loop, struct exchange *exchange)
{
    const struct site_place *place = exchange->place;
    const char *pool = place && place->config ? place->config->name : NULL;

    if (exchange->refusal == REFUSAL_SPOOL)
        warn_of_spool(loop, exchange);
    access_log_add(&loop->lines, exchange, pool);
}

/* ---- The service ---- */

#define PHASE_HEAD(name) step_##name,
#define PHASE_END(name)

static enum refusal (*const head_steps[])(struct front_loop *, struct exchange *) = {
#define ROW(phase, name) PHASE_##phase(name)
#include "front/step.def"
#undef ROW
};

#undef PHASE_HEAD
#undef PHASE_END
#define PHASE_HEAD(name)
#define PHASE_END(name) step_##name,

static void (*const end_steps[])(struct front_loop *, struct exchange *) = {
#define ROW(phase, name) PHASE_##phase(name)
#include "front/step.def"
#undef ROW
};

static enum refusal on_head(struct exchange *exchange)
{
    for (size_t i = 0; i < ARRAY_LEN(head_steps); i++) {
        enum refusal refusal = head_steps[i](loop_of(exchange), exchange);

        if (refusal != REFUSAL_NONE)
            return refusal;
    }
    return REFUSAL_NONE;
}

static void on_request(struct exchange *exchange)
{
    if (exchange->refusal != REFUSAL_NONE)
        show_page(exchange);
    else
        handle(exchange);
}

static void on_end(struct exchange *exchange)
{
    for (size_t i = 0; i < ARRAY_LEN(end_steps); i++)
        end_steps[i](loop_of(exchange), exchange);
}

const struct service serve_service = {
    .on_head = on_head,
    .on_request = on_request,
    .on_end = on_end,
};

/* ---- What racks call back ---- */

static void on_wanted(void *data)
{
    struct rack_link *link = data;

    want_pool(link->loop->front, link->pool);
}

static void on_late(void *data, uint32_t worker, uint32_t slot)
{
    struct rack_link *link = data;
    struct front_message message = {
        .kind = FRONT_WORKER_LATE, .pool = link->pool, .worker = worker, .number = slot};

    front_tell(link->loop->front, &message);
}

static void on_killed(void *data, uint32_t worker)
{
    struct rack_link *link = data;
    struct front_message message = {
        .kind = FRONT_REQUEST_KILLED, .pool = link->pool, .worker = worker};

    front_tell(link->loop->front, &message);
}

static void on_broken(void *data, uint32_t worker)
{
    struct rack_link *link = data;
    struct front_message message = {
        .kind = FRONT_WORKER_BROKEN, .pool = link->pool, .worker = worker};

    front_tell(link->loop->front, &message);
}

/* The name only serves to guess a type, so that a file without one is no failure. */
static struct span name_of(struct exchange *exchange, int fd)
{
    char link[64], path[PATH_MAX];
    ssize_t size;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof(path));
    if (size <= 0)
        return (struct span){0};
    return arena_copy(&exchange->arena, span_make(path, (size_t)size));
}

static bool send_file(void *data, struct exchange *exchange, int fd, unsigned status)
{
    enum method method = exchange->request.method;
    bool full = status == 200 && (method == METHOD_GET || method == METHOD_HEAD);
    struct rack_link *link = data;

    exchange->filter = NULL; /* a file goes out as it is, with ranges */
    return static_send_open(exchange, link->loop->cache, fd, name_of(exchange, fd), status, full);
}

static void send_internal(void *data, struct exchange *exchange, struct span path, unsigned status)
{
    struct rack_link *link = data;

    internal_send(link->loop, exchange, path, status);
}

const struct rack_owner serve_rack_owner = {
    .on_wanted = on_wanted,
    .on_late = on_late,
    .on_killed = on_killed,
    .on_broken = on_broken,
    .send_file = send_file,
    .send_internal = send_internal,
};

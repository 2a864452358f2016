/* SPDX-License-Identifier: MIT */
#include "front/admin.h"

#include "base/base.h"
#include "base/fd.h"
#include "front/serve.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATUS_WAIT_MS = 2000, STATUS_MAX = 16 * 1024 * 1024 };

struct admin {
    struct front_loop *loop;
    struct list waiting; /* struct question */
    uint64_t asked;      /* number of the latest question to master */
    struct timer timer;
};

/* One exchange that waits for the status; in its arena. */
struct question {
    struct list link;
    struct exchange *exchange;
    uint64_t number;
};

static struct front_loop *loop_of(const struct exchange *exchange)
{
    return exchange->service_data;
}

static void answer(struct exchange *exchange, unsigned status, const char *type, struct span body)
{
    exchange_add_field(exchange, span_of("content-type"), span_of(type));
    exchange_add_field(exchange, span_of("cache-control"), span_of("no-store"));
    exchange_head(exchange, status, (int64_t)body.size);
    exchange_write(exchange, body);
    exchange_end(exchange, false);
}

/* ---- /live, /ready, /metrics ---- */

static void show_live(struct exchange *exchange)
{
    answer(exchange, 200, "text/plain", span_of("live\n"));
}

static bool can_serve(const struct front_loop *loop, uint32_t pool)
{
    const struct front *front = loop->front;

    return !loop->racks[pool] || front->options->pools[pool].config->workers_min == 0 ||
           serve_is_pool_ready(front, pool);
}

/* Ready means that a pool has somebody to serve: of several applications one that is broken must not take
 * the others off the network. A front that drains is not. */
static bool is_ready(const struct front_loop *loop)
{
    uint32_t size = loop->front->options->pool_size;

    if (loop->draining || loop->leaving)
        return false;
    for (uint32_t pool = 0; pool < size; pool++)
        if (can_serve(loop, pool))
            return true;
    return size == 0;
}

static void show_ready(struct exchange *exchange)
{
    if (is_ready(loop_of(exchange)))
        answer(exchange, 200, "text/plain", span_of("ready\n"));
    else
        answer(exchange, 503, "text/plain", span_of("not ready\n"));
}

static void show_metrics(struct exchange *exchange)
{
    struct buf text = {0};

    if (admin_metrics(&text, loop_of(exchange)->front))
        answer(exchange, 500, "text/plain", span_of("out of memory\n"));
    else
        answer(exchange, 200, "application/openmetrics-text; version=1.0.0; charset=utf-8",
               buf_span(&text));
    buf_done(&text);
}

/* ---- /status.json ---- */

static void on_timeout(struct timer *timer);

static void forget(struct exchange *exchange)
{
    struct question *question = exchange->handler_data;

    list_remove(&question->link);
}

static const struct handler status_handler = {.name = "status", .cancel = forget};

static void show_status(struct exchange *exchange)
{
    struct front_loop *loop = loop_of(exchange);
    struct admin *admin = loop->admin;
    struct question *question = arena_zero(&exchange->arena, sizeof(*question));
    struct front_message message = {.kind = FRONT_STATUS_WANTED};

    if (!question) {
        exchange_refuse(exchange, REFUSAL_OVERLOAD);
        return;
    }
    question->exchange = exchange;
    question->number = message.number = ++admin->asked;
    list_init(&question->link);
    list_push_back(&admin->waiting, &question->link);
    exchange->handler = &status_handler;
    exchange->handler_data = question;
    if (!timer_is_set(&admin->timer))
        timer_set(loop->loop, &admin->timer, STATUS_WAIT_MS, on_timeout);
    front_tell(loop->front, &message);
}

/* Ends every question up to that number, with the text or, without one, as unanswered. */
static void answer_until(struct admin *admin, uint64_t number, struct span text)
{
    list_for_each_safe (link, &admin->waiting) {
        struct question *question = CONTAINER_OF(link, struct question, link);

        if (question->number > number)
            continue;
        list_remove(&question->link);
        if (text.size)
            answer(question->exchange, 200, "application/json", text);
        else
            answer(question->exchange, 503, "application/json",
                   span_of("{\"error\":\"the main process does not answer\"}\n"));
    }
    if (list_is_empty(&admin->waiting))
        timer_stop(&admin->timer);
}

static void on_timeout(struct timer *timer)
{
    struct admin *admin = CONTAINER_OF(timer, struct admin, timer);

    answer_until(admin, UINT64_MAX, (struct span){0});
}

void admin_take_status(struct admin *admin, uint64_t question, int fd)
{
    struct stat status;
    char *text = NULL;
    ssize_t size = 0;

    if (admin && fd != -1 && fstat(fd, &status) == 0 && status.st_size > 0 &&
        status.st_size <= STATUS_MAX) {
        text = must_alloc(1, (size_t)status.st_size);
        (void)lseek(fd, 0, SEEK_SET);
        size = fd_read_all(fd, text, (size_t)status.st_size);
    }
    if (admin)
        answer_until(admin, question, span_make(text, size > 0 ? (size_t)size : 0));
    free(text);
    fd_close(&fd);
}

/* ---- The service ---- */

static const struct {
    struct span path;
    void (*show)(struct exchange *exchange);
} pages[] = {
    {SPAN("/live"), show_live},
    {SPAN("/ready"), show_ready},
    {SPAN("/metrics"), show_metrics},
    {SPAN("/status.json"), show_status},
};

static enum refusal on_head(struct exchange *exchange)
{
    struct front_loop *loop = loop_of(exchange);

    exchange->id = request_id_choose(&loop->ids, (struct span){0}, &exchange->arena);
    exchange->request.body_limit = 0;
    return exchange->request.has_body ? REFUSAL_TOO_LARGE : REFUSAL_NONE;
}

static void on_request(struct exchange *exchange)
{
    enum method method = exchange->request.method;

    if (exchange->refusal != REFUSAL_NONE) {
        error_page_send(NULL, exchange, UINT32_MAX, 500);
        return;
    }
    if (method != METHOD_GET && method != METHOD_HEAD) {
        exchange_refuse(exchange, REFUSAL_NOT_ALLOWED);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (span_equal(pages[i].path, exchange->request.path)) {
            pages[i].show(exchange);
            return;
        }
    exchange_refuse(exchange, REFUSAL_NOT_FOUND);
}

/* Probes are not traffic: they are neither counted nor logged. */
static void on_end(struct exchange *exchange)
{
    (void)exchange;
}

const struct service admin_service = {
    .on_head = on_head,
    .on_request = on_request,
    .on_end = on_end,
};

struct admin *admin_new(struct front_loop *loop)
{
    struct admin *admin = must_alloc(1, sizeof(*admin));

    admin->loop = loop;
    list_init(&admin->waiting);
    return admin;
}

void admin_free(struct admin *admin)
{
    if (!admin)
        return;
    timer_stop(&admin->timer);
    free(admin);
}

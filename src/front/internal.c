/* SPDX-License-Identifier: MIT */
#include "front/internal.h"

#include "base/log.h"
#include "http/target.h"

static void refuse(struct exchange *exchange, struct span path, const char *reason)
{
    log_warn("x-accel-redirect=%.*s %s, answered 404 id=%.*s %.*s %.*s", SPAN_ARG(path), reason,
             SPAN_ARG(exchange->id), SPAN_ARG(exchange->request.method_text),
             SPAN_ARG(exchange->request.path));
    exchange_refuse(exchange, REFUSAL_NOT_FOUND);
}

static void on_missing(struct exchange *exchange)
{
    const struct span *path = exchange->filter_data;

    refuse(exchange, path ? *path : span_of("?"), "names no file below its internal root");
}

/* Keeps the path for that. Where there is no filter, its data are free to be used. */
static void keep_path(struct exchange *exchange, struct span path)
{
    struct span *kept = arena_take(&exchange->arena, sizeof(*kept));

    if (kept)
        *kept = path;
    exchange->filter_data = kept;
}

void internal_send(struct front_loop *loop, struct exchange *exchange, struct span path,
                   unsigned status)
{
    const struct site *site = exchange->site;
    enum method method = exchange->request.method;
    bool full = status == 200 && (method == METHOD_GET || method == METHOD_HEAD);
    const struct site_internal *internal = NULL;
    struct span name, decoded;

    exchange->filter = NULL; /* a file goes out as it is, with ranges */
    if (target_decode(span_first(path, span_find(path, '?')), &exchange->arena, &decoded))
        internal = site_find_internal(site, decoded, &name);
    if (!internal) {
        refuse(exchange, path, "lies below no internal root of the site");
        return;
    }
    keep_path(exchange, path);
    static_find_file(exchange, loop->cache, &internal->root, name, status, full, on_missing);
}

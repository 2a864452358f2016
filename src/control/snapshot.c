/* SPDX-License-Identifier: MIT */
#include "control/snapshot.h"

#include "control/text.h"

#include <errno.h>
#include <inttypes.h>

static int add_text_key(struct buf *out, const char *key, const char *value)
{
    int result = buf_printf(out, "\"%s\":", key);

    if (result == 0)
        result = value ? text_add_json(out, span_of(value)) : buf_append(out, span_of("null"));
    return result;
}

static int add_request(struct buf *out, const struct snapshot_request *request)
{
    int result = buf_append(out, span_of("{\"id\":"));

    result |= text_add_json(out, request->id);
    result |= buf_append(out, span_of(",\"method\":"));
    result |= text_add_json(out, request->method);
    result |= buf_append(out, span_of(",\"path\":"));
    result |= text_add_json(out, request->path);
    result |= buf_printf(out, ",\"age_ms\":%" PRIu64 "}", request->age_ms);
    return result;
}

static int add_worker(struct buf *out, const struct snapshot_worker *worker)
{
    int result = buf_printf(out,
                            "{\"pid\":%d,\"state\":\"%s\",\"generation\":%u,\"requests\":%" PRIu64
                            ",\"busy\":%u,\"threads\":%u,\"age_s\":%.1f,\"rss_bytes\":%" PRIu64
                            ",\"pss_bytes\":%" PRIu64 ",\"private_dirty_bytes\":%" PRIu64 ",",
                            worker->pid, worker->state, worker->generation, worker->requests,
                            worker->busy, worker->threads, worker->age_s, worker->rss_bytes,
                            worker->pss_bytes, worker->private_bytes);

    if (worker->release) {
        result |= add_text_key(out, "release", worker->release);
        result |= buf_append_byte(out, ',');
    }
    result |= buf_append(out, span_of("\"current\":["));
    for (uint32_t i = 0; i < worker->current_size && result == 0; i++) {
        result |= i ? buf_append_byte(out, ',') : 0;
        result |= add_request(out, &worker->current[i]);
    }
    return result | buf_append(out, span_of("]}"));
}

static int add_pool_head(struct buf *out, const struct snapshot_pool *pool)
{
    int result = buf_append_byte(out, '{');

    result |= add_text_key(out, "name", pool->name);
    result |= buf_append_byte(out, ',');
    result |= add_text_key(out, "kind", pool->kind);
    result |= buf_append_byte(out, ',');
    result |= add_text_key(out, "state", pool->state);
    if (pool->error) {
        result |= buf_append_byte(out, ',');
        result |= add_text_key(out, "error", pool->error);
    }
    result |= buf_append_byte(out, ',');
    result |= add_text_key(out, "release", pool->release);
    result |= buf_append_byte(out, ',');
    result |= add_text_key(out, "ruby", pool->ruby);
    return result;
}

static int add_front(struct buf *out, const struct snapshot_helper *front)
{
    return buf_printf(out, "{\"pid\":%d,\"state\":\"%s\"}", front->pid, front->state);
}

static int add_mold(struct buf *out, const struct snapshot_helper *mold)
{
    int result = buf_printf(out, "{\"pid\":%d,\"state\":\"%s\",\"generation\":%u,", mold->pid,
                            mold->state, mold->generation);

    result |= add_text_key(out, "release", mold->release);
    return result | buf_append_byte(out, '}');
}

static int add_helpers(struct buf *out, const struct snapshot_helper *helpers, uint32_t size,
                       int (*add)(struct buf *out, const struct snapshot_helper *helper))
{
    int result = buf_append_byte(out, '[');

    for (uint32_t i = 0; i < size && result == 0; i++) {
        result |= i ? buf_append_byte(out, ',') : 0;
        result |= add(out, &helpers[i]);
    }
    return result | buf_append_byte(out, ']');
}

static int add_pool(struct buf *out, const struct snapshot_pool *pool)
{
    int result = add_pool_head(out, pool);

    result |=
        buf_printf(out,
                   ",\"min\":%u,\"max\":%u,\"queue\":{\"length\":%" PRIu64 ",\"oldest_ms\":%" PRIu64
                   ",\"limit\":%" PRIu64 ",\"shed\":%" PRIu64 ",\"expired\":%" PRIu64
                   ",\"abandoned\":%" PRIu64 "},",
                   pool->min, pool->max, pool->queue.length, pool->queue.oldest_ms,
                   pool->queue.limit, pool->queue.shed, pool->queue.expired, pool->queue.abandoned);
    result |= buf_printf(
        out, "\"slots\":{\"busy\":%u,\"total\":%u},\"streams\":%" PRIu64 ",\"molds\":", pool->busy,
        pool->total, pool->streams);
    result |= add_helpers(out, pool->molds, pool->mold_size, add_mold);
    result |= buf_append(out, span_of(",\"workers\":["));
    for (uint32_t i = 0; i < pool->worker_size && result == 0; i++) {
        result |= i ? buf_append_byte(out, ',') : 0;
        result |= add_worker(out, &pool->workers[i]);
    }
    result |= buf_append(out, span_of("],\"exits\":{"));
    for (uint32_t i = 0; i < pool->exit_size && result == 0; i++)
        result |= buf_printf(out, "%s\"%s\":%" PRIu64, i ? "," : "", pool->exits[i].reason,
                             pool->exits[i].count);
    return result | buf_append(out, span_of("}}"));
}

static int add_listeners(struct buf *out, const struct snapshot *snapshot)
{
    int result = buf_append(out, span_of("\"listeners\":["));

    for (uint32_t i = 0; i < snapshot->listener_size && result == 0; i++) {
        result |= buf_append(out, i ? span_of(",{") : span_of("{"));
        result |= add_text_key(out, "address", snapshot->listeners[i].address);
        result |= buf_printf(out, ",\"tls\":%s}", snapshot->listeners[i].tls ? "true" : "false");
    }
    return result | buf_append(out, span_of("],"));
}

int snapshot_json(const struct snapshot *snapshot, struct buf *out)
{
    int result = buf_append_byte(out, '{');

    result |= add_text_key(out, "version", snapshot->version);
    result |= buf_printf(out, ",\"pid\":%d,\"uptime_s\":%.1f,", snapshot->pid, snapshot->uptime_s);
    result |= add_text_key(out, "environment", snapshot->environment);
    result |= buf_printf(out, ",\"generation\":%u,", snapshot->generation);
    result |= add_listeners(out, snapshot);
    result |= buf_append(out, span_of("\"fronts\":"));
    result |= add_helpers(out, snapshot->fronts, snapshot->front_size, add_front);
    result |= buf_printf(out,
                         ",\"connections\":{\"open\":%" PRIu64 ",\"idle\":%" PRIu64
                         ",\"accepted\":%" PRIu64 "},",
                         snapshot->open, snapshot->idle, snapshot->accepted);
    result |=
        buf_printf(out,
                   "\"requests\":{\"total\":%" PRIu64 ",\"2xx\":%" PRIu64 ",\"3xx\":%" PRIu64
                   ",\"4xx\":%" PRIu64 ",\"5xx\":%" PRIu64 ",\"aborted\":%" PRIu64 "},\"pools\":[",
                   snapshot->requests, snapshot->statuses[2], snapshot->statuses[3],
                   snapshot->statuses[4], snapshot->statuses[5], snapshot->aborted);
    for (uint32_t i = 0; i < snapshot->pool_size && result == 0; i++) {
        result |= i ? buf_append_byte(out, ',') : 0;
        result |= add_pool(out, &snapshot->pools[i]);
    }
    result |= buf_append(out, span_of("]}\n"));
    return result ? -ENOMEM : 0;
}

static int add_age(struct buf *out, double seconds)
{
    uint64_t whole = (uint64_t)seconds;

    if (whole >= 86400)
        return buf_printf(out, "%" PRIu64 "d %" PRIu64 "h", whole / 86400, whole % 86400 / 3600);
    if (whole >= 3600)
        return buf_printf(out, "%" PRIu64 "h %" PRIu64 "m", whole / 3600, whole % 3600 / 60);
    if (whole >= 60)
        return buf_printf(out, "%" PRIu64 "m %" PRIu64 "s", whole / 60, whole % 60);
    return buf_printf(out, "%.1fs", seconds);
}

static int add_worker_text(struct buf *out, const struct snapshot_worker *worker)
{
    int result = buf_printf(out, "    %-8d %-9s gen %-3u requests %-8" PRIu64 " threads %u/%u  ",
                            worker->pid, worker->state, worker->generation, worker->requests,
                            worker->busy, worker->threads);

    result |= buf_printf(out, "memory %" PRIu64 "M (private %" PRIu64 "M)  up ",
                         worker->rss_bytes >> 20, worker->private_bytes >> 20);
    result |= add_age(out, worker->age_s);
    result |= buf_append_byte(out, '\n');
    for (uint32_t i = 0; i < worker->current_size && result == 0; i++) {
        const struct snapshot_request *request = &worker->current[i];
        result |= buf_append(out, span_of("             "));
        result |= text_add_plain(out, request->method);
        result |= buf_append_byte(out, ' ');
        result |= text_add_plain(out, request->path);
        result |= buf_printf(out, "  %" PRIu64 " ms\n", request->age_ms);
    }
    return result;
}

static int add_pool_text(struct buf *out, const struct snapshot_pool *pool)
{
    int result = buf_printf(out, "\npool %s (%s): %s%s%s\n", pool->name, pool->kind, pool->state,
                            pool->error ? ": " : "", pool->error ? pool->error : "");

    result |= buf_printf(out, "  release  %s\n  ruby     %s\n", pool->release ? pool->release : "-",
                         pool->ruby ? pool->ruby : "-");
    result |= buf_printf(out,
                         "  queue    %" PRIu64 " of %" PRIu64 " waiting (oldest %" PRIu64
                         " ms); shed %" PRIu64 ", expired %" PRIu64 ", abandoned %" PRIu64 "\n",
                         pool->queue.length, pool->queue.limit, pool->queue.oldest_ms,
                         pool->queue.shed, pool->queue.expired, pool->queue.abandoned);
    result |= buf_printf(out, "  slots    %u of %u busy; streams %" PRIu64 "\n", pool->busy,
                         pool->total, pool->streams);
    result |= buf_printf(out, "  workers  %u (%u..%u)\n", pool->worker_size, pool->min, pool->max);
    for (uint32_t i = 0; i < pool->worker_size && result == 0; i++)
        result |= add_worker_text(out, &pool->workers[i]);
    result |= buf_append(out, span_of("  ended   "));
    for (uint32_t i = 0; i < pool->exit_size && result == 0; i++)
        result |= buf_printf(out, " %s %" PRIu64, pool->exits[i].reason, pool->exits[i].count);
    return result | buf_append_byte(out, '\n');
}

int snapshot_text(const struct snapshot *snapshot, struct buf *out)
{
    int result = buf_printf(out, "leat %s, PID %d, %s, up ", snapshot->version, snapshot->pid,
                            snapshot->environment);

    result |= add_age(out, snapshot->uptime_s);
    result |= buf_append_byte(out, '\n');
    for (uint32_t i = 0; i < snapshot->listener_size && result == 0; i++)
        result |= buf_printf(out, "  listening on %s%s\n", snapshot->listeners[i].address,
                             snapshot->listeners[i].tls ? " (TLS)" : "");
    result |=
        buf_printf(out, "  connections %" PRIu64 " open, %" PRIu64 " idle, %" PRIu64 " accepted\n",
                   snapshot->open, snapshot->idle, snapshot->accepted);
    result |= buf_printf(out,
                         "  requests %" PRIu64 ": 2xx %" PRIu64 ", 3xx %" PRIu64 ", 4xx %" PRIu64
                         ", 5xx %" PRIu64 ", aborted %" PRIu64 "\n",
                         snapshot->requests, snapshot->statuses[2], snapshot->statuses[3],
                         snapshot->statuses[4], snapshot->statuses[5], snapshot->aborted);
    for (uint32_t i = 0; i < snapshot->pool_size && result == 0; i++)
        result |= add_pool_text(out, &snapshot->pools[i]);
    return result ? -ENOMEM : 0;
}

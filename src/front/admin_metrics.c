/* SPDX-License-Identifier: MIT */
/*
 * The metrics of docs/logs.md as OpenMetrics text, from the counters shared with master and from the
 * boards: nothing of it asks a worker, so that it works when all of them hang.
 */
#include "board/queue.h"
#include "front/admin.h"
#include "front/serve.h"

struct text {
    struct buf *out;
    int error;
};

#define PUT(text, ...) ((text)->error |= buf_printf((text)->out, __VA_ARGS__))

static unsigned long long load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void put_head(struct text *text, const char *name, const char *type, const char *help)
{
    PUT(text, "# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
}

/* Label values come from the configuration: what would end them is escaped. */
static void put_label(struct text *text, const char *name, struct span value, bool first)
{
    PUT(text, "%s%s=\"", first ? "{" : ",", name);
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] == '\n')
            PUT(text, "\\n");
        else
            PUT(text, "%s%c", value.data[i] == '"' || value.data[i] == '\\' ? "\\" : "",
                value.data[i]);
    PUT(text, "\"");
}

static void put_pool(struct text *text, const char *metric, const struct front *front,
                     uint32_t pool)
{
    PUT(text, "%s", metric);
    put_label(text, "pool", span_of(front->options->pools[pool].config->name), true);
}

static void put_requests(struct text *text, const struct front *front)
{
    put_head(text, "leat_requests", "counter", "Requests answered, by class of status.");
    for (uint32_t i = 0; i < front->sites.size && i < FRONT_COUNTED_SITES; i++) {
        const struct config_site *site = front->sites.sites[i].config;
        struct front_site_counters *counters = front_site_counters(front, i);

        for (unsigned class = 1; class <= 5; class ++) {
            PUT(text, "leat_requests_total");
            put_label(text, "site", span_of(site->hosts.size ? site->hosts.items[0] : "*"), true);
            put_label(text, "pool", span_of(site->pool ? site->pool->name : ""), false);
            PUT(text, ",status=\"%uxx\"} %llu\n", class, load(&counters->statuses[class]));
        }
    }
}

static void put_histogram(struct text *text, const struct front *front, uint32_t pool,
                          const char *stage, const struct front_histogram *histogram)
{
    unsigned long long sum = 0, us = load(&histogram->sum_us);

    for (unsigned i = 0; i < FRONT_BUCKETS; i++) {
        sum += load(&histogram->buckets[i]);
        put_pool(text, "leat_request_seconds_bucket", front, pool);
        /* A whole number is written "1.0" there, so that all writers agree on the label. */
        if (i < FRONT_BUCKETS - 1)
            PUT(text, ",stage=\"%s\",le=\"%g%s\"} %llu\n", stage, (double)front_bucket_us[i] / 1e6,
                front_bucket_us[i] % 1000000 ? "" : ".0", sum);
        else
            PUT(text, ",stage=\"%s\",le=\"+Inf\"} %llu\n", stage, sum);
    }
    put_pool(text, "leat_request_seconds_sum", front, pool);
    PUT(text, ",stage=\"%s\"} %llu.%06llu\n", stage, us / 1000000, us % 1000000);
    put_pool(text, "leat_request_seconds_count", front, pool);
    PUT(text, ",stage=\"%s\"} %llu\n", stage, sum);
}

static void put_seconds(struct text *text, const struct front *front)
{
    static const char *const stages[FRONT_STAGES] = {
        [FRONT_QUEUE] = "queue", [FRONT_APP] = "app", [FRONT_TOTAL] = "total"};

    put_head(text, "leat_request_seconds", "histogram",
             "Time waited in the queue, spent in the application, and in all.");
    PUT(text, "# UNIT leat_request_seconds seconds\n");
    for (uint32_t pool = 0; pool < front->options->pool_size; pool++)
        for (unsigned stage = 0; stage < FRONT_STAGES; stage++)
            put_histogram(text, front, pool, stages[stage],
                          &front_pool_counters(front, pool)->seconds[stage]);
}

static void put_queue(struct text *text, const struct front *front)
{
    put_head(text, "leat_queue_length", "gauge", "Requests that wait for a worker.");
    for (uint32_t pool = 0; pool < front->options->pool_size; pool++) {
        const struct board *board = front->options->pools[pool].board;

        put_pool(text, "leat_queue_length", front, pool);
        PUT(text, "} %u\n", board ? queue_length(board) : 0);
    }
}

/* What a pool's workers are and do, by one walk over the table. */
struct crowd {
    unsigned starting, idle, busy, retiring;
    unsigned slots_busy, slots_idle;
    unsigned long long private_bytes, pss_bytes, rss_bytes;
};

static void add_worker(struct crowd *crowd, const struct board *board,
                       const struct board_worker *worker)
{
    uint32_t life = atomic_load_explicit(&worker->life, memory_order_relaxed);
    uint32_t busy = atomic_load_explicit(&worker->busy, memory_order_relaxed);

    if (life == BOARD_FREE || life == BOARD_DEAD)
        return;
    if (busy > board->shape.threads)
        busy = board->shape.threads;
    crowd->private_bytes += load(&worker->private_bytes);
    crowd->pss_bytes += load(&worker->pss_bytes);
    crowd->rss_bytes += load(&worker->rss_bytes);
    if (life == BOARD_RETIRING)
        crowd->retiring++;
    else if (!atomic_load_explicit(&worker->ready, memory_order_relaxed))
        crowd->starting++;
    else if (busy)
        crowd->busy++;
    else
        crowd->idle++;
    crowd->slots_busy += busy;
    if (life == BOARD_ALIVE && atomic_load_explicit(&worker->ready, memory_order_relaxed))
        crowd->slots_idle += board->shape.threads - busy;
}

static struct crowd count_workers(const struct board *board)
{
    struct crowd crowd = {0};

    for (uint32_t i = 0; board && i < board->shape.workers; i++)
        add_worker(&crowd, board, &board->workers[i]);
    return crowd;
}

static void put_state(struct text *text, const struct front *front, uint32_t pool,
                      const char *metric, const char *label, const char *state,
                      unsigned long long value)
{
    put_pool(text, metric, front, pool);
    PUT(text, ",%s=\"%s\"} %llu\n", label, state, value);
}

static void put_workers(struct text *text, const struct front *front)
{
    put_head(text, "leat_workers", "gauge", "Worker processes by state.");
    for (uint32_t pool = 0; pool < front->options->pool_size; pool++) {
        struct crowd crowd = count_workers(front->options->pools[pool].board);

        put_state(text, front, pool, "leat_workers", "state", "starting", crowd.starting);
        put_state(text, front, pool, "leat_workers", "state", "idle", crowd.idle);
        put_state(text, front, pool, "leat_workers", "state", "busy", crowd.busy);
        put_state(text, front, pool, "leat_workers", "state", "retiring", crowd.retiring);
    }
    put_head(text, "leat_slots", "gauge", "Threads of ready workers by state.");
    for (uint32_t pool = 0; pool < front->options->pool_size; pool++) {
        struct crowd crowd = count_workers(front->options->pools[pool].board);

        put_state(text, front, pool, "leat_slots", "state", "busy", crowd.slots_busy);
        put_state(text, front, pool, "leat_slots", "state", "idle", crowd.slots_idle);
    }
    put_head(text, "leat_worker_memory_bytes", "gauge", "Memory of all workers, by kind.");
    PUT(text, "# UNIT leat_worker_memory_bytes bytes\n");
    for (uint32_t pool = 0; pool < front->options->pool_size; pool++) {
        struct crowd crowd = count_workers(front->options->pools[pool].board);

        put_state(text, front, pool, "leat_worker_memory_bytes", "kind", "private",
                  crowd.private_bytes);
        put_state(text, front, pool, "leat_worker_memory_bytes", "kind", "pss", crowd.pss_bytes);
        put_state(text, front, pool, "leat_worker_memory_bytes", "kind", "rss", crowd.rss_bytes);
    }
}

static void put_exits(struct text *text, const struct front *front)
{
    put_head(text, "leat_worker_exits", "counter", "Worker processes that ended, by reason.");
    for (uint32_t pool = 0; pool < front->options->pool_size; pool++)
        for (uint32_t i = 0; i < front->options->exit_size; i++)
            put_state(text, front, pool, "leat_worker_exits_total", "reason",
                      front->options->exit_words[i],
                      load(&front_pool_counters(front, pool)->exits[i]));
}

static void put_queue_losses(struct text *text, const struct front *front)
{
    put_head(text, "leat_queue_lost", "counter",
             "Requests that left the queue without an answer of the application.");
    for (uint32_t pool = 0; pool < front->options->pool_size; pool++) {
        struct front_pool_counters *counters = front_pool_counters(front, pool);

        put_state(text, front, pool, "leat_queue_lost_total", "reason", "shed",
                  load(&counters->shed));
        put_state(text, front, pool, "leat_queue_lost_total", "reason", "expired",
                  load(&counters->expired));
        put_state(text, front, pool, "leat_queue_lost_total", "reason", "abandoned",
                  load(&counters->abandoned));
    }
}

static void put_connections(struct text *text, const struct front_counters *counters)
{
    unsigned long long open = 0, idle = 0;

    for (unsigned i = 0; i < BOARD_FRONTS; i++) {
        open += load(&counters->gauges[i].open);
        idle += load(&counters->gauges[i].idle);
    }
    put_head(text, "leat_connections", "gauge", "Client connections by state.");
    PUT(text, "leat_connections{state=\"idle\"} %llu\n", idle);
    PUT(text, "leat_connections{state=\"busy\"} %llu\n", open > idle ? open - idle : 0);
}

static void put_totals(struct text *text, const struct front_counters *counters)
{
    put_head(text, "leat_refusals", "counter", "Requests and connections that ended early.");
    for (unsigned i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++)
        PUT(text, "leat_refusals_total{reason=\"%s\"} %llu\n", http_refusal_word((enum refusal)i),
            load(&counters->refusals[i]));
    put_head(text, "leat_bytes", "counter", "Bytes of request bodies received and answers sent.");
    PUT(text, "# UNIT leat_bytes bytes\n");
    PUT(text, "leat_bytes_total{direction=\"in\"} %llu\n", load(&counters->bytes_in));
    PUT(text, "leat_bytes_total{direction=\"out\"} %llu\n", load(&counters->bytes_out));
    put_head(text, "leat_log_lines_dropped", "counter", "Access log lines that were not written.");
    PUT(text, "leat_log_lines_dropped_total %llu\n", load(&counters->log_dropped));
}

int admin_metrics(struct buf *out, const struct front *front)
{
    struct text text = {.out = out};

    put_requests(&text, front);
    put_seconds(&text, front);
    put_queue(&text, front);
    put_workers(&text, front);
    put_exits(&text, front);
    put_queue_losses(&text, front);
    put_connections(&text, front->options->counters);
    put_totals(&text, front->options->counters);
    PUT(&text, "# EOF\n");
    return text.error ? -1 : 0;
}

/* SPDX-License-Identifier: MIT */
#include "master/report.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/version.h"
#include "board/queue.h"
#include "control/snapshot.h"
#include "master/edition.h"
#include "pool/release.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory that must be there: of a status that somebody looks at now. */
static void *take(struct arena *arena, size_t size)
{
    void *memory = arena_zero(arena, size);

    CHECK(memory);
    return memory;
}

static bool is_held(enum slot_state state)
{
    return state == SLOT_TAKEN || state == SLOT_CALLED || state == SLOT_REPLYING;
}

/* The word was read before the text: a slot that went on meanwhile shows another request, whose bytes
 * are bounded all the same. */
static void fill_request(const struct board *board, uint32_t slot, uint64_t now_us,
                         struct snapshot_request *out)
{
    const struct slot_request *request = slot_request(board, slot);
    uint64_t taken_us = atomic_load_explicit(&request->taken_us, memory_order_relaxed);

    out->id = span_first(slot_text(board, slot, request->request_id), 128);
    out->method = span_first(slot_text(board, slot, request->method), 32);
    out->path = span_first(slot_text(board, slot, request->path), 2048);
    out->age_ms = taken_us && taken_us < now_us ? (now_us - taken_us) / 1000 : 0;
}

static void fill_current(const struct pool *pool, uint32_t index, struct arena *arena,
                         struct snapshot_worker *out)
{
    const struct board *board = &pool->instance.board;
    uint32_t threads = board->shape.threads;
    uint64_t now_us = clock_us();

    out->current = take(arena, threads * sizeof *out->current);
    for (uint32_t slot = 0; slot < board->shape.slots && out->current_size < threads; slot++) {
        struct slot_word word = slot_look(board, slot);
        if (is_held(word.state) && board_worker_of(board, word.owner) == index)
            fill_request(board, slot, now_us, &out->current[out->current_size++]);
    }
}

static void fill_worker(const struct pool *pool, uint32_t index, struct arena *arena,
                        struct snapshot_worker *out)
{
    const struct worker *worker = &pool->workers[index];
    const struct board_worker *entry = &pool->instance.board.workers[index];
    bool serves = worker->state == WORKER_SERVING || worker->state == WORKER_RETIRING;

    *out = (struct snapshot_worker){
        .pid = (int)worker->pid,
        .generation = worker->generation,
        .release = release_find(pool, worker->generation),
        .threads = pool->instance.board.shape.threads,
        .age_s = (double)(clock_ms() - worker->since_ms) / 1000,
        .requests = atomic_load_explicit(&entry->requests, memory_order_relaxed),
        .busy = serves ? atomic_load_explicit(&entry->busy, memory_order_relaxed) : 0,
        .rss_bytes = atomic_load_explicit(&entry->rss_bytes, memory_order_relaxed),
        .pss_bytes = atomic_load_explicit(&entry->pss_bytes, memory_order_relaxed),
        .private_bytes = atomic_load_explicit(&entry->private_bytes, memory_order_relaxed),
    };
    if (out->busy > out->threads)
        out->busy = out->threads;
    if (serves)
        fill_current(pool, index, arena, out);
    out->state = worker_word(worker, out->busy > 0);
}

/* Of all instances that the pool has had, as long as there is room to count each. */
static uint64_t count_exits(const struct pool *pool, unsigned reason)
{
    const _Atomic uint64_t *counted = pool->options.exit_counts;

    return counted ? atomic_load_explicit(&counted[reason], memory_order_relaxed)
                   : pool->exits[reason];
}

static const struct snapshot_exits *fill_exits(const struct pool *pool, struct arena *arena)
{
    struct snapshot_exits *exits = take(arena, EXIT_REASONS * sizeof *exits);

    for (unsigned i = 0; i < EXIT_REASONS; i++)
        exits[i] = (struct snapshot_exits){exit_word((enum exit_reason)i), count_exits(pool, i)};
    return exits;
}

static void fill_workers(const struct pool *pool, struct arena *arena, struct snapshot_pool *out)
{
    uint32_t size = pool->instance.board.shape.workers;

    out->workers = take(arena, size * sizeof *out->workers);
    for (uint32_t i = 0; i < size; i++) {
        const struct worker *worker = &pool->workers[i];
        if (!worker_is_there(worker) || worker->pid == 0)
            continue;
        fill_worker(pool, i, arena, &out->workers[out->worker_size]);
        out->busy += out->workers[out->worker_size].busy;
        out->total += worker->state == WORKER_SERVING ? pool->instance.board.shape.threads : 0;
        out->worker_size++;
    }
}

static const char *mold_word(const struct pool *pool, const struct mold *mold)
{
    if (mold->state == MOLD_LOADING)
        return "loading";
    return mold->state == MOLD_LEAVING || (mold != pool->current && mold != pool->next) ? "leaving"
                                                                                        : "ready";
}

static void fill_molds(const struct pool *pool, struct arena *arena, struct snapshot_pool *out)
{
    struct snapshot_helper *molds;
    size_t size = 0;

    list_for_each (link, &pool->molds)
        size++;
    molds = take(arena, (size + 1) * sizeof *molds);
    list_for_each (link, &pool->molds) {
        const struct mold *mold = CONTAINER_OF(link, struct mold, link);
        if (mold->pid > 0)
            molds[out->mold_size++] = (struct snapshot_helper){
                (int)mold->pid, mold_word(pool, mold), mold->generation, mold->release};
    }
    out->molds = molds;
}

static struct front_pool_counters *counters_of(const struct master *master, uint32_t number)
{
    uint32_t place = master->pools[number]->counted;

    return &master->counters->pools[place < FRONT_COUNTED_POOLS ? place : FRONT_COUNTED_POOLS - 1];
}

static void fill_queue(const struct master *master, uint32_t number, struct snapshot_pool *out)
{
    const struct pool *pool = master->pools[number]->pool;
    const struct board *board = &pool->instance.board;
    struct front_pool_counters *counters = counters_of(master, number);
    int64_t oldest_us = queue_oldest_us(board, clock_us());

    out->queue.length = queue_length(board);
    out->queue.oldest_ms = oldest_us > 0 ? (uint64_t)oldest_us / 1000 : 0;
    out->queue.limit = pool->settings->queue_length;
    out->queue.shed = atomic_load_explicit(&counters->shed, memory_order_relaxed);
    out->queue.expired = atomic_load_explicit(&counters->expired, memory_order_relaxed);
    out->queue.abandoned = atomic_load_explicit(&counters->abandoned, memory_order_relaxed);
}

static void fill_pool(const struct master *master, uint32_t number, struct arena *arena,
                      struct snapshot_pool *out)
{
    const struct pool *pool = master->pools[number]->pool;
    const struct mold *mold = pool->current;

    *out = (struct snapshot_pool){
        .name = pool->settings->name,
        .kind = "rack",
        .state = pool_state_word(pool->state),
        .error = pool->error[0] ? pool->error : NULL,
        .release = mold && mold->release ? mold->release : pool->settings->app,
        .min = pool_least(pool),
        .max = pool_most(pool),
        .exits = fill_exits(pool, arena),
        .exit_size = EXIT_REASONS,
    };
    if (mold && mold->ruby.path)
        out->ruby = arena_printf(arena, "%s %s", mold->ruby.path, mold->ruby.version).data;
    fill_molds(pool, arena, out);
    fill_workers(pool, arena, out);
    fill_queue(master, number, out);
}

static void fill_counters(const struct master *master, struct snapshot *out)
{
    struct front_counters *counters = master->counters;

    for (unsigned i = 0; i < BOARD_FRONTS; i++) {
        out->open += atomic_load_explicit(&counters->gauges[i].open, memory_order_relaxed);
        out->idle += atomic_load_explicit(&counters->gauges[i].idle, memory_order_relaxed);
    }
    out->accepted = atomic_load_explicit(&counters->accepted, memory_order_relaxed);
    out->requests = atomic_load_explicit(&counters->requests, memory_order_relaxed);
    for (unsigned i = 0; i < ARRAY_LEN(out->statuses); i++)
        out->statuses[i] = atomic_load_explicit(&counters->statuses[i], memory_order_relaxed);
    out->aborted = atomic_load_explicit(&counters->aborted, memory_order_relaxed);
}

static const struct snapshot_helper *fill_fronts(const struct master *master, struct arena *arena,
                                                 uint32_t *ret_size)
{
    struct snapshot_helper *fronts = take(arena, BOARD_FRONTS * sizeof *fronts);

    for (uint32_t i = 0; i < BOARD_FRONTS; i++) {
        const struct master_front *front = &master->fronts[i];
        if (front->pid)
            fronts[(*ret_size)++] =
                (struct snapshot_helper){.pid = (int)front->pid,
                                         .state = master->phase >= MASTER_DRAINING ? "draining"
                                                  : front->accepting               ? "accepting"
                                                                                   : "starting"};
    }
    return fronts;
}

/* Where clients are served, which the admin address does not. */
static const struct snapshot_listener *fill_listeners(const struct master *master,
                                                      struct arena *arena, uint32_t *ret_size)
{
    const struct edition *edition = master->edition;
    struct snapshot_listener *listeners =
        take(arena, (edition->listener_size + 1) * sizeof *listeners);

    for (uint32_t i = 0; i < edition->listener_size; i++) {
        char *text = take(arena, CONTROL_PATH + 64);
        if ((int)i == edition->admin_listener)
            continue;
        (void)address_format(&edition->front_listeners[i].address, text, CONTROL_PATH + 64);
        listeners[(*ret_size)++] =
            (struct snapshot_listener){text, edition->front_listeners[i].config->certificate};
    }
    return listeners;
}

static uint64_t count_streams(const struct master *master, uint32_t place)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < BOARD_FRONTS && place < FRONT_COUNTED_POOLS; i++)
        count +=
            atomic_load_explicit(&master->counters->gauges[i].streams[place], memory_order_relaxed);
    return count;
}

int report_write(const struct master *master, bool json, struct buf *out)
{
    struct arena arena = {.block = NULL};
    struct snapshot_pool *pools = take(&arena, (master->pool_size + 1) * sizeof *pools);
    struct snapshot snapshot = {
        .version = LEAT_VERSION,
        .pid = (int)getpid(),
        .uptime_s = (double)(clock_ms() - master->started_ms) / 1000,
        .environment = master->config->environment,
        .generation = master->edition->number,
        .pools = pools,
        .pool_size = master->pool_size,
    };
    int result;

    snapshot.listeners = fill_listeners(master, &arena, &snapshot.listener_size);
    snapshot.fronts = fill_fronts(master, &arena, &snapshot.front_size);
    fill_counters(master, &snapshot);
    for (uint32_t i = 0; i < master->pool_size; i++) {
        fill_pool(master, i, &arena, &pools[i]);
        pools[i].streams = count_streams(master, master->pools[i]->counted);
    }
    result = json ? snapshot_json(&snapshot, out) : snapshot_text(&snapshot, out);
    arena_done(&arena);
    return result;
}

int report_file(const struct master *master)
{
    struct buf buf = {.size = 0};
    int fd = memfd_create("leat-status", MFD_CLOEXEC);
    int result = fd == -1 ? -errno : report_write(master, true, &buf);

    if (result == 0)
        result = fd_write_all(fd, buf_span(&buf));
    if (result == 0 && lseek(fd, 0, SEEK_SET) == -1)
        result = -errno;
    buf_done(&buf);
    if (result != 0 && fd >= 0)
        (void)close(fd);
    return result == 0 ? fd : result;
}

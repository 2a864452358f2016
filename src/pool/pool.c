/* SPDX-License-Identifier: MIT */
#include "pool/pool.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "board/queue.h"
#include "pool/crew.h"
#include "pool/damage.h"
#include "pool/memory.h"
#include "pool/plan.h"
#include "pool/protocol.h"
#include "pool/question.h"
#include "pool/release.h"
#include "pool/spawn.h"
#include "pool/staff.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

enum {
    TIDY_BYTES = 1 << 20, /* so much must be there to be gained */
    TIDY_SLOTS = 8        /* slots above those in constant use that are kept */
};

static const char *const words[] = {
#define ROW(constant, word) [POOL_##constant] = word,
#include "pool/state.def"
#undef ROW
};

const char *pool_state_word(enum pool_state state)
{
    return words[state];
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How many workers an automatic number is, now that the size of the application is known. */
static void fit(struct pool *pool, const struct mold *mold)
{
    struct capacity capacity;
    char cpus[100];

    capacity_read("", capacity_affinity(), &capacity);
    pool->fits = capacity_fits(capacity.memory_headroom, mold->private_bytes);
    log_info("pool=%s workers auto: %u by processors (%s), %u by memory (%" PRIu64 " MB free%s, "
             "%" PRIu64 " MB each, 64 MB spare): %u",
             pool->settings->name, pool->max, capacity_explain_cpus(&capacity, cpus, sizeof cpus),
             pool->fits, capacity.memory_headroom >> 20,
             capacity.memory_limit ? " in the control group" : "", mold->private_bytes >> 20,
             pool_wanted(pool));
}

static void on_loaded(struct pool *pool, struct mold *mold, const struct protocol_message *message)
{
    struct span reason = protocol_get(message, "reason");

    if (mold->state != MOLD_LOADING)
        return;
    mold->state = MOLD_LOADED;
    mold->loaded_ms = clock_ms();
    mold->deadline_ms = 0;
    if (pool->reopened_ms)
        (void)spawn_signal(mold->pid, SIGHUP);
    mold->preloaded = span_is(protocol_get(message, "preload"), "true");
    (void)protocol_get_number(message, "private_bytes", &mold->private_bytes);
    mold->private_bytes = smaller(mold->private_bytes, memory_resident(mold->pid));
    pool->mold_bytes = mold->private_bytes;
    /* Its worker comes before those of pools that wait: it is nearly there. */
    plan_soon(pool);
    budget_changed(pool);
    if (mold == pool->current && pool_serving(pool) > 0) {
        backoff_succeed(&pool->backoff);
        pool->error[0] = '\0';
    }
    if (reason.size)
        log_warn("pool=%s %.*s: workers load by themselves; close it in before_fork of "
                 "config/leat.rb, or open it later",
                 pool->settings->name, SPAN_ARG(reason));
    if (pool->settings->workers_min == CONFIG_AUTO)
        fit(pool, mold);
}

/* "NoMethodError: undefined ... (config.ru:3)", the remedy on a line of its own. */
static char *describe_failure(const struct protocol_message *message)
{
    struct span class = protocol_get(message, "class");
    struct span words_of = protocol_get(message, "message");
    struct span place = protocol_get(message, "place");
    struct span hint = protocol_get(message, "hint");
    struct buf buf = {.size = 0};
    char *text;

    CHECK(buf_printf(&buf, "%.*s: %.*s", SPAN_ARG(class), SPAN_ARG(words_of)) == 0);
    if (place.size)
        CHECK(buf_printf(&buf, " (%.*s)", SPAN_ARG(place)) == 0);
    if (hint.size)
        CHECK(buf_printf(&buf, "\n%.*s", SPAN_ARG(hint)) == 0);
    CHECK(buf_append_byte(&buf, '\0') == 0);
    text = must_copy(buf_span(&buf).data);
    buf_done(&buf);
    return text;
}

/* The first failure of its kind is logged with its backtrace; the tries that follow are a line each. On
 * the terminal the outcome of a first start is told by whoever started it. */
static void log_failure(struct pool *pool, const struct mold *mold, struct span backtrace)
{
    bool to_file = pool->config->log && *pool->config->log == '/';

    if (strcmp(pool->error, mold->failure) == 0 || (!pool->told_start && !to_file))
        return;
    log_error("pool=%s generation=%u failed to load: %s %.*s", pool->settings->name,
              mold->generation, mold->failure, SPAN_ARG(backtrace));
}

static void on_failed(struct pool *pool, struct mold *mold, const struct protocol_message *message)
{
    uint64_t index;

    free(mold->failure);
    mold->failure = describe_failure(message);
    log_failure(pool, mold, protocol_get(message, "backtrace"));
    /* What follows comes with the end of the process, which is near. */
    if (!protocol_get_number(message, "index", &index))
        plan_shorten(mold);
}

/* In development: the worker goes on, and answers with the exception. */
static void on_excuse(struct pool *pool, struct mold *mold, uint32_t index,
                      const struct protocol_message *message)
{
    free(mold->failure);
    mold->failure = describe_failure(message);
    log_failure(pool, mold, protocol_get(message, "backtrace"));
    (void)snprintf(pool->error, sizeof pool->error, "%s", mold->failure);
    crew_excuse(pool, index, mold->generation);
}

static bool get_worker(const struct pool *pool, const struct protocol_message *message,
                       uint32_t *ret_index)
{
    uint64_t index;

    if (!protocol_get_number(message, "index", &index) ||
        index >= pool->instance.board.shape.workers)
        return false;
    *ret_index = (uint32_t)index;
    return true;
}

/* What a worker says of itself while it serves. One that has gone meanwhile says nothing any more. */
static bool handle_size(struct pool *pool, const struct protocol_message *message, uint32_t index,
                        uint64_t pid)
{
    uint64_t bytes;

    if (pid == 0 || (uint64_t)pool->workers[index].pid != pid)
        return true;
    if (span_is(message->verb, "spent"))
        staff_spent(pool, index, EXIT_MAX_REQUESTS);
    else if (protocol_get_number(message, "private_bytes", &bytes))
        staff_measured(pool, index, bytes);
    else
        return false;
    return true;
}

static bool handle_worker_report(struct pool *pool, const struct protocol_message *message)
{
    uint64_t pid = 0;
    uint32_t index;
    char words_of[300];

    if (!get_worker(pool, message, &index))
        return false;
    (void)protocol_get_number(message, "pid", &pid);
    if (span_is(message->verb, "measured") || span_is(message->verb, "spent"))
        return handle_size(pool, message, index, pid);
    if (span_is(message->verb, "unforked")) {
        (void)snprintf(words_of, sizeof words_of, "%.*s",
                       SPAN_ARG(protocol_get(message, "message")));
        crew_refused(pool, index, words_of);
        return true;
    }
    if (pid == 0 || pid > INT32_MAX)
        return false;
    if (span_is(message->verb, "forked"))
        crew_forked(pool, index, (pid_t)pid);
    else if (span_is(message->verb, "ready"))
        crew_ready(pool, index, (pid_t)pid);
    else if (span_is(message->verb, "backtrace"))
        return pool->workers[index].pid != (pid_t)pid || question_take(pool, index, message);
    else
        return false;
    return true;
}

static bool handle_report(struct pool *pool, const struct protocol_message *message)
{
    bool is_excuse = span_is(message->verb, "excuse");
    uint64_t generation;
    uint32_t index = 0;
    struct mold *mold;

    if (!span_is(message->verb, "loaded") && !span_is(message->verb, "failed") && !is_excuse)
        return handle_worker_report(pool, message);
    if (is_excuse && !get_worker(pool, message, &index))
        return false;
    if (!protocol_get_number(message, "generation", &generation) || generation > UINT32_MAX)
        return false;
    mold = pool_find_mold(pool, (uint32_t)generation);
    if (mold && span_is(message->verb, "loaded"))
        on_loaded(pool, mold, message);
    else if (mold && is_excuse)
        on_excuse(pool, mold, index, message);
    else if (mold)
        on_failed(pool, mold, message);
    plan_soon(pool);
    return true;
}

void pool_read_reports(struct pool *pool)
{
    char bytes[PROTOCOL_BYTES];
    struct protocol_message message;
    size_t count;
    ssize_t size;

    for (;;) {
        size = fd_receive(pool->instance.report, bytes, sizeof bytes, NULL, 0, &count);
        if (size == -EMSGSIZE) {
            log_warn("pool=%s a report was too long and is lost", pool->settings->name);
            continue;
        }
        if (size <= 0)
            return;
        if (!protocol_parse(bytes, (size_t)size, &message) || !handle_report(pool, &message))
            log_warn("pool=%s a process reported what makes no sense", pool->settings->name);
    }
}

static void on_report(struct watch *watch, uint32_t events)
{
    (void)events;
    pool_read_reports(CONTAINER_OF(watch, struct pool, report_watch));
}

static void choose_size(struct pool *pool)
{
    const struct config_pool *settings = pool->settings;
    struct capacity capacity;

    capacity_read("", capacity_affinity(), &capacity);
    pool->max_starts = capacity.cpus;
    pool->fits = UINT32_MAX;
    pool->max = settings->workers_max == CONFIG_AUTO ? capacity.cpus : settings->workers_max;
    if (pool->max == 0)
        pool->max = 1;
    pool->min = settings->workers_min == CONFIG_AUTO ? pool->max : settings->workers_min;
    pool->wanted = pool->min;
    pool->oom_kills = capacity_oom_kills("");
}

void pool_change(struct pool *pool, const struct config *config, const struct config_pool *settings)
{
    uint32_t fits = pool->fits, wanted = pool->wanted;

    pool->config = pool->options.config = config;
    pool->settings = pool->options.settings = settings;
    choose_size(pool);
    pool->fits = fits;
    if (wanted > pool->wanted)
        pool->wanted = wanted;
    plan_soon(pool);
}

static struct pool *begin(const struct pool_options *options)
{
    struct pool *pool = must_alloc(1, sizeof *pool);

    *pool = (struct pool){.options = *options,
                          .config = options->config,
                          .settings = options->settings,
                          .generation = options->generation,
                          .instance = {.board_fd = -1}};
    list_init(&pool->molds);
    list_init(&pool->member);
    task_init(&pool->plan_task, plan_on_task);
    choose_size(pool);
    budget_join(options->budget, pool);
    return pool;
}

/* Its instance is there. */
static struct pool *complete(struct pool *pool, struct faults *faults)
{
    pool->workers = must_alloc(pool->instance.board.shape.workers, sizeof *pool->workers);
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        pool->workers[i] = (struct worker){.control = -1, .why = EXIT_NONE, .spent = EXIT_NONE};
    pool->state = POOL_STARTING;
    if (loop_watch(pool->options.loop, &pool->report_watch, pool->instance.report, EPOLLIN,
                   on_report) == 0)
        return pool;
    faults_add(faults, NULL, 0, 0, pool->settings->name, "cannot watch its reports");
    pool_free(pool);
    return NULL;
}

struct pool *pool_new(const struct pool_options *options, struct faults *faults)
{
    struct pool *pool = begin(options);

    if (instance_open(options->config, options->settings, pool->max, options->loops,
                      options->runtime, &pool->instance, faults) == 0)
        return complete(pool, faults);
    pool_free(pool);
    return NULL;
}

struct pool *pool_new_of(const struct pool_options *options, const struct instance *instance,
                         struct faults *faults)
{
    struct pool *pool = begin(options);

    pool->instance = *instance;
    return complete(pool, faults);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    budget_leave(pool);
    task_cancel(&pool->plan_task);
    timer_stop(&pool->timer);
    loop_unwatch(&pool->report_watch);
    list_for_each_safe (link, &pool->molds)
        mold_free(CONTAINER_OF(link, struct mold, link));
    for (uint32_t i = 0; pool->workers && i < pool->instance.board.shape.workers; i++) {
        question_free(pool->workers[i].question);
        fd_close(&pool->workers[i].control);
    }
    free(pool->workers);
    release_done(pool);
    instance_close(&pool->instance);
    free(pool);
}

static bool expects_worker(const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (pool->workers[i].state == WORKER_ASKED || pool->workers[i].state == WORKER_UNWANTED)
            return true;
    return false;
}

bool pool_child_ended(struct pool *pool, pid_t pid, int wait_status)
{
    list_for_each (link, &pool->molds) {
        struct mold *mold = CONTAINER_OF(link, struct mold, link);
        if (mold->pid == pid) {
            plan_mold_ended(pool, mold, wait_status);
            return true;
        }
    }
    if (crew_ended(pool, pid, wait_status))
        return true;
    if (expects_worker(pool))
        pool->lost[pool->lost_next++ % POOL_LOST] =
            (struct pool_lost){.pid = pid, .wait_status = wait_status};
    return false;
}

uint32_t pool_restart(struct pool *pool)
{
    if (pool->restart_due)
        return pool->restarts;
    if (pool->next || pool->rolling) {
        pool->restart_again = true;
        return pool->restarts + 1;
    }
    pool->restart_due = true;
    plan_soon(pool);
    return ++pool->restarts;
}

/* Whoever has not said that it is there yet could not stand the signal, and gets it when it says so. */
void pool_reopen(struct pool *pool)
{
    if (pool->options.log_fd == -1)
        return;
    pool->reopened_ms = clock_ms();
    list_for_each (link, &pool->molds) {
        struct mold *mold = CONTAINER_OF(link, struct mold, link);
        if (mold->pid && mold->state == MOLD_LOADED)
            (void)spawn_signal(mold->pid, SIGHUP);
    }
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (pool->workers[i].ready_ms && worker_is_there(&pool->workers[i]))
            (void)spawn_signal(pool->workers[i].pid, SIGHUP);
}

void pool_want(struct pool *pool)
{
    damage_look(pool);
    crew_find_stopped(pool, clock_ms());
    staff_demand(pool);
    plan_soon(pool);
}

void pool_drain(struct pool *pool)
{
    pool->draining = true;
    plan_soon(pool);
}

void pool_adjust(struct pool *pool, int change)
{
    uint32_t before = pool_wanted(pool);

    pool->adjust += change;
    pool->wanted = before + (uint32_t)change;
    if (pool_wanted(pool) == before) {
        pool->adjust -= change;
        pool->wanted = before;
    }
    log_info("pool=%s workers wanted: %u", pool->settings->name, pool_wanted(pool));
    plan_soon(pool);
}

void pool_audited(struct pool *pool, uint32_t worker)
{
    crew_audited(pool, worker);
}

/* Who still loads the application hears nothing until it has. */
static void stop_mold(struct mold *mold)
{
    if (mold->state == MOLD_LOADING)
        (void)spawn_signal(mold->pid, SIGKILL);
    mold_quit(mold);
}

void pool_stop(struct pool *pool, uint64_t grace_ms)
{
    pool->stopping = true;
    list_for_each (link, &pool->molds)
        stop_mold(CONTAINER_OF(link, struct mold, link));
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        if (pool->workers[i].state == WORKER_STARTING)
            crew_kill(pool, i);
        else
            crew_retire(pool, i, EXIT_NORMAL, grace_ms);
    }
    plan_soon(pool);
}

void pool_kill(struct pool *pool)
{
    pool->stopping = true;
    list_for_each (link, &pool->molds) {
        struct mold *mold = CONTAINER_OF(link, struct mold, link);
        (void)spawn_signal(mold->pid, SIGKILL);
        mold_quit(mold);
    }
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (worker_is_there(&pool->workers[i]))
            crew_kill(pool, i);
    plan_soon(pool);
}

/* Bytes that a memory file really takes. */
static uint64_t file_bytes(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 ? (uint64_t)info.st_blocks * 512 : 0;
}

void pool_tidy(struct pool *pool)
{
    const struct board *board = &pool->instance.board;

    if (file_bytes(pool->instance.board_fd) < pool->tidy_bytes + TIDY_BYTES ||
        queue_length(board) > 0)
        return;
    (void)board_trim(board, pool->instance.board_fd, pool->max * board->shape.threads + TIDY_SLOTS);
    pool->tidy_bytes = file_bytes(pool->instance.board_fd);
}

uint32_t pool_serving(const struct pool *pool)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        count += pool->workers[i].state == WORKER_SERVING;
    return count;
}

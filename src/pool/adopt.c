/* SPDX-License-Identifier: MIT */
#include "pool/adopt.h"

#include "base/log.h"
#include "pool/plan.h"
#include "pool/release.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { PID_MAX = INT32_MAX, MOLDS_MAX = 1024 };

static const char *const mold_words[] = {
    [MOLD_DOWN] = "down",
    [MOLD_LOADING] = "loading",
    [MOLD_LOADED] = "loaded",
    [MOLD_LEAVING] = "leaving",
};

static const char *const worker_words[] = {
    [WORKER_EMPTY] = "empty",       [WORKER_ASKED] = "asked",     [WORKER_UNWANTED] = "unwanted",
    [WORKER_STARTING] = "starting", [WORKER_SERVING] = "serving", [WORKER_RETIRING] = "retiring",
    [WORKER_KILLED] = "killed",     [WORKER_DEAD] = "dead",
};

_Static_assert(ARRAY_LEN(worker_words) == WORKER_STATES, "a state has no word");

static const char *const exit_words[] = {
#define ROW(constant, word) [EXIT_##constant] = word,
#include "pool/exit.def"
#undef ROW
};

/* ---- Writing ---- */

static void save_ruby(const struct ruby *ruby, const struct saved_out *out)
{
    saved_put(out, "program", ruby->program);
    saved_put(out, "path", ruby->path);
    saved_put(out, "version", ruby->version);
    saved_put(out, "abi", ruby->abi);
}

static void save_mold(const struct mold *mold, const struct saved_out *out)
{
    struct saved_out ruby = saved_out_section(out, "ruby");

    saved_put_number(out, "generation", mold->generation);
    saved_put_number(out, "solo", mold->solo);
    saved_put(out, "state", mold_words[mold->state]);
    saved_put_number(out, "pid", (uint64_t)mold->pid);
    saved_put_fd(out, "control_fd", mold->control);
    saved_put_number(out, "begun_ms", mold->begun_ms);
    saved_put_number(out, "loaded_ms", mold->loaded_ms);
    saved_put_number(out, "deadline_ms", mold->deadline_ms);
    saved_put_number(out, "private_bytes", mold->private_bytes);
    saved_put_number(out, "preloaded", mold->preloaded);
    saved_put(out, "release", mold->release);
    saved_put(out, "rackup", mold->rackup);
    saved_put(out, "failure", mold->failure);
    saved_put_number(out, "other_user", mold->account.change);
    saved_put_number(out, "uid", mold->account.uid);
    save_ruby(&mold->ruby, &ruby);
}

static void save_worker(const struct worker *worker, const struct saved_out *out)
{
    saved_put(out, "state", worker_words[worker->state]);
    saved_put_number(out, "pid", (uint64_t)worker->pid);
    saved_put_number(out, "generation", worker->generation);
    saved_put_fd(out, "control_fd", worker->control);
    saved_put_number(out, "since_ms", worker->since_ms);
    saved_put_number(out, "ready_ms", worker->ready_ms);
    saved_put_number(out, "deadline_ms", worker->deadline_ms);
    if (worker->why != EXIT_NONE)
        saved_put(out, "why", exit_words[worker->why]);
    if (worker->spent != EXIT_NONE)
        saved_put(out, "spent", exit_words[worker->spent]);
    saved_put_number(out, "private_bytes", worker->private_bytes);
    saved_put_number(out, "late", worker->is_late);
    saved_put_number(out, "relieved", worker->is_relieved);
    saved_put_number(out, "excuse", worker->is_excuse);
}

static void save_backoff(const struct backoff *backoff, const struct saved_out *out)
{
    saved_put_number(out, "failures", backoff->failures);
    saved_put_number(out, "deaths", backoff->deaths);
    saved_put_number(out, "deaths_ms", backoff->deaths_ms);
    saved_put_number(out, "until_ms", backoff->until_ms);
}

static void save_processes(const struct pool *pool, const struct saved_out *out)
{
    uint32_t molds = 0;
    uint32_t lost = 0;

    list_for_each (link, &pool->molds) {
        struct saved_out item = saved_out_item(out, "mold", molds++);
        save_mold(CONTAINER_OF(link, struct mold, link), &item);
    }
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        struct saved_out item = saved_out_item(out, "worker", i);
        if (pool->workers[i].state != WORKER_EMPTY)
            save_worker(&pool->workers[i], &item);
    }
    for (uint32_t i = 0; i < POOL_LOST; i++) {
        struct saved_out item = saved_out_item(out, "lost", lost);
        if (!pool->lost[i].pid)
            continue;
        saved_put_number(&item, "pid", (uint64_t)pool->lost[i].pid);
        saved_put_number(&item, "status", (uint64_t)(unsigned)pool->lost[i].wait_status);
        lost++;
    }
}

void pool_save(const struct pool *pool, const struct saved_out *out)
{
    struct saved_out board = saved_out_section(out, "board");
    struct saved_out exits = saved_out_section(out, "exits");
    struct saved_out backoff = saved_out_section(out, "backoff");

    instance_save(&pool->instance, &board);
    saved_put(out, "name", pool->settings->name);
    saved_put_number(out, "generation", pool->generation);
    if (pool->current)
        saved_put_number(out, "current", pool->current->generation);
    saved_put_number(out, "more", pool->adjust > 0 ? (uint64_t)pool->adjust : 0);
    saved_put_number(out, "less", pool->adjust < 0 ? (uint64_t) - (int64_t)pool->adjust : 0);
    saved_put_number(out, "fits", pool->fits);
    saved_put_number(out, "demanded", pool->demanded);
    saved_put_number(out, "wanted", pool->wanted);
    saved_put_number(out, "has_served", pool->has_served);
    saved_put_number(out, "start_ms", pool->start_ms);
    saved_put_number(out, "mold_bytes", pool->mold_bytes);
    saved_put_number(out, "worker_bytes", pool->worker_bytes);
    saved_put_number(out, "restarts", pool->restarts);
    saved_put_number(out, "reopened_ms", pool->reopened_ms);
    saved_put_number(out, "handed_pid", (uint64_t)pool->options.handed_pid);
    saved_put(out, "error", pool->error);
    for (unsigned i = 0; i < EXIT_REASONS; i++)
        saved_put_number(&exits, exit_words[i], pool->exits[i]);
    save_backoff(&pool->backoff, &backoff);
    save_processes(pool, out);
}

/* ---- Reading ---- */

static char *copy(const struct saved_in *in, const char *name)
{
    const char *value = saved_get(in, name);

    return value ? must_copy(value) : NULL;
}

static bool flag(const struct saved_in *in, const char *name)
{
    return saved_number(in, name, 1, 0) == 1;
}

static uint32_t number32(const struct saved_in *in, const char *name)
{
    return (uint32_t)saved_number(in, name, UINT32_MAX, 0);
}

static uint64_t number64(const struct saved_in *in, const char *name)
{
    return saved_number(in, name, UINT64_MAX, 0);
}

static pid_t get_pid(const struct saved_in *in, const char *name)
{
    return (pid_t)saved_number(in, name, PID_MAX, 0);
}

static void read_ruby(struct ruby *ruby, const struct saved_in *in)
{
    if (!saved_get(in, "program") || !saved_get(in, "path") || !saved_get(in, "version"))
        return;
    *ruby = (struct ruby){.program = copy(in, "program"),
                          .path = copy(in, "path"),
                          .version = copy(in, "version"),
                          .abi = copy(in, "abi")};
}

/* A generation whose process is exec'd from here once more needs everything that mold_prepare finds. */
static void settle_mold(struct mold *mold)
{
    if (mold->solo || (mold->pid == 0 && mold->state != MOLD_LEAVING))
        mold->state = MOLD_DOWN;
}

static bool adopt_mold(struct pool *pool, const struct saved_in *in)
{
    struct saved_in ruby = saved_section(in, "ruby");
    size_t state = saved_word(in, "state", mold_words, ARRAY_LEN(mold_words));
    struct mold *mold;

    if (state == ARRAY_LEN(mold_words) || number32(in, "generation") == 0 ||
        pool_find_mold(pool, number32(in, "generation")))
        return false;
    mold = mold_new(number32(in, "generation"), flag(in, "solo"));
    mold->state = (enum mold_state)state;
    mold->pid = get_pid(in, "pid");
    mold->control = saved_fd(in, "control_fd");
    mold->begun_ms = number64(in, "begun_ms");
    mold->loaded_ms = number64(in, "loaded_ms");
    mold->deadline_ms = number64(in, "deadline_ms");
    mold->private_bytes = number64(in, "private_bytes");
    mold->preloaded = flag(in, "preloaded");
    mold->release = copy(in, "release");
    mold->rackup = copy(in, "rackup");
    mold->failure = copy(in, "failure");
    mold->account.change = flag(in, "other_user");
    mold->account.uid = number32(in, "uid");
    read_ruby(&mold->ruby, &ruby);
    settle_mold(mold);
    list_push_back(&pool->molds, &mold->link);
    release_note(pool, mold);
    if (mold->generation > pool->generation)
        pool->generation = mold->generation;
    return true;
}

static enum exit_reason reason(const struct saved_in *in, const char *name)
{
    size_t found = saved_word(in, name, exit_words, ARRAY_LEN(exit_words));

    return found < EXIT_REASONS ? (enum exit_reason)found : EXIT_NONE;
}

static bool adopt_worker(struct worker *worker, const struct saved_in *in)
{
    size_t state = saved_word(in, "state", worker_words, ARRAY_LEN(worker_words));

    if (state == ARRAY_LEN(worker_words))
        return false;
    *worker = (struct worker){.state = (enum worker_state)state,
                              .pid = get_pid(in, "pid"),
                              .generation = number32(in, "generation"),
                              .control = saved_fd(in, "control_fd"),
                              .since_ms = number64(in, "since_ms"),
                              .ready_ms = number64(in, "ready_ms"),
                              .deadline_ms = number64(in, "deadline_ms"),
                              .why = reason(in, "why"),
                              .spent = reason(in, "spent"),
                              .private_bytes = number64(in, "private_bytes"),
                              .is_late = flag(in, "late"),
                              .is_relieved = flag(in, "relieved"),
                              .is_excuse = flag(in, "excuse")};
    /* A state that needs a process and has none is one of another build's making. */
    if (!worker->pid && state != WORKER_ASKED && state != WORKER_UNWANTED && state != WORKER_DEAD)
        worker->state = WORKER_EMPTY;
    return true;
}

static void adopt_processes(struct pool *pool, const struct saved_in *in)
{
    for (uint32_t i = 0; i < MOLDS_MAX; i++) {
        struct saved_in item = saved_item(in, "mold", i);
        if (!adopt_mold(pool, &item))
            break;
    }
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        struct saved_in item = saved_item(in, "worker", i);
        (void)adopt_worker(&pool->workers[i], &item);
    }
    for (uint32_t i = 0; i < POOL_LOST; i++) {
        struct saved_in item = saved_item(in, "lost", i);
        pool->lost[i].pid = get_pid(&item, "pid");
        pool->lost[i].wait_status = (int)number32(&item, "status");
    }
}

static void adopt_counts(struct pool *pool, const struct saved_in *in)
{
    struct saved_in exits = saved_section(in, "exits");
    struct saved_in backoff = saved_section(in, "backoff");
    const char *error = saved_get(in, "error");

    pool->generation = number32(in, "generation");
    pool->adjust = (int32_t)saved_number(in, "more", INT32_MAX, 0) -
                   (int32_t)saved_number(in, "less", INT32_MAX, 0);
    pool->fits = (uint32_t)saved_number(in, "fits", UINT32_MAX, UINT32_MAX);
    pool->demanded = flag(in, "demanded");
    pool->wanted = number32(in, "wanted");
    pool->has_served = flag(in, "has_served");
    pool->start_ms = number64(in, "start_ms");
    pool->mold_bytes = number64(in, "mold_bytes");
    pool->worker_bytes = number64(in, "worker_bytes");
    pool->restarts = number32(in, "restarts");
    pool->reopened_ms = number64(in, "reopened_ms");
    pool->options.handed_pid = get_pid(in, "handed_pid");
    (void)snprintf(pool->error, sizeof pool->error, "%s", error ? error : "");
    for (unsigned i = 0; i < EXIT_REASONS; i++)
        pool->exits[i] = number64(&exits, exit_words[i]);
    pool->backoff = (struct backoff){.failures = number32(&backoff, "failures"),
                                     .deaths = number32(&backoff, "deaths"),
                                     .deaths_ms = number64(&backoff, "deaths_ms"),
                                     .until_ms = number64(&backoff, "until_ms")};
}

/* Without a generation to go on with there is one that starts from the beginning. */
static void choose_current(struct pool *pool, const struct saved_in *in)
{
    pool->current = pool_find_mold(pool, number32(in, "current"));
    if (pool->current)
        return;
    pool->current = mold_new(++pool->generation, pool->config->development);
    list_push_back(&pool->molds, &pool->current->link);
}

bool pool_is_adoptable(const struct saved_in *in)
{
    struct saved_in board = saved_section(in, "board");

    return instance_is_adoptable(&board);
}

struct pool *pool_adopt(const struct pool_options *options, const struct saved_in *in,
                        struct faults *faults)
{
    struct saved_in board = saved_section(in, "board");
    struct instance instance;
    struct pool *pool;
    int result = instance_adopt(&board, &instance);

    if (result != 0) {
        faults_add(faults, NULL, 0, 0, options->settings->name,
                   "its board cannot be taken over: %s", strerror(-result));
        return NULL;
    }
    pool = pool_new_of(options, &instance, faults);
    if (!pool)
        return NULL;
    adopt_counts(pool, in);
    adopt_processes(pool, in);
    choose_current(pool, in);
    pool->told_start = true;
    return pool;
}

/* Whether the process is a child of ours, an ended one included. */
static bool is_child(pid_t pid)
{
    siginfo_t info;

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void end_if_strange(struct pool *pool, pid_t pid)
{
    if (pid == 0 || is_child(pid))
        return;
    log_warn("pool=%s process %d is none of ours any more", pool->settings->name, (int)pid);
    (void)pool_child_ended(pool, pid, SIGKILL);
}

void pool_resume(struct pool *pool)
{
    list_for_each_safe (link, &pool->molds)
        end_if_strange(pool, CONTAINER_OF(link, struct mold, link)->pid);
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++) {
        struct worker *worker = &pool->workers[i];
        if (worker->state != WORKER_DEAD && worker->state != WORKER_EMPTY)
            end_if_strange(pool, worker->pid);
        else if (worker->state == WORKER_DEAD)
            pool->options.host->on_dead(pool, i);
    }
    if (pool->options.exit_counts)
        for (unsigned i = 0; i < EXIT_REASONS; i++)
            atomic_store_explicit(&pool->options.exit_counts[i], pool->exits[i],
                                  memory_order_relaxed);
    plan_soon(pool);
}

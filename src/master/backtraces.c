/* SPDX-License-Identifier: MIT */
#include "master/backtraces.h"

#include "base/num.h"

#include <stdlib.h>
#include <unistd.h>

/* A call that waits for the answer of one worker. */
struct asker {
    struct list link; /* in master's backtraces */
    struct control_call *call;
    const struct master_pool *pool;
    uint32_t worker;
};

static void wait_for(struct master_pool *pool, uint32_t worker, struct control_call *call)
{
    struct asker *asker = must_alloc(1, sizeof *asker);

    *asker = (struct asker){.call = call, .pool = pool, .worker = worker};
    list_init(&asker->link);
    list_push_back(&pool->master->backtraces, &asker->link);
}

static void answer(struct asker *asker, bool ok, struct span text)
{
    list_remove(&asker->link);
    control_answer(asker->call, ok, text, false);
    free(asker);
}

static bool is_mold(const struct master *master, pid_t pid)
{
    list_for_each (instance, &master->instances)
        list_for_each (link, &CONTAINER_OF(instance, struct master_pool, link)->pool->molds)
            if (CONTAINER_OF(link, struct mold, link)->pid == pid)
                return true;
    return false;
}

static bool is_front(const struct master *master, pid_t pid)
{
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid == pid)
            return true;
    return false;
}

/* What a process of ours is that is no worker. */
static const char *find_role(const struct master *master, pid_t pid)
{
    if (pid == getpid())
        return "the server's main process";
    if (is_front(master, pid))
        return "a front";
    return is_mold(master, pid) ? "a mold" : NULL;
}

static void add_workers(const struct pool *pool, struct buf *text)
{
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (worker_is_there(&pool->workers[i]) && pool->workers[i].pid)
            (void)buf_printf(text, " %d", (int)pool->workers[i].pid);
}

static void refuse(const struct master *master, uint64_t pid, struct control_call *call)
{
    const char *role = pid && pid <= INT32_MAX ? find_role(master, (pid_t)pid) : NULL;
    struct buf text = {.size = 0};
    size_t before;

    if (role)
        (void)buf_printf(&text, "process %d is %s; only workers have backtraces to tell.", (int)pid,
                         role);
    else
        (void)buf_printf(&text, "there is no worker %llu.", (unsigned long long)pid);
    (void)buf_append(&text, span_of(" Workers now:"));
    before = text.size;
    list_for_each (link, &master->instances)
        add_workers(CONTAINER_OF(link, struct master_pool, link)->pool, &text);
    (void)buf_append(&text, span_of(text.size == before ? " none\n" : "\n"));
    control_answer(call, false, buf_span(&text), false);
    buf_done(&text);
}

void backtraces_ask(struct master *master, struct span argument, struct control_call *call)
{
    uint64_t pid = 0;
    uint32_t worker;

    if (!num_decimal(argument, &pid)) {
        control_answer(call, false, span_of("backtrace needs the PID of a worker\n"), false);
        return;
    }
    list_for_each (link, &master->instances) {
        struct master_pool *mine = CONTAINER_OF(link, struct master_pool, link);
        if (pid > INT32_MAX || !pool_backtrace(mine->pool, (pid_t)pid, &worker))
            continue;
        wait_for(mine, worker, call);
        return;
    }
    refuse(master, pid, call);
}

void backtraces_answer(struct master_pool *pool, uint32_t worker, bool ok, struct span text)
{
    list_for_each_safe (link, &pool->master->backtraces) {
        struct asker *asker = CONTAINER_OF(link, struct asker, link);
        if (asker->pool == pool && asker->worker == worker)
            answer(asker, ok, text);
    }
}

void backtraces_stopped(struct master *master)
{
    list_for_each_safe (link, &master->backtraces)
        answer(CONTAINER_OF(link, struct asker, link), false,
               span_of("the server was stopped meanwhile\n"));
}

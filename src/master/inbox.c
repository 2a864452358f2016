/* SPDX-License-Identifier: MIT */
#include "master/inbox.h"

#include "board/audit.h"
#include "master/backtraces.h"
#include "master/commands.h"
#include "master/fronts.h"
#include "master/instances.h"
#include "master/notify.h"
#include "master/phase.h"
#include "master/releases.h"
#include "master/reload.h"
#include "master/report.h"
#include "master/requests.h"
#include "master/takeover.h"

#include <string.h>
#include <unistd.h>

/* Fronts name pools by their number in the edition that they run on. */
static struct pool *find_pool(const struct edition *edition, uint32_t number)
{
    return number < edition->pool_size ? edition->pools[number]->pool : NULL;
}

static void answer_status(struct master *master, struct master_front *front,
                          const struct front_message *question)
{
    struct front_message answer = {.kind = FRONT_STATUS, .number = question->number};
    int fd = report_file(master);

    if (fd >= 0) {
        fronts_tell(front, &answer, &fd, 1);
        (void)close(fd);
    } else {
        fronts_tell(front, &answer, NULL, 0);
    }
}

void inbox_take(struct master *master, struct master_front *front,
                const struct front_message *message, int fd)
{
    struct pool *pool = find_pool(front->edition, message->pool);

    switch (message->kind) {
    case FRONT_ACCEPTING:
        front->accepting = front->was_accepting = true;
        takeover_done(master);
        phase_check_ready(master);
        reload_front_accepts(front);
        break;
    case FRONT_RELEASED:
        front->released = true;
        reload_front_released(master);
        break;
    case FRONT_POOL_WANTED:
        if (pool)
            pool_want(pool);
        break;
    case FRONT_WORKER_LATE:
        if (pool)
            pool_worker_late(pool, message->worker, (uint32_t)message->number);
        break;
    case FRONT_WORKER_BROKEN:
        if (pool)
            pool_worker_broken(pool, message->worker);
        break;
    case FRONT_AUDITED:
        if (pool)
            pool_audited(pool, message->worker);
        break;
    case FRONT_STATUS_WANTED:
        answer_status(master, front, message);
        break;
    case FRONT_REQUEST_KILLED:
        if (pool)
            pool_request_killed(pool, message->worker);
        break;
    case FRONT_REQUESTS:
        requests_take(master, front, message, fd);
        break;
    case FRONT_DRAINED:
        master->cut += message->number;
        break;
    default:
        break;
    }
}

static struct master_pool *owner(struct pool *pool)
{
    return pool->options.context;
}

void inbox_pool_state(const struct master_pool *pool, struct front_message *ret_message)
{
    enum front_pool_state state = FRONT_POOL_STARTING;
    struct front_message message = {.kind = FRONT_POOL_STATE};

    if (pool_serving(pool->pool) > 0)
        state = FRONT_POOL_UP;
    else if (pool->pool->state == POOL_DOWN)
        state = FRONT_POOL_DOWN;
    else if (pool->pool->error[0]) {
        state = FRONT_POOL_CRASHING;
        message.value = (uint32_t)((pool_wait_ms(pool->pool) + 999) / 1000);
        memcpy(message.text, pool->pool->error, sizeof message.text - 1);
    }
    message.number = state;
    *ret_message = message;
}

static void on_ready(struct pool *pool, uint32_t worker)
{
    struct master_pool *mine = owner(pool);
    struct front_message message = {.kind = FRONT_WORKER_READY, .worker = worker};

    (void)fronts_tell_users(mine, &message);
    releases_tell_all(mine);
    takeover_settle(mine->master);
}

static void on_dead(struct pool *pool, uint32_t worker)
{
    struct master_pool *mine = owner(pool);
    struct front_message message = {.kind = FRONT_WORKER_DEAD, .worker = worker};

    releases_tell_all(mine);
    if (fronts_tell_users(mine, &message) > 0)
        return;
    (void)audit_worker_free(&pool->instance.board, worker);
    pool_audited(pool, worker);
}

static void on_state(struct pool *pool)
{
    struct master_pool *mine = owner(pool);
    struct front_message message;

    inbox_pool_state(mine, &message);
    (void)fronts_tell_users(mine, &message);
    notify_settle(mine->master);
}

static void on_started(struct pool *pool, const char *failure)
{
    struct master_pool *mine = owner(pool);

    mine->settled = true;
    mine->failed = failure != NULL;
    phase_check_ready(mine->master);
    reload_pool_settled(mine);
    takeover_settle(mine->master);
}

static void on_restarted(struct pool *pool, uint32_t ticket, const char *failure)
{
    commands_restarted(owner(pool), ticket, failure);
}

static void on_damage(struct pool *pool)
{
    fronts_restore(owner(pool)->master, &pool->instance.board);
}

static void on_backtrace(struct pool *pool, uint32_t worker, bool ok, struct span text)
{
    backtraces_answer(owner(pool), worker, ok, text);
}

static void on_empty(struct pool *pool)
{
    instances_empty(owner(pool));
    phase_pool_gone(owner(pool)->master);
}

const struct pool_host inbox_host = {
    .on_ready = on_ready,
    .on_dead = on_dead,
    .on_state = on_state,
    .on_started = on_started,
    .on_restarted = on_restarted,
    .on_damage = on_damage,
    .on_backtrace = on_backtrace,
    .on_empty = on_empty,
};

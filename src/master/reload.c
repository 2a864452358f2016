/* SPDX-License-Identifier: MIT */
#include "master/reload.h"

#include "base/clock.h"
#include "base/log.h"
#include "config/shape.h"
#include "master/commands.h"
#include "master/fronts.h"
#include "master/instances.h"
#include "master/listeners.h"
#include "master/logs.h"
#include "master/marker.h"
#include "master/notify.h"
#include "master/retired.h"
#include "master/spool.h"
#include "pool/spawn.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ACCEPT_MS = 30000, /* a front that has not begun to accept by then does not */
    ROOM_MS = 60000,   /* for a former front to end */
    ROOM_LOOK_MS = 100,
    RELEASE_MS = 10000 /* for former fronts to close their sockets */
};

/* Somebody who waits for the outcome. */
struct reload_call {
    struct list link;
    struct control_call *call;
};

static void go_on(struct master *master);

/* ---- The outcome ---- */

static void answer_all(struct list *calls, bool ok, struct span text)
{
    list_for_each_safe (link, calls) {
        struct reload_call *waiting = CONTAINER_OF(link, struct reload_call, link);
        list_remove(&waiting->link);
        control_answer(waiting->call, ok, text, false);
        free(waiting);
    }
}

/* It is over: whoever asked hears the text, and the next one may begin. */
static void end(struct master *master, bool ok, const struct buf *text)
{
    struct master_reload *reload = &master->reload;
    struct edition *edition = reload->edition;

    timer_stop(&reload->timer);
    reload->edition = NULL;
    reload->entry = -1;
    reload->taken = false;
    edition_unref(edition);
    answer_all(&reload->calls, ok, buf_span(text));
    notify_changing(master, false);
    reload_begin_asked(master);
}

static void add_lines(struct buf *text, const struct faults *faults)
{
    char line[2048];

    for (size_t i = 0; i < faults->size; i++) {
        (void)fault_format(&faults->items[i], line, sizeof line);
        (void)buf_printf(text, "%s\n", line);
    }
}

/* A front that was forked for it serves nobody yet. */
static void kill_front(struct master *master)
{
    struct master_reload *reload = &master->reload;

    if (reload->entry >= 0 && master->fronts[reload->entry].pid &&
        master->fronts[reload->entry].edition == reload->edition)
        (void)spawn_signal(master->fronts[reload->entry].pid, SIGKILL);
}

static void fail(struct master *master, const struct faults *faults)
{
    struct buf text = {.size = 0};
    char line[2048];

    for (size_t i = 0; i < faults->size; i++) {
        (void)fault_format(&faults->items[i], line, sizeof line);
        log_error("reload: %s", line);
    }
    log_error("reload failed: nothing has changed");
    add_lines(&text, faults);
    (void)buf_append(&text, span_of("nothing has changed\n"));
    if (!master->reload.taken)
        kill_front(master);
    end(master, false, &text);
    buf_done(&text);
}

static void fail_with(struct master *master, const char *key, const char *reason)
{
    struct faults faults = {.size = 0};

    faults_add(&faults, NULL, 0, 0, key, "%s", reason);
    fail(master, &faults);
    faults_done(&faults);
}

static void succeed(struct master *master)
{
    struct buf text = {.size = 0};

    add_lines(&text, &master->config->warnings);
    (void)buf_printf(&text, "reloaded: generation %u\n", master->edition->number);
    log_info("reloaded: generation %u", master->edition->number);
    end(master, true, &text);
    buf_done(&text);
}

/* ---- Taking over ---- */

static void log_warnings(const struct config *config)
{
    char line[2048];

    for (size_t i = 0; i < config->warnings.size; i++) {
        (void)fault_format(&config->warnings.items[i], line, sizeof line);
        log_warn("%s", line);
    }
}

/* Who waits for the restart of an instance that goes will not hear of it from there. */
static void end_restarts(const struct edition *former, const struct edition *fresh)
{
    for (uint32_t i = 0; i < former->pool_size; i++)
        if (edition_find_pool(fresh, former->pools[i]) < 0)
            commands_restarted(former->pools[i], UINT32_MAX, "a reload has replaced the pool");
}

static void take_over(struct master *master, struct edition *fresh)
{
    struct edition *former = edition_ref(master->edition);

    master->reload.taken = true;
    edition_set(master, fresh);
    for (uint32_t i = 0; i < fresh->pool_size; i++)
        instances_change(fresh->pools[i], fresh, i);
    log_to(fresh->log_fd);
    log_warnings(fresh->config);
    logs_tell_fronts(master);
    listeners_change(former, fresh);
    retired_begin(master, fresh);
    end_restarts(former, fresh);
    marker_start(master);
    edition_unref(former);
}

static void finish_when_released(struct master *master)
{
    if (retired_are_released(master))
        succeed(master);
}

/* ---- The front ---- */

static void on_due(struct timer *timer);

static void wait_at_most(struct master *master, uint64_t look_ms, uint64_t limit_ms)
{
    struct master_reload *reload = &master->reload;

    if (reload->limit_ms == 0)
        reload->limit_ms = clock_ms() + limit_ms;
    timer_set(master->loop, &reload->timer, look_ms, on_due);
}

static void fork_front(struct master *master)
{
    struct master_reload *reload = &master->reload;
    struct faults faults = {.size = 0};

    if (!fronts_have_room(reload->edition)) {
        if (reload->limit_ms == 0)
            (void)retired_make_room(master);
        wait_at_most(master, ROOM_LOOK_MS, ROOM_MS);
        return;
    }
    reload->limit_ms = 0;
    reload->entry = fronts_start(reload->edition, &faults);
    if (reload->entry < 0)
        fail(master, &faults);
    else
        wait_at_most(master, ACCEPT_MS, ACCEPT_MS);
    faults_done(&faults);
}

static void on_due(struct timer *timer)
{
    struct master *master = CONTAINER_OF(timer, struct master, reload.timer);
    struct master_reload *reload = &master->reload;

    if (reload->taken) {
        log_warn("reload: a former front does not close its sockets");
        succeed(master);
    } else if (reload->entry >= 0) {
        fail_with(master, NULL, "the new front did not begin to accept");
    } else if (clock_ms() < reload->limit_ms) {
        (void)retired_make_room(master);
        fork_front(master);
    } else {
        fail_with(master, NULL,
                  "former fronts still have requests, and there is no room for one more");
    }
}

/* ---- Pools ---- */

/* The instance that serves for this pool already, or NULL. */
static struct master_pool *find_same(const struct edition *former, const struct edition *fresh,
                                     const struct config_pool *settings)
{
    for (uint32_t i = 0; i < former->pool_size && former->loops == fresh->loops; i++) {
        const struct config_pool *its = former->config->pools[i];
        if (strcmp(its->name, settings->name) == 0 &&
            shape_is_same(former->config, its, fresh->config, settings))
            return former->pools[i];
    }
    return NULL;
}

static int add_pool(struct master *master, struct edition *fresh, struct faults *faults)
{
    uint32_t number = fresh->pool_size;
    struct master_pool *same = find_same(master->edition, fresh, fresh->config->pools[number]);
    struct master_pool *mine = same ? instances_ref(same) : instances_new(fresh, number, faults);

    if (!mine)
        return -1;
    fresh->pools[number] = mine;
    fresh->pool_size++;
    return same ? 0 : pool_start(mine->pool, faults);
}

static int add_pools(struct master *master, struct edition *fresh, struct faults *faults)
{
    uint32_t size = fresh->config->pool_size;
    int result = size ? instances_find_library(master, faults) : 0;

    while (result == 0 && fresh->pool_size < size)
        result = add_pool(master, fresh, faults);
    return result;
}

/* Whether all new ones have come to something; a failure has been handled. */
static bool are_settled(struct master *master)
{
    const struct edition *fresh = master->reload.edition;

    for (uint32_t i = 0; i < fresh->pool_size; i++) {
        const struct master_pool *mine = fresh->pools[i];
        if (edition_find_pool(master->edition, mine) >= 0)
            continue;
        if (mine->failed) {
            fail_with(master, fresh->config->pools[i]->name, mine->pool->error);
            return false;
        }
        if (!mine->settled)
            return false;
    }
    return true;
}

static void go_on(struct master *master)
{
    if (master->reload.entry < 0 && are_settled(master))
        fork_front(master);
}

/* ---- Beginning ---- */

static int check_spool(const struct master *master, const struct config *config,
                       struct faults *faults)
{
    const char *former = master->config->spool;
    int result;

    if (!config->spool || (former && strcmp(config->spool, former) == 0))
        return 0;
    result = spool_prepare(config->spool, &master->account);
    if (result != 0)
        faults_add(faults, NULL, 0, 0, "spool", "%s: %s", config->spool, strerror(-result));
    return result;
}

static int open_edition(struct master *master, struct edition *fresh, struct faults *faults)
{
    int result = listeners_open(fresh, faults);

    result |= logs_open(fresh, faults);
    result |= check_spool(master, fresh->config, faults);
    if (result != 0 || add_pools(master, fresh, faults) != 0)
        return -1;
    edition_finish(fresh);
    return 0;
}

static void begin(struct master *master)
{
    struct faults faults = {.size = 0};
    struct config *config = config_load(master->options, &faults);

    notify_changing(master, true);
    master->reload.limit_ms = 0;
    if (config) {
        shape_keep_fixed(config, master->config);
        master->reload.edition = edition_new(master, config);
    }
    if (!config || open_edition(master, master->reload.edition, &faults) != 0)
        fail(master, &faults);
    else
        go_on(master);
    faults_done(&faults);
}

bool reload_is_busy(const struct master *master)
{
    return master->reload.edition != NULL;
}

static void move_all(struct list *from, struct list *to)
{
    list_for_each_safe (link, from) {
        list_remove(link);
        list_push_back(to, link);
    }
}

static void on_begin(struct task *task)
{
    struct master *master = CONTAINER_OF(task, struct master, reload.task);
    struct master_reload *reload = &master->reload;

    if (!reload->asked || reload_is_busy(master) || master->phase != MASTER_RUNNING)
        return;
    reload->asked = false;
    move_all(&reload->next_calls, &reload->calls);
    log_info("reload: the configuration is read");
    begin(master);
}

/* At the end of the batch, so that whoever asked at the same time is answered by the same. */
void reload_begin_asked(struct master *master)
{
    master->reload.task.run = on_begin;
    if (master->reload.asked)
        loop_defer(master->loop, &master->reload.task);
}

void reload_ask(struct master *master, struct control_call *call)
{
    struct reload_call *waiting;

    if (master->phase >= MASTER_DELAY) {
        if (call)
            control_answer(call, false, span_of("the server is being stopped\n"), false);
        return;
    }
    if (call) {
        waiting = must_alloc(1, sizeof *waiting);
        waiting->call = call;
        list_init(&waiting->link);
        list_push_back(&master->reload.next_calls, &waiting->link);
    }
    master->reload.asked = true;
    reload_begin_asked(master);
}

/* ---- What it waits for ---- */

void reload_pool_settled(struct master_pool *pool)
{
    struct master *master = pool->master;

    if (reload_is_busy(master) && !master->reload.taken)
        go_on(master);
}

void reload_front_accepts(struct master_front *front)
{
    struct master *master = front->master;
    struct master_reload *reload = &master->reload;

    if (!reload_is_busy(master) || reload->taken || front->edition != reload->edition)
        return;
    take_over(master, reload->edition);
    reload->limit_ms = 0;
    wait_at_most(master, RELEASE_MS, RELEASE_MS);
    finish_when_released(master);
}

void reload_front_released(struct master *master)
{
    if (reload_is_busy(master) && master->reload.taken)
        finish_when_released(master);
}

void reload_front_ended(struct master *master, const struct edition *edition)
{
    struct master_reload *reload = &master->reload;

    if (!reload_is_busy(master))
        return;
    if (reload->taken)
        finish_when_released(master);
    else if (reload->entry >= 0 && edition == reload->edition)
        fail_with(master, NULL, "the new front ended before it took connections");
    else if (reload->entry < 0)
        go_on(master);
}

void reload_abandon(struct master *master)
{
    struct master_reload *reload = &master->reload;
    struct span text = span_of("the server was stopped meanwhile\n");
    struct edition *edition = reload->edition;

    timer_stop(&reload->timer);
    task_cancel(&reload->task);
    reload->asked = false;
    reload->edition = NULL;
    edition_unref(edition);
    answer_all(&reload->calls, false, text);
    answer_all(&reload->next_calls, false, text);
}

/* SPDX-License-Identifier: MIT */
#include "master/phase.h"

#include "base/clock.h"
#include "base/log.h"
#include "board/slot.h"
#include "master/banner.h"
#include "master/daemon.h"
#include "master/fronts.h"
#include "master/listeners.h"
#include "master/notify.h"
#include "master/reload.h"
#include "master/upgrade.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    FRONT_MARGIN_MS = 2000,  /* a front that should have drained has this long to end */
    RETIRE_GRACE_MS = 10000, /* workers without requests run their at_exit handlers */
    CUT_GRACE_MS = 1000,     /* the same, when requests have been cut already */
    KILLED_MS = 5000         /* processes that were killed are waited for */
};

static void on_stop_due(struct timer *timer);

static void wait_at_most(struct master *master, uint64_t delay_ms)
{
    timer_set(master->loop, &master->stop_timer, delay_ms, on_stop_due);
}

static void end(struct master *master)
{
    if (master->phase == MASTER_ENDED)
        return;
    master->phase = MASTER_ENDED;
    timer_stop(&master->stop_timer);
    loop_stop(master->loop);
}

/* Of an instance, which may be one that retires already. */
static struct pool *pool_of(const struct list *link)
{
    return CONTAINER_OF(link, struct master_pool, link)->pool;
}

static bool are_pools_empty(const struct master *master)
{
    list_for_each (link, &master->instances)
        if (!pool_of(link)->told_empty)
            return false;
    return true;
}

static void end_when_gone(struct master *master)
{
    if (master->phase == MASTER_RETIRING && fronts_size(master) == 0 && are_pools_empty(master))
        end(master);
}

/* Fronts are gone, so no request is left: workers and molds leave. */
static void retire(struct master *master)
{
    uint64_t grace_ms = master->cut ? CUT_GRACE_MS : RETIRE_GRACE_MS;

    if (master->phase >= MASTER_RETIRING)
        return;
    master->phase = MASTER_RETIRING;
    notify_settle(master);
    list_for_each (link, &master->instances)
        pool_stop(pool_of(link), grace_ms);
    wait_at_most(master, grace_ms + KILLED_MS);
    end_when_gone(master);
}

/* Requests that somebody waits for now. */
static uint64_t count_requests(const struct master *master)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        count += atomic_load_explicit(&master->counters->gauges[i].answers, memory_order_relaxed);
    list_for_each (link, &master->instances) {
        const struct board *board = &pool_of(link)->instance.board;
        for (uint32_t slot = 0; slot < board->shape.slots; slot++) {
            enum slot_state state = slot_look(board, slot).state;
            count += state != SLOT_FREE && state != SLOT_DONE && state != SLOT_CANCELLED;
        }
    }
    return count;
}

static void kill_all(struct master *master)
{
    upgrade_abandon(master);
    master->at_once = true;
    master->phase = MASTER_RETIRING;
    reload_abandon(master);
    notify_stopping(master, KILLED_MS);
    fronts_kill(master);
    list_for_each (link, &master->instances)
        pool_kill(pool_of(link));
    wait_at_most(master, KILLED_MS);
    end_when_gone(master);
}

static void drain(struct master *master)
{
    const struct config_timeouts *timeouts = &master->config->timeouts;
    struct front_message message = {.kind = FRONT_DRAIN, .number = timeouts->drain_ms};

    master->phase = MASTER_DRAINING;
    notify_settle(master);
    timer_stop(&master->front_timer);
    listeners_release(master);
    fronts_tell_all(master, &message, NULL, 0);
    if (fronts_size(master) == 0)
        retire(master);
    else
        wait_at_most(master, timeouts->drain_ms + timeouts->stream_drain_ms + FRONT_MARGIN_MS);
}

/* A balancer needs a moment to see that we are not ready; until then it sends requests. */
static void delay(struct master *master)
{
    struct front_message message = {.kind = FRONT_LEAVE};

    fronts_tell_all(master, &message, NULL, 0);
    wait_at_most(master, master->config->timeouts.drain_delay_ms);
}

static void on_stop_due(struct timer *timer)
{
    struct master *master = CONTAINER_OF(timer, struct master, stop_timer);

    if (master->phase == MASTER_DELAY) {
        drain(master);
    } else if (master->phase == MASTER_DRAINING) {
        uint64_t cut = count_requests(master);
        log_error("stop: the front did not finish in time and is killed; %" PRIu64 " request%s cut",
                  cut, cut == 1 ? " is" : "s are");
        master->cut += cut;
        fronts_kill(master);
        wait_at_most(master, KILLED_MS);
        master->phase = MASTER_RETIRING;
        list_for_each (link, &master->instances)
            pool_stop(pool_of(link), CUT_GRACE_MS);
    } else if (!master->at_once) {
        kill_all(master);
    } else {
        log_error("stop: some processes do not go away; the server ends without them");
        end(master);
    }
}

/* What a graceful stop takes when every step of it uses its time up. */
static uint64_t longest_stop_ms(const struct master *master)
{
    const struct config_timeouts *timeouts = &master->config->timeouts;

    return timeouts->drain_delay_ms + timeouts->drain_ms + timeouts->stream_drain_ms +
           FRONT_MARGIN_MS + RETIRE_GRACE_MS + 2 * KILLED_MS;
}

void phase_stop(struct master *master)
{
    if (master->phase >= MASTER_DELAY) {
        phase_stop_now(master, false);
        return;
    }
    if (master->phase == MASTER_STARTING) {
        daemon_tell(&master->outcome_pipe, false, span_of("leat: stopped before it was ready\n"));
        kill_all(master);
        return;
    }
    upgrade_abandon(master);
    log_info("stop: requests under way are finished first (at most %.1f s)",
             (double)master->config->timeouts.drain_ms / 1000);
    master->phase = MASTER_DELAY;
    reload_abandon(master);
    notify_stopping(master, longest_stop_ms(master));
    list_for_each (link, &master->instances)
        pool_drain(pool_of(link));
    if (master->config->timeouts.drain_delay_ms)
        delay(master);
    else
        drain(master);
}

void phase_stop_now(struct master *master, bool is_success)
{
    if (master->phase == MASTER_ENDED || (master->at_once && master->phase == MASTER_RETIRING))
        return;
    if (!is_success && master->phase < MASTER_RETIRING)
        master->cut += count_requests(master);
    log_info("stop: at once");
    kill_all(master);
}

void phase_front_gone(struct master *master)
{
    if (fronts_size(master) > 0)
        return;
    if (master->phase == MASTER_DRAINING || master->phase == MASTER_DELAY)
        retire(master);
    else
        end_when_gone(master);
}

void phase_pool_gone(struct master *master)
{
    end_when_gone(master);
}

void phase_fail_start(struct master *master, const char *reason)
{
    struct buf text = {.size = 0};

    if (master->phase != MASTER_STARTING)
        return;
    (void)buf_printf(&text, "leat: %s\n", reason);
    master->exit_status = 1;
    if (master->config->log && *master->config->log == '/')
        log_error("start failed: %s", reason);
    daemon_tell(&master->outcome_pipe, false, buf_span(&text));
    notify_failed(master, reason);
    buf_done(&text);
    kill_all(master);
}

static void fail_pools(struct master *master)
{
    struct buf text = {.size = 0};

    for (uint32_t i = 0; i < master->pool_size; i++)
        (void)buf_printf(&text, "%spool %s: %s", i ? "\nleat: " : "",
                         master->pools[i]->pool->settings->name, master->pools[i]->pool->error);
    (void)buf_append_byte(&text, '\0');
    phase_fail_start(master, buf_span(&text).data);
    buf_done(&text);
}

/* Others serve; whoever started the server hears of those that do not, also without a banner. */
static void name_failed(const struct master *master, struct buf *out)
{
    for (uint32_t i = 0; i < master->pool_size; i++) {
        const struct pool *pool = master->pools[i]->pool;
        if (!master->pools[i]->failed)
            continue;
        log_error("pool=%s does not start: %s; it is tried again, the others serve",
                  pool->settings->name, pool->error);
        if (master->config->quiet)
            (void)buf_printf(out, "leat: pool %s does not start, is tried again: %s\n",
                             pool->settings->name, pool->error);
    }
}

static void become_ready(struct master *master)
{
    double seconds = (double)(clock_ms() - master->started_ms) / 1000;
    struct buf text = {.size = 0};

    master->phase = MASTER_RUNNING;
    log_info("ready: PID %d, started in %.1f s", (int)getpid(), seconds);
    if (!master->config->quiet)
        banner_write(master, seconds, &text);
    name_failed(master, &text);
    daemon_tell(&master->outcome_pipe, true, buf_span(&text));
    notify_ready(master);
    buf_done(&text);
    reload_begin_asked(master);
}

void phase_check_ready(struct master *master)
{
    uint32_t settled = 0;
    uint32_t failed = 0;

    if (master->phase != MASTER_STARTING)
        return;
    for (uint32_t i = 0; i < master->pool_size; i++) {
        settled += master->pools[i]->settled;
        failed += master->pools[i]->failed;
    }
    if (settled < master->pool_size)
        return;
    /* With several applications one that is broken is named and retried; the others serve. */
    if (master->pool_size > 0 && failed == master->pool_size)
        fail_pools(master);
    else if (fronts_accept(master))
        become_ready(master);
}

void phase_abandon(struct master *master)
{
    if (!master->loop || !master->counters)
        return;
    kill_all(master);
    if (master->phase != MASTER_ENDED)
        loop_run(master->loop);
}

bool phase_is_ready(const struct master *master)
{
    if (master->phase != MASTER_RUNNING || !fronts_accept(master))
        return false;
    for (uint32_t i = 0; i < master->pool_size; i++) {
        const struct pool *pool = master->pools[i]->pool;
        if (pool_serving(pool) > 0 || pool->state == POOL_DOWN)
            return true;
    }
    return master->pool_size == 0;
}

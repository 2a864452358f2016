/* SPDX-License-Identifier: MIT */
#include "master/commands.h"

#include "base/log.h"
#include "master/backtraces.h"
#include "master/logs.h"
#include "master/phase.h"
#include "master/reload.h"
#include "master/report.h"
#include "master/requests.h"
#include "master/upgrade.h"

#include <inttypes.h>
#include <stdlib.h>

static void answer_text(struct control_call *call, bool ok, const char *text)
{
    control_answer(call, ok, span_of(text), false);
}

static void answer_status(struct master *master, struct control_call *call, bool json)
{
    struct buf buf = {.size = 0};
    bool ok = report_write(master, json, &buf) == 0;

    control_answer(call, ok, buf_span(&buf), false);
    buf_done(&buf);
}

static struct master_waiter *add_waiter(struct master *master, struct list *list,
                                        struct control_call *call)
{
    struct master_waiter *waiter = must_alloc(1, sizeof *waiter);

    *waiter = (struct master_waiter){.call = call};
    waiter->ticket_size = master->pool_size;
    waiter->tickets = must_alloc(master->pool_size + 1, sizeof *waiter->tickets);
    list_init(&waiter->link);
    list_push_back(list, &waiter->link);
    return waiter;
}

static void free_waiter(struct master_waiter *waiter)
{
    list_remove(&waiter->link);
    buf_done(&waiter->text);
    free(waiter->tickets);
    free(waiter);
}

static void refuse_name(const struct master *master, struct span name, struct control_call *call)
{
    struct buf text = {.size = 0};

    (void)buf_printf(&text, "there is no pool \"%.*s\"; there %s", SPAN_ARG(name),
                     master->pool_size ? "are:" : "is none");
    for (uint32_t i = 0; i < master->pool_size; i++)
        (void)buf_printf(&text, "%s%s", i ? ", " : " ", master->pools[i]->pool->settings->name);
    (void)buf_append_byte(&text, '\n');
    control_answer(call, false, buf_span(&text), false);
    buf_done(&text);
}

static void restart(struct master *master, struct span name, struct control_call *call)
{
    struct master_waiter *waiter = add_waiter(master, &master->waiters, call);
    bool found = false;

    for (uint32_t i = 0; i < master->pool_size; i++) {
        struct pool *pool = master->pools[i]->pool;
        if (name.size && !span_is(name, pool->settings->name))
            continue;
        waiter->tickets[i] = (struct master_ticket){master->pools[i], pool_restart(pool)};
        found = true;
    }
    if (found)
        return;
    free_waiter(waiter);
    if (name.size)
        refuse_name(master, name, call);
    else
        answer_text(call, true, "nothing to restart: only files are served\n");
}

void commands_restart_all(struct master *master)
{
    for (uint32_t i = 0; i < master->pool_size && master->phase == MASTER_RUNNING; i++)
        (void)pool_restart(master->pools[i]->pool);
}

static bool waits(const struct master_waiter *waiter)
{
    for (uint32_t i = 0; i < waiter->ticket_size; i++)
        if (waiter->tickets[i].pool)
            return true;
    return false;
}

/* The waiter's ticket of that pool, up to that number; or NULL. */
static struct master_ticket *find_ticket(const struct master_waiter *waiter,
                                         const struct master_pool *pool, uint32_t number)
{
    for (uint32_t i = 0; i < waiter->ticket_size; i++)
        if (waiter->tickets[i].pool == pool && waiter->tickets[i].number <= number)
            return &waiter->tickets[i];
    return NULL;
}

void commands_restarted(struct master_pool *pool, uint32_t ticket, const char *failure)
{
    struct master *master = pool->master;
    const struct pool *its = pool->pool;

    list_for_each_safe (link, &master->waiters) {
        struct master_waiter *waiter = CONTAINER_OF(link, struct master_waiter, link);
        struct master_ticket *its_ticket = find_ticket(waiter, pool, ticket);
        if (!its_ticket)
            continue;
        its_ticket->pool = NULL;
        waiter->failed |= failure != NULL;
        if (failure)
            (void)buf_printf(&waiter->text, "pool %s: restart failed, %s\n", its->settings->name,
                             failure);
        else
            (void)buf_printf(&waiter->text, "pool %s restarted: generation %u, %s\n",
                             its->settings->name, its->current->generation, its->current->release);
        if (waits(waiter))
            continue;
        control_answer(waiter->call, !waiter->failed, buf_span(&waiter->text), false);
        free_waiter(waiter);
    }
}

/* A restart that a stop overtook has failed; a stop is over. */
void commands_stopped(struct master *master)
{
    struct buf text = {.size = 0};

    backtraces_stopped(master);
    requests_end(master);
    list_for_each_safe (link, &master->waiters) {
        struct master_waiter *waiter = CONTAINER_OF(link, struct master_waiter, link);
        answer_text(waiter->call, false, "the server was stopped meanwhile\n");
        free_waiter(waiter);
    }
    if (master->cut)
        (void)buf_printf(&text, "stopped; %" PRIu64 " %s cut\n", master->cut,
                         master->cut == 1 ? "request was" : "requests were");
    else
        (void)buf_append(&text, span_of("stopped\n"));
    list_for_each_safe (link, &master->stop_calls) {
        struct master_waiter *waiter = CONTAINER_OF(link, struct master_waiter, link);
        control_answer(waiter->call, true, buf_span(&text), true);
        free_waiter(waiter);
    }
    buf_done(&text);
}

static void upgrade(struct master *master, struct span path, struct control_call *call)
{
    struct buf text = {.size = 0};

    CHECK(buf_append(&text, path) == 0 && buf_append_byte(&text, '\0') == 0);
    upgrade_ask(master, buf_span(&text).data, call);
    buf_done(&text);
}

void commands_run(void *context, enum control_command command, struct span argument,
                  struct control_call *call)
{
    struct master *master = context;

    switch (command) {
    case CONTROL_STATUS:
        answer_status(master, call, span_is(argument, "json"));
        break;
    case CONTROL_READY:
        answer_text(call, phase_is_ready(master),
                    phase_is_ready(master) ? "ready\n" : "not ready\n");
        break;
    case CONTROL_REQUESTS:
        requests_list(master, span_is(argument, "json"), call);
        break;
    case CONTROL_REQUEST_KILL:
        requests_kill(master, argument, call);
        break;
    case CONTROL_STOP:
        (void)add_waiter(master, &master->stop_calls, call);
        if (master->phase < MASTER_DELAY)
            phase_stop(master);
        break;
    case CONTROL_STOP_NOW:
        (void)add_waiter(master, &master->stop_calls, call);
        phase_stop_now(master, false);
        break;
    case CONTROL_RESTART:
        if (master->phase >= MASTER_DELAY)
            answer_text(call, false, "the server is being stopped\n");
        else
            restart(master, argument, call);
        break;
    case CONTROL_BACKTRACE:
        backtraces_ask(master, argument, call);
        break;
    case CONTROL_RELOAD:
        reload_ask(master, call);
        break;
    case CONTROL_REOPEN:
        logs_reopen(master);
        answer_text(call, true, "log files reopened\n");
        break;
    case CONTROL_UPGRADE:
        upgrade(master, argument, call);
        break;
    case CONTROL_COMMANDS:
        break;
    }
}

/* SPDX-License-Identifier: MIT */
#include "master/strays.h"

#include "base/fd.h"
#include "base/log.h"
#include "pool/spawn.h"

#include <signal.h>
#include <stdlib.h>

enum {
    GRACE_MS =
        30000, /* for requests of theirs that no front waits for any more, and at_exit handlers */
    ITEMS_MAX = 4096
};

struct stray {
    struct list link;
    pid_t pid;
    int control; /* of a mold: its end tells it to leave; else -1 */
};

static void add(struct master *master, const struct saved_in *item)
{
    struct stray *stray = must_alloc(1, sizeof *stray);

    stray->pid = (pid_t)saved_number(item, "pid", INT32_MAX, 0);
    stray->control = saved_fd(item, "control_fd");
    list_init(&stray->link);
    list_push_back(&master->strays, &stray->link);
}

void strays_add(struct master *master, const struct saved_in *pool)
{
    static const char *const kinds[] = {"mold", "worker"};

    for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++)
        for (uint32_t i = 0; i < ITEMS_MAX; i++) {
            struct saved_in item = saved_item(pool, kinds[kind], i);
            if (saved_number(&item, "pid", INT32_MAX, 0) > 0)
                add(master, &item);
        }
}

static void free_stray(struct stray *stray)
{
    list_remove(&stray->link);
    fd_close(&stray->control);
    free(stray);
}

static void tell_all(struct master *master, int signal)
{
    list_for_each (link, &master->strays) {
        struct stray *stray = CONTAINER_OF(link, struct stray, link);
        /* A mold takes no notice of TERM, but of the end of its control socket. */
        fd_close(&stray->control);
        (void)spawn_signal(stray->pid, signal);
    }
}

static void on_due(struct timer *timer)
{
    struct master *master = CONTAINER_OF(timer, struct master, stray_timer);

    log_warn("upgrade: former workers that do not leave are killed");
    tell_all(master, SIGKILL);
}

void strays_check(struct master *master)
{
    if (list_is_empty(&master->strays) || master->saved)
        return;
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid && master->fronts[i].mute)
            return;
    tell_all(master, SIGTERM);
    timer_set(master->loop, &master->stray_timer, GRACE_MS, on_due);
}

bool strays_ended(struct master *master, pid_t pid)
{
    list_for_each_safe (link, &master->strays) {
        struct stray *stray = CONTAINER_OF(link, struct stray, link);
        if (stray->pid != pid)
            continue;
        free_stray(stray);
        if (list_is_empty(&master->strays))
            timer_stop(&master->stray_timer);
        return true;
    }
    return false;
}

void strays_done(struct master *master)
{
    timer_stop(&master->stray_timer);
    list_for_each_safe (link, &master->strays)
        free_stray(CONTAINER_OF(link, struct stray, link));
}

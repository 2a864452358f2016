/* SPDX-License-Identifier: MIT */
#include "master/notify.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *variable(const struct master *master, const char *name)
{
    return environment_get(&master->environment, name);
}

static bool get_number(const struct master *master, const char *name, uint64_t *ret_value)
{
    const char *text = variable(master, name);

    return text && num_decimal(span_of(text), ret_value);
}

/* A service manager that does not listen is no reason to stop serving. */
static void tell(const struct master *master, const char *text)
{
    if (master->notify_fd >= 0)
        (void)sendto(master->notify_fd, text, strlen(text), MSG_NOSIGNAL,
                     &master->notify_address.socket.any, master->notify_address.size);
}

/* "/path", or "@name" for a name without a file. */
static bool read_address(const char *path, struct address *ret_address)
{
    struct address address = {.size = 0};
    struct sockaddr_un *local = &address.socket.local;
    size_t size = strlen(path);

    if ((*path != '/' && *path != '@') || size < 2 || size >= sizeof local->sun_path)
        return false;
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, size);
    if (*path == '@')
        local->sun_path[0] = '\0';
    address.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    *ret_address = address;
    return true;
}

/* How often it wants to hear of us: each third of its patience. */
static uint64_t read_period(const struct master *master)
{
    uint64_t patience_us;
    uint64_t pid;

    if (!get_number(master, "WATCHDOG_USEC", &patience_us) || patience_us == 0)
        return 0;
    if (get_number(master, "WATCHDOG_PID", &pid) && pid != (uint64_t)getpid())
        return 0;
    return patience_us < 3000 ? 1 : patience_us / 3000;
}

void notify_open(struct master *master)
{
    const char *path = variable(master, "NOTIFY_SOCKET");

    if (!path || !read_address(path, &master->notify_address))
        return;
    master->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (master->notify_fd >= 0)
        master->notify_period_ms = read_period(master);
}

static void on_due(struct timer *timer)
{
    struct master *master = CONTAINER_OF(timer, struct master, notify_timer);

    tell(master, "WATCHDOG=1");
    timer_set(master->loop, timer, master->notify_period_ms, on_due);
}

void notify_start_watchdog(struct master *master)
{
    if (master->notify_period_ms)
        on_due(&master->notify_timer);
}

void notify_ready(struct master *master)
{
    char text[64];

    (void)snprintf(text, sizeof text, "READY=1\nMAINPID=%d", (int)getpid());
    tell(master, text);
    if (master->notify_period_ms)
        on_due(&master->notify_timer);
}

static bool is_restarting(const struct master *master)
{
    for (uint32_t i = 0; i < master->pool_size; i++)
        if (master->pools[i].pool->state == POOL_RESTARTING)
            return true;
    return false;
}

void notify_settle(struct master *master)
{
    char text[64];

    if (master->phase != MASTER_RUNNING || is_restarting(master) == master->notified_restart)
        return;
    master->notified_restart = !master->notified_restart;
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_us());
    tell(master, master->notified_restart ? text : "READY=1");
}

void notify_stopping(struct master *master)
{
    if (master->notified_stop)
        return;
    master->notified_stop = true;
    tell(master, "STOPPING=1");
}

void notify_close(struct master *master)
{
    timer_stop(&master->notify_timer);
    fd_close(&master->notify_fd);
}

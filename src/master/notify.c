/* SPDX-License-Identifier: MIT */
#include "master/notify.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/title.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { START_MARGIN_MS = 10000, UNLIMITED_START_MS = 24 * 3600 * 1000 };

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

static bool is_restarting(const struct master *master)
{
    for (uint32_t i = 0; i < master->pool_size; i++)
        if (master->pools[i]->pool && master->pools[i]->pool->state == POOL_RESTARTING)
            return true;
    return false;
}

static const char *phase_word(const struct master *master)
{
    switch (master->phase) {
    case MASTER_STARTING:
        return "starting";
    case MASTER_RUNNING:
        if (is_restarting(master))
            return "restarting";
        return master->notify_changes ? "reloading" : "serving";
    case MASTER_DELAY:
        return "leaving";
    case MASTER_DRAINING:
        return "draining";
    case MASTER_RETIRING:
    case MASTER_ENDED:
        break;
    }
    return "stopping";
}

/* "serving: shop up, blog crashing (no database)". */
static void describe(const struct master *master, char *out, size_t room)
{
    int size = snprintf(out, room, "%s", phase_word(master));

    for (uint32_t i = 0; i < master->pool_size; i++) {
        const struct pool *pool = master->pools[i]->pool;
        if (!pool || size < 0 || (size_t)size >= room)
            continue;
        size += snprintf(out + size, room - (size_t)size, "%s %s %s", i ? "," : ":",
                         pool->settings->name, pool_state_word(pool->state));
        if (pool->error[0] && (size_t)size < room)
            size += snprintf(out + size, room - (size_t)size, " (%.120s)", pool->error);
    }
    /* A datagram's lines are its variables. */
    for (char *end = strchr(out, '\n'); end; end = strchr(end, '\n'))
        *end = ' ';
}

/* `ps` shows who serves what, and how it is; STATUS follows in the same datagram as other news, or in one
 * of its own when only it has changed. */
static void show(struct master *master, const char *news)
{
    char words[NOTIFY_STATUS_BYTES];
    char text[NOTIFY_STATUS_BYTES + 1024];

    describe(master, words, sizeof words);
    if (!*news && strcmp(words, master->notified_status) == 0)
        return;
    memcpy(master->notified_status, words, sizeof words);
    (void)snprintf(text, sizeof text, "leat: master %s (%s) %s", master->config->folder,
                   master->config->environment, phase_word(master));
    title_set(text);
    (void)snprintf(text, sizeof text, "%sSTATUS=%s", news, words);
    tell(master, text);
}

/* The longest time that an application may take to load. */
static uint64_t start_patience_ms(const struct master *master)
{
    uint64_t longest_ms = 0;

    for (uint32_t i = 0; i < master->config->pool_size; i++) {
        uint64_t limit_ms = master->config->pools[i]->start_timeout_ms;
        if (limit_ms == 0)
            limit_ms = UNLIMITED_START_MS;
        if (limit_ms > longest_ms)
            longest_ms = limit_ms;
    }
    return longest_ms + START_MARGIN_MS;
}

void notify_start(struct master *master)
{
    char text[64];

    (void)snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%" PRIu64 "\n",
                   start_patience_ms(master) * 1000);
    show(master, text);
    if (master->notify_period_ms)
        on_due(&master->notify_timer);
}

void notify_failed(struct master *master, const char *reason)
{
    char text[NOTIFY_STATUS_BYTES];

    (void)snprintf(text, sizeof text, "STATUS=start failed: %s", reason);
    text[strcspn(text, "\n")] = '\0';
    tell(master, text);
}

void notify_ready(struct master *master)
{
    char text[64];

    (void)snprintf(text, sizeof text, "READY=1\nMAINPID=%d\n", (int)getpid());
    show(master, text);
    if (master->notify_period_ms)
        on_due(&master->notify_timer);
}

void notify_changing(struct master *master, bool begins)
{
    CHECK(begins || master->notify_changes > 0);
    master->notify_changes += begins ? 1 : -1;
    notify_settle(master);
}

void notify_settle(struct master *master)
{
    bool is_changing = is_restarting(master) || master->notify_changes > 0;
    char text[64];

    if (master->phase != MASTER_RUNNING || is_changing == master->notified_change) {
        show(master, "");
        return;
    }
    master->notified_change = is_changing;
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n", clock_us());
    show(master, is_changing ? text : "READY=1\n");
}

void notify_stopping(struct master *master, uint64_t longest_ms)
{
    char text[64];

    if (master->notified_stop)
        return;
    master->notified_stop = true;
    (void)snprintf(text, sizeof text, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64 "\n",
                   longest_ms * 1000);
    show(master, text);
}

void notify_close(struct master *master)
{
    timer_stop(&master->notify_timer);
    fd_close(&master->notify_fd);
}

/* SPDX-License-Identifier: MIT */
#include "master/banner.h"

#include "base/version.h"
#include "master/edition.h"

#include <stdlib.h>
#include <unistd.h>

static bool is_in_container(void)
{
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           getenv("container") != NULL;
}

static bool is_loopback(const struct address *address)
{
    if (address->socket.any.sa_family == AF_INET)
        return (ntohl(address->socket.ip4.sin_addr.s_addr) >> 24) == 127;
    return address->socket.any.sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&address->socket.ip6.sin6_addr);
}

static void write_listeners(const struct master *master, struct buf *out)
{
    const struct edition *edition = master->edition;
    const char *last = "";

    for (uint32_t i = 0; i < edition->listener_size; i++) {
        const struct front_listener *listener = &edition->front_listeners[i];
        char text[CONTROL_PATH + 64];
        const char *shown = listener->config->shown;
        if ((int)i == edition->admin_listener)
            continue;
        (void)address_format(&listener->address, text, sizeof text);
        /* localhost is two addresses and one URL. */
        if (shown && strcmp(shown, last) == 0)
            continue;
        last = shown ? shown : "";
        (void)buf_printf(out, "  %s\n", shown ? shown : text);
        if (is_in_container() && is_loopback(&listener->address))
            (void)buf_append(out,
                             span_of("    reachable only from inside this container; -b 0.0.0.0 "
                                     "opens it\n"));
    }
    if (edition->admin_listener >= 0)
        (void)buf_printf(out, "  admin %s\n", edition->admin_config.shown);
}

static void write_pool(const struct pool *pool, struct buf *out)
{
    const struct mold *mold = pool->current;
    uint32_t workers = pool_wanted(pool);
    uint32_t threads = pool->instance.board.shape.threads;

    if (workers)
        (void)buf_printf(out, "  pool %s: %u worker%s", pool->settings->name, workers,
                         workers == 1 ? "" : "s");
    else
        (void)buf_printf(out, "  pool %s: workers on demand", pool->settings->name);
    (void)buf_printf(out, ", %u thread%s each", threads, threads == 1 ? "" : "s");
    if (mold && mold->ruby.path)
        (void)buf_printf(out, ", %s %s", mold->ruby.path, mold->ruby.version);
    if (mold && mold->release)
        (void)buf_printf(out, ", %s", mold->release);
    (void)buf_append_byte(out, '\n');
    if (pool->error[0])
        (void)buf_printf(out, "    does not start, is tried again: %s\n", pool->error);
}

void banner_write(const struct master *master, double seconds, struct buf *out)
{
    (void)buf_printf(out, "leat " LEAT_VERSION " (%s), PID %d\n", master->config->environment,
                     (int)getpid());
    write_listeners(master, out);
    for (uint32_t i = 0; i < master->pool_size; i++)
        write_pool(master->pools[i]->pool, out);
    (void)buf_printf(out, "  ready in %.1f s%s\n", seconds,
                     master->config->daemonize ? "" : "; Ctrl-C stops it");
}

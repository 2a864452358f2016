/* SPDX-License-Identifier: MIT */
#include "master/handover.h"

#include "base/version.h"
#include "config/shape.h"
#include "master/instances.h"
#include "pool/adopt.h"

#include <limits.h>
#include <unistd.h>

static void save_process(const struct master *master, const struct saved_out *out)
{
    saved_put(out, "version", LEAT_VERSION);
    saved_put_number(out, "pid", (uint64_t)getpid());
    saved_put(out, "cwd", master->cwd);
    saved_put_number(out, "daemonize", master->config->daemonize);
    saved_put(out, "library_version", master->library_version);
    saved_put_number(out, "edition", master->edition->number);
    saved_put_number(out, "instances", master->instance_size);
    saved_put_number(out, "started_ms", master->started_ms);
    saved_put_number(out, "files_soft", master->files.rlim_cur);
    saved_put_number(out, "files_hard", master->files.rlim_max);
    saved_put_number(out, "hup_ignored", master->hup_ignored);
    saved_put_fd(out, "death_read_fd", master->death_pipe[0]);
    saved_put_fd(out, "death_write_fd", master->death_pipe[1]);
}

/* An open file and the name under which it was opened. */
static void save_file(const struct saved_out *out, const char *name, const char *path, int fd)
{
    struct saved_out file = saved_out_section(out, name);

    if (fd == -1)
        return;
    saved_put(&file, "path", path);
    saved_put_fd(&file, "fd", fd);
}

static void save_listeners(const struct master *master, const struct saved_out *out)
{
    char address[PATH_MAX + 16];
    uint32_t number = 0;

    list_for_each (link, &master->listeners) {
        const struct master_listener *listener = CONTAINER_OF(link, struct master_listener, link);
        struct saved_out item = saved_out_item(out, "listener", number++);
        (void)address_format(&listener->address, address, sizeof address);
        saved_put(&item, "address", address);
        saved_put_fd(&item, "fd", listener->fd);
        saved_put_number(&item, "inherited", listener->inherited);
        saved_put_number(&item, "device", listener->device);
        saved_put_number(&item, "inode", listener->inode);
    }
}

static void save_place(const struct master *master, const struct saved_out *out)
{
    saved_put(out, "run", master->run);
    saved_put(out, "path", master->socket_path);
    saved_put_fd(out, "fd", master->control_fd);
    for (uint32_t i = 0; i < ARRAY_LEN(master->links); i++) {
        struct saved_out link = saved_out_item(out, "link", i);
        saved_put(&link, "path", master->links[i]);
    }
    control_save(master->control, out);
}

static void save_names(const struct master_names *names, const struct saved_out *out,
                       const char *name)
{
    for (uint32_t i = 0; i < names->size; i++) {
        struct saved_out item = saved_out_item(out, name, i);
        saved_put(&item, "name", names->items[i]);
    }
}

static void save_counters(const struct master *master, const struct saved_out *out)
{
    saved_put_number(out, "bytes", sizeof *master->counters);
    saved_put_fd(out, "fd", master->counters_fd);
    save_names(&master->counted_pools, out, "pool");
    save_names(&master->counted_sites, out, "site");
}

/* The number of an instance in what is written. */
static uint32_t number_of(const struct master *master, const struct master_pool *wanted)
{
    uint32_t number = 0;

    list_for_each (link, &master->instances) {
        if (CONTAINER_OF(link, struct master_pool, link) == wanted)
            break;
        number++;
    }
    return number;
}

static void save_instances(const struct master *master, const struct saved_out *out)
{
    uint32_t number = 0;

    list_for_each (link, &master->instances) {
        const struct master_pool *mine = CONTAINER_OF(link, struct master_pool, link);
        struct saved_out item = saved_out_item(out, "pool", number++);
        saved_put_number(&item, "is_current", edition_find_pool(master->edition, mine) >= 0);
        saved_put(&item, "runtime", mine->runtime);
        saved_put_number(&item, "marker", mine->marker);
        saved_put_number(&item, "failed", mine->failed);
        saved_put_number(&item, "shape",
                         instances_shape(mine->pool->config, mine->pool->settings,
                                         mine->pool->instance.board.shape.loops));
        save_file(&item, "log", shape_log(mine->pool->config, mine->pool->settings), mine->log_fd);
        pool_save(mine->pool, &item);
    }
}

/* The number of a socket in what is written. */
static uint32_t number_of_listener(const struct master *master,
                                   const struct master_listener *wanted)
{
    uint32_t number = 0;

    list_for_each (link, &master->listeners) {
        if (CONTAINER_OF(link, struct master_listener, link) == wanted)
            break;
        number++;
    }
    return number;
}

/* A front names pools and sockets by their place in its own edition. */
static void save_front(const struct master_front *front, const struct saved_out *out)
{
    const struct edition *edition = front->edition;

    saved_put_number(out, "pid", (uint64_t)front->pid);
    saved_put_fd(out, "channel_fd", front->channel);
    saved_put_number(out, "accepting", front->accepting);
    saved_put_number(out, "retiring", front->retiring);
    saved_put_number(out, "released", front->released);
    saved_put_number(out, "ending", front->ending);
    saved_put_number(out, "started_ms", front->started_ms);
    for (uint32_t i = 0; i < edition->pool_size; i++) {
        struct saved_out item = saved_out_item(out, "pool", i);
        saved_put_number(&item, "number", number_of(front->master, edition->pools[i]));
    }
    for (uint32_t i = 0; i < edition->listener_size; i++) {
        struct saved_out item = saved_out_item(out, "listener", i);
        saved_put_number(&item, "number", number_of_listener(front->master, edition->listeners[i]));
    }
}

static void save_fronts(const struct master *master, const struct saved_out *out)
{
    saved_put_number(out, "dialect", front_message_dialect());
    for (uint32_t i = 0; i < BOARD_FRONTS; i++) {
        struct saved_out item = saved_out_item(out, "front", i);
        if (master->fronts[i].pid)
            save_front(&master->fronts[i], &item);
    }
}

void handover_write(const struct master *master, struct saved_text *text)
{
    struct saved_out out = saved_begin(text);
    struct saved_out control = saved_out_section(&out, "control");
    struct saved_out counters = saved_out_section(&out, "counters");

    save_process(master, &out);
    save_file(&out, "pid_file", master->pidfile.path, master->pidfile.fd);
    save_file(&out, "log", master->config->log, master->edition->log_fd);
    save_file(&out, "access_log", master->config->access_log.file, master->edition->access_log_fd);
    save_listeners(master, &out);
    save_place(master, &control);
    save_counters(master, &counters);
    save_instances(master, &out);
    save_fronts(master, &out);
}

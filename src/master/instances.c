/* SPDX-License-Identifier: MIT */
#include "master/instances.h"

#include "base/fd.h"
#include "config/shape.h"
#include "master/files.h"
#include "master/inbox.h"
#include "master/marker.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A retired one has no request left: its workers run their at_exit handlers. */
enum { RETIRE_GRACE_MS = 10000 };

static char *find_binary(void)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);

    if (size <= 0)
        return must_copy("leat");
    path[size] = '\0';
    return must_copy(path);
}

int instances_find_library(struct master *master, struct faults *faults)
{
    char *binary;

    if (master->library)
        return 0;
    binary = find_binary();
    master->library =
        ruby_find_library(environment_get(&master->environment, "LEAT_LIB"), binary, faults);
    free(binary);
    return master->library ? 0 : -1;
}

static int open_log(struct master_pool *mine, const struct config *config,
                    const struct config_pool *settings, struct faults *faults)
{
    const char *path = shape_log(config, settings);
    int fd = path ? files_open_log(path, &mine->master->account) : -1;

    if (path && fd < 0) {
        faults_add(faults, NULL, 0, 0, "log", "%s: %s", path, strerror(-fd));
        return -1;
    }
    mine->log_fd = fd;
    return 0;
}

static int name_runtime(struct master_pool *mine, struct faults *faults)
{
    struct master *master = mine->master;
    int size = snprintf(mine->runtime, sizeof mine->runtime, "%s/%d-%u", master->run, (int)getpid(),
                        master->instance_size++);

    if (size < (int)sizeof mine->runtime)
        return 0;
    faults_add(faults, NULL, 0, 0, NULL, "the path %s is too long for sockets", master->run);
    return -1;
}

/* The process that was handed over has loaded the application of the first pool, once. */
static void take_handed(struct master *master, struct pool_options *options)
{
    options->handed_pid = master->handed_pid;
    options->handed_control = master->handed_control;
    master->handed_pid = 0;
    master->handed_control = -1;
}

/* The workers of a changed pool are numbered on. */
static uint32_t find_generation(const struct master *master, const char *name)
{
    for (uint32_t i = 0; i < master->pool_size; i++)
        if (strcmp(master->pools[i]->pool->settings->name, name) == 0)
            return master->pools[i]->pool->generation;
    return 0;
}

static struct pool *make_pool(struct master_pool *mine, const struct edition *edition,
                              uint32_t number, struct faults *faults)
{
    struct master *master = mine->master;
    struct pool_options options = {
        .loop = master->loop,
        .config = edition->config,
        .settings = edition->config->pools[number],
        .loops = edition->loops,
        .runtime = mine->runtime,
        .library = master->library,
        .environ = master->environment.items,
        .death_pipe = master->death_pipe[0],
        .log_fd = mine->log_fd,
        .files = &master->files,
        .host = &inbox_host,
        .context = mine,
        .generation = find_generation(master, edition->config->pools[number]->name),
        .budget = &master->budget,
        .handed_control = -1};

    if (number == 0 && master->handed_pid)
        take_handed(master, &options);
    return pool_new(&options, faults);
}

static void free_instance(struct master_pool *mine)
{
    list_remove(&mine->link);
    pool_free(mine->pool);
    fd_close(&mine->log_fd);
    edition_release_config(mine->held);
    free(mine);
}

struct master_pool *instances_new(struct edition *edition, uint32_t number, struct faults *faults)
{
    struct master *master = edition->master;
    struct master_pool *mine = must_alloc(1, sizeof *mine);
    const struct config *config = edition->config;

    *mine = (struct master_pool){.master = master, .refs = 1, .log_fd = -1};
    mine->held = edition_hold_config(edition->held);
    list_init(&mine->link);
    list_push_back(&master->instances, &mine->link);
    if (open_log(mine, config, config->pools[number], faults) == 0 &&
        name_runtime(mine, faults) == 0)
        mine->pool = make_pool(mine, edition, number, faults);
    if (!mine->pool) {
        free_instance(mine);
        return NULL;
    }
    marker_note(mine);
    return mine;
}

void instances_change(struct master_pool *mine, const struct edition *edition, uint32_t number)
{
    struct edition_config *former = mine->held;

    mine->held = edition_hold_config(edition->held);
    pool_change(mine->pool, edition->config, edition->config->pools[number]);
    edition_release_config(former);
}

struct master_pool *instances_ref(struct master_pool *mine)
{
    mine->refs++;
    return mine;
}

void instances_unref(struct master_pool *mine)
{
    if (!mine || --mine->refs > 0 || mine->master->phase == MASTER_ENDED)
        return;
    mine->retiring = true;
    pool_stop(mine->pool, RETIRE_GRACE_MS);
}

void instances_count(struct master_pool *mine)
{
    if (mine->counted < FRONT_COUNTED_POOLS)
        mine->pool->options.exit_counts = mine->master->counters->pools[mine->counted].exits;
}

static void on_sweep(struct task *task)
{
    struct master *master = CONTAINER_OF(task, struct master, sweep_task);

    list_for_each_safe (link, &master->instances) {
        struct master_pool *mine = CONTAINER_OF(link, struct master_pool, link);
        if (mine->retiring && mine->pool->told_empty)
            free_instance(mine);
    }
}

void instances_empty(struct master_pool *mine)
{
    struct master *master = mine->master;

    if (!mine->retiring)
        return;
    master->sweep_task.run = on_sweep;
    loop_defer(master->loop, &master->sweep_task);
}

void instances_done(struct master *master)
{
    task_cancel(&master->sweep_task);
    list_for_each_safe (link, &master->instances)
        free_instance(CONTAINER_OF(link, struct master_pool, link));
}

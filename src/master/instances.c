/* SPDX-License-Identifier: MIT */
#include "master/instances.h"

#include "base/fd.h"
#include "config/shape.h"
#include "master/binary.h"
#include "master/files.h"
#include "master/inbox.h"
#include "master/marker.h"
#include "pool/adopt.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A retired one has no request left: its workers run their at_exit handlers. */
enum { RETIRE_GRACE_MS = 10000 };

int instances_find_library(struct master *master, struct faults *faults)
{
    char *binary;

    if (master->library)
        return 0;
    binary = binary_find(NULL, NULL, NULL);
    master->library =
        ruby_find_library(environment_get(&master->environment, "LEAT_LIB"), binary, faults);
    free(binary);
    if (!master->library)
        return -1;
    master->library_version = ruby_library_version(master->library);
    return 0;
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

static struct pool_options make_options(struct master_pool *mine, const struct edition *edition,
                                        const struct config_pool *settings)
{
    struct master *master = mine->master;

    return (struct pool_options){.loop = master->loop,
                                 .config = edition->config,
                                 .settings = settings,
                                 .loops = edition->loops,
                                 .runtime = mine->runtime,
                                 .library = master->library,
                                 .environ = master->environment.items,
                                 .death_pipe = master->death_pipe[0],
                                 .log_fd = mine->log_fd,
                                 .files = &master->files,
                                 .host = &inbox_host,
                                 .context = mine,
                                 .generation = find_generation(master, settings->name),
                                 .budget = &master->budget,
                                 .handed_control = -1};
}

static struct pool *make_pool(struct master_pool *mine, const struct edition *edition,
                              uint32_t number, struct faults *faults)
{
    struct master *master = mine->master;
    struct pool_options options = make_options(mine, edition, edition->config->pools[number]);

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

static struct master_pool *begin(struct edition *edition)
{
    struct master *master = edition->master;
    struct master_pool *mine = must_alloc(1, sizeof *mine);

    *mine = (struct master_pool){.master = master, .refs = 1, .log_fd = -1};
    mine->held = edition_hold_config(edition->held);
    list_init(&mine->link);
    list_push_back(&master->instances, &mine->link);
    return mine;
}

struct master_pool *instances_new(struct edition *edition, uint32_t number, struct faults *faults)
{
    struct master_pool *mine = begin(edition);
    const struct config *config = edition->config;

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

/* The file goes on if it still has that name. */
static int adopt_log(struct master_pool *mine, const struct edition *edition,
                     const struct config_pool *settings, const struct saved_in *in,
                     struct faults *faults)
{
    const char *path = shape_log(edition->config, settings);
    struct saved_in log = saved_section(in, "log");
    const char *former = saved_get(&log, "path");

    if (path && former && strcmp(path, former) == 0)
        mine->log_fd = saved_fd(&log, "fd");
    return mine->log_fd >= 0 ? 0 : open_log(mine, edition->config, settings, faults);
}

struct master_pool *instances_adopt(struct edition *edition, const struct config_pool *settings,
                                    const struct saved_in *in, struct faults *faults)
{
    struct master_pool *mine = begin(edition);
    const char *runtime = saved_get(in, "runtime");
    struct pool_options options;

    (void)snprintf(mine->runtime, sizeof mine->runtime, "%s", runtime ? runtime : "");
    mine->marker = saved_number(in, "marker", UINT64_MAX, 0);
    mine->settled = true;
    mine->failed = saved_number(in, "failed", 1, 0) == 1;
    if (adopt_log(mine, edition, settings, in, faults) == 0) {
        options = make_options(mine, edition, settings);
        mine->pool = pool_adopt(&options, in, faults);
    }
    if (mine->pool)
        return mine;
    free_instance(mine);
    return NULL;
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

/* FNV-1a; a missing text differs from an empty one. */
static uint64_t mix(uint64_t value, const char *text)
{
    value = (value ^ (text ? 1 : 2)) * UINT64_C(0x100000001b3);
    for (; text && *text; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return value;
}

static uint64_t mix_number(uint64_t value, uint64_t number)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%" PRIu64, number);
    return mix(value, digits);
}

static uint64_t mix_user(uint64_t value, const struct config *config,
                         const struct config_pool *settings)
{
    value = mix(value, settings->user ? settings->user : config->user);
    return mix(value, settings->group ? settings->group : config->group);
}

uint64_t instances_shape(const struct config *config, const struct config_pool *settings,
                         uint32_t loops)
{
    const char *const texts[] = {settings->app,
                                 settings->rackup,
                                 settings->ruby,
                                 settings->env_file,
                                 shape_log(config, settings),
                                 config->environment};
    const uint64_t numbers[] = {loops,
                                settings->workers_max,
                                settings->threads,
                                settings->queue_length,
                                settings->preload,
                                settings->kind,
                                settings->malloc.allocator,
                                settings->malloc.arenas,
                                config->development,
                                config->verbose,
                                config->timeouts.stream_drain_ms,
                                settings->umask,
                                config->limits.target,
                                config->limits.header,
                                config->limits.headers};
    uint64_t value = mix_user(UINT64_C(0xcbf29ce484222325), config, settings);

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        value = mix(value, texts[i]);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        value = mix_number(value, numbers[i]);
    for (uint32_t i = 0; i < settings->env_size; i++)
        value = mix(mix(value, settings->env[i].name), settings->env[i].value);
    return value;
}

/* SPDX-License-Identifier: MIT */
/*
 * The world of a configuration test: a fresh folder with the files that the test writes, an
 * environment and options of its own, and what loading them gave.
 */
#pragma once

#include "base/base.h"
#include "config/config.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
    char folder[64];
    struct config_options options;
    char *environ[16];
    unsigned variables;
    struct faults faults;
    struct config *config;
    char text[4096]; /* of the last fault */
};

static inline void world_open(struct world *world)
{
    *world = (struct world){.folder = "/tmp/leat-config-XXXXXX"};
    CHECK(mkdtemp(world->folder));
    world->options.cwd = world->folder;
    world->options.environ = world->environ;
}

/* Writes a file below the folder and makes the folders on its way; a path that ends in a slash is a
 * folder only. */
static inline void world_write(struct world *world, const char *path, const char *text)
{
    char full[256];
    FILE *file;

    (void)snprintf(full, sizeof(full), "%s/%s", world->folder, path);
    for (char *slash = full + strlen(world->folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    if (full[strlen(full) - 1] == '/')
        return;
    file = fopen(full, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A folder with an application and this leat.yml (NULL = none). */
static inline void world_open_app(struct world *world, const char *yaml)
{
    world_open(world);
    world_write(world, "config.ru", "run nil\n");
    if (yaml)
        world_write(world, "leat.yml", yaml);
}

static inline void world_set(struct world *world, const char *variable)
{
    world->environ[world->variables++] = (char *)(uintptr_t)variable;
}

static inline struct config *world_load(struct world *world)
{
    faults_done(&world->faults);
    config_free(world->config);
    world->config = config_load(&world->options, &world->faults);
    return world->config;
}

/* The fault of that number as it is printed, or "". */
static inline const char *world_fault(struct world *world, size_t index)
{
    world->text[0] = '\0';
    if (index < world->faults.size)
        (void)fault_format(&world->faults.items[index], world->text, sizeof(world->text));
    return world->text;
}

/* Whether one of the faults is this text. */
static inline bool world_has_fault(struct world *world, const char *text)
{
    for (size_t i = 0; i < world->faults.size; i++)
        if (strcmp(world_fault(world, i), text) == 0)
            return true;
    return false;
}

static inline int world_remove(const char *path, const struct stat *status, int kind,
                               struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline void world_close(struct world *world)
{
    faults_done(&world->faults);
    config_free(world->config);
    CHECK(nftw(world->folder, world_remove, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

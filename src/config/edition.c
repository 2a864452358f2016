/* SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "config/bind.h"
#include "config/complete.h"
#include "config/config.h"
#include "config/folder.h"
#include "config/keep.h"
#include "config/origin.h"
#include "config/overlay.h"
#include "config/verify.h"
#include "config/yaml.h"

#include <sched.h>
#include <stdlib.h>

/* One loading: the steps share these. */
struct loading {
    struct config *config;
    const struct config_options *options;
    struct faults *faults;
    struct folder folder;
    struct bind bind;
    struct yaml *root; /* of the file, or NULL */
    struct overlay_environment environment;
};

static void find_environment(struct loading *loading, const char *from_file,
                             struct overlay_environment *ret_environment)
{
    const char *folder = loading->folder.path;
    bool is_rails =
        folder_has(folder, "config/environment.rb") || folder_has(folder, "config/application.rb");

    overlay_find_environment(&loading->config->arena, loading->options, is_rails, from_file,
                             ret_environment);
}

/* The file's path, from the options or by the names it may have; NULL = none. */
static const char *find_file(struct loading *loading)
{
    struct arena *arena = &loading->config->arena;
    const char *named = loading->options->file;
    struct overlay_environment environment;

    if (named && strcmp(named, "-") == 0)
        return NULL;
    if (named)
        return folder_join(arena, loading->options->cwd, named);
    find_environment(loading, NULL, &environment);
    return folder_find_config(arena, loading->folder.path, environment.name);
}

/* How faults name the file: as its user would. */
static const char *shown_name(const struct loading *loading, const char *path)
{
    struct span cwd = span_of(loading->options->cwd), file = span_of(path);

    if (loading->options->file)
        return loading->options->file;
    if (span_starts_with(file, cwd) && file.size > cwd.size + 1 && file.data[cwd.size] == '/')
        return path + cwd.size + 1;
    return path;
}

static void read_file(struct loading *loading)
{
    struct config *config = loading->config;
    const char *path = find_file(loading);
    struct yaml_source source = {
        .environ = loading->options->environ, .arena = &config->arena, .faults = loading->faults};
    char *text;
    size_t size;
    int error;

    if (!path)
        return;
    source.file = shown_name(loading, path);
    loading->bind.file = source.file;
    config->file = path;
    error = fd_read_file(path, YAML_BYTES_MAX, &text, &size);
    if (error) {
        faults_add(loading->faults, source.file, 0, 0, NULL, "cannot read it: %s",
                   strerror(-error));
        return;
    }
    source.text = span_make(text, size);
    loading->root = yaml_read(&source);
    free(text);
}

/* The environment decides over defaults, so it is looked up ahead of binding. */
static void decide_environment(struct loading *loading)
{
    struct config *config = loading->config;
    struct yaml *key, *node = yaml_find(loading->root, "environment", &key);

    find_environment(loading, node && !yaml_is_empty(node) ? node->text.data : NULL,
                     &loading->environment);
    config->development = strcmp(loading->environment.name, "development") == 0;
    if (loading->environment.quarrel)
        faults_add(&config->warnings, NULL, 0, 0, NULL, "%s", loading->environment.quarrel);
}

static void set_environment(struct loading *loading)
{
    struct config *config = loading->config;

    config->environment = keep_text(&config->arena, span_of(loading->environment.name));
    if (loading->environment.source)
        origin_note_source(config, "environment", loading->environment.source);
}

/* Values that depend on others or on the folder, for which the table has no default. */

static void set_pid(struct loading *loading)
{
    struct config *config = loading->config;
    const struct type_context *context = &loading->bind.types;
    const char *weaker = loading->options->default_pid;

    config->pid_named = config->pid && origin_find(config, "pid");
    if (origin_find(config, "pid"))
        return;
    if (weaker && weaker[0])
        config->pid = type_path(context, span_of(weaker));
    else if (folder_has_folder(config->folder, "tmp"))
        config->pid = type_path(context, span_of("tmp/pids/leat.pid"));
}

static void set_log(struct loading *loading)
{
    struct config *config = loading->config;

    if (!config->daemonize || origin_find(config, "log"))
        return;
    config->log = NULL;
    if (folder_has_folder(config->folder, "log"))
        config->log = type_path(&loading->bind.types, span_of("log/leat.log"));
    else
        faults_add(&config->warnings, NULL, 0, 0, "log",
                   "nothing is logged: it is not set, and %s has no folder log", config->folder);
}

static void set_access_log(struct loading *loading)
{
    struct config *config = loading->config;

    if (!config->verbose)
        return;
    config->access_log.file = "stdout";
    if (config->access_log.format == CONFIG_LOG_OFF)
        config->access_log.format = CONFIG_LOG_COMBINED;
    origin_note_source(config, "access_log.file", "option -v");
    origin_note_source(config, "access_log.format", "option -v");
}

/* One loop serves four CPUs' worth of workers. */
static void set_loops(struct config *config)
{
    cpu_set_t cpus;
    uint32_t count = 1;

    if (config->loops != CONFIG_AUTO)
        return;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        count = (uint32_t)CPU_COUNT(&cpus) / 4;
    config->loops = count < 1 ? 1 : count > 64 ? 64 : count;
}

static void load(struct loading *loading)
{
    struct config *config = loading->config;
    const struct config_options *options = loading->options;
    struct bind *bind = &loading->bind;
    size_t before = loading->faults->size;

    config->daemonize = options->daemonize;
    config->quiet = options->quiet;
    config->verbose = options->verbose;
    folder_find(&config->arena, options, &loading->folder);
    config->folder = loading->folder.path;
    *bind = (struct bind){.config = config,
                          .faults = loading->faults,
                          .types = {.arena = &config->arena, .folder = config->folder}};
    read_file(loading);
    if (loading->faults->size > before && !loading->root)
        return; /* what the file says is unknown: further faults would be guesses */
    decide_environment(loading);
    bind_file(bind, loading->root);
    set_environment(loading);
    overlay_settings(bind, options);
    overlay_listeners(bind, options);
    set_pid(loading);
    set_log(loading);
    set_access_log(loading);
    set_loops(config);
    complete_edition(bind, &loading->folder);
    verify_edition(bind);
}

struct config *config_load(const struct config_options *options, struct faults *ret_faults)
{
    struct loading loading = {
        .config = must_alloc(1, sizeof(struct config)), .options = options, .faults = ret_faults};
    size_t before = ret_faults->size;

    load(&loading);
    if (ret_faults->size == before)
        return loading.config;
    config_free(loading.config);
    return NULL;
}

void config_free(struct config *config)
{
    if (!config)
        return;
    faults_done(&config->warnings);
    arena_done(&config->arena);
    free(config);
}

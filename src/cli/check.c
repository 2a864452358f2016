/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"
#include "cli/verbs.h"
#include "config/origin.h"
#include "master/files.h"
#include "master/owner.h"
#include "master/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A walk through files is for finding mistakes, not for reading a whole disk. */
enum { ENTRIES_MAX = 200000, MISTAKES_MAX = 20, DEPTH_MAX = 64 };

/* A walk through a root, as the user that will serve it. */
struct walk {
    const char *user; /* for the words */
    unsigned entries;
    unsigned mistakes;
};

static void complain(struct walk *walk, const char *path, int error)
{
    if (++walk->mistakes <= MISTAKES_MAX)
        cli_complain("root: %s cannot read %s: %s", walk->user, path, strerror(error));
}

static void walk_folder(struct walk *walk, const char *path, unsigned depth);

/* Links are left alone: where they may lead is decided per request. Dot files are never sent. */
static void walk_entry(struct walk *walk, const char *folder, const char *name, unsigned depth)
{
    char path[PATH_MAX];
    struct stat status;
    int size = snprintf(path, sizeof(path), "%s/%s", folder, name);

    if (name[0] == '.' || size < 0 || (size_t)size >= sizeof(path) || lstat(path, &status) == -1)
        return;
    if (S_ISDIR(status.st_mode))
        walk_folder(walk, path, depth + 1);
    else if (S_ISREG(status.st_mode) && eaccess(path, R_OK) == -1)
        complain(walk, path, errno);
}

static void walk_folder(struct walk *walk, const char *path, unsigned depth)
{
    DIR *folder = depth < DEPTH_MAX ? opendir(path) : NULL;
    struct dirent *entry;

    if (!folder) {
        if (depth < DEPTH_MAX)
            complain(walk, path, errno);
        return;
    }
    if (eaccess(path, X_OK) == -1)
        complain(walk, path, errno);
    else
        while (walk->entries < ENTRIES_MAX && (entry = readdir(folder))) {
            walk->entries++;
            walk_entry(walk, path, entry->d_name, depth);
        }
    (void)closedir(folder);
}

/* A root that does not exist yet may come to exist; one that was named was looked for already. */
static void walk_root(struct walk *walk, const char *root)
{
    struct stat status;

    if (stat(root, &status) == -1) {
        if (errno != ENOENT)
            complain(walk, root, errno);
        return;
    }
    walk_folder(walk, root, 0);
}

static bool walk_sites(const struct config *config, const struct account *account)
{
    struct walk walk = {.user = account->name && account->name[0] ? account->name : "this user"};

    for (uint32_t i = 0; i < config->site_size; i++)
        if (config->sites[i].root)
            walk_root(&walk, config->sites[i].root);
    if (walk.mistakes > MISTAKES_MAX)
        cli_complain("root: and %u more", walk.mistakes - MISTAKES_MAX);
    return walk.mistakes == 0;
}

/* The user is changed in a child, because there is no way back. */
static bool walk_as(const struct config *config, const struct account *account)
{
    pid_t child = fork();
    int status, error;

    if (child == 0) {
        error = account_apply(account);
        if (error)
            cli_complain("cannot become %s: %s", account->name, strerror(-error));
        _exit(error || !walk_sites(config, account) ? CLI_FAILED : CLI_OK);
    }
    if (child == -1) {
        cli_complain("cannot look at root: %s", strerror(errno));
        return false;
    }
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- Named files: as at a start, but nothing is made ---- */

struct files {
    const struct config *config;
    const struct account *account;
    struct faults *faults;
};

static void judge(const struct files *files, const char *key, const char *path, int error)
{
    if (error)
        origin_fault(files->config, files->faults, key, "%s: %s", path, strerror(-error));
}

static void probe(const struct files *files, const char *key, const char *path)
{
    if (path)
        judge(files, key, path, files_probe(path));
}

static void probe_log(const struct files *files, const char *key, const char *path)
{
    if (path && *path == '/')
        judge(files, key, path, files_probe_log(path, files->account));
}

static void probe_listeners(const struct files *files)
{
    const struct config *config = files->config;

    for (uint32_t i = 0; i < config->listener_size; i++)
        if (strncmp(config->listeners[i].address, "unix:/", 6) == 0)
            probe(files, "listen", config->listeners[i].address + 5);
}

static void probe_pool_logs(const struct files *files)
{
    const struct config *config = files->config;
    char key[256];

    for (uint32_t i = 0; i < config->pool_size; i++) {
        (void)snprintf(key, sizeof(key), "pools.%s.log", config->pools[i]->name);
        probe_log(files, key, config->pools[i]->log);
    }
}

static bool check_files(const struct config *config, const struct account *account)
{
    struct faults faults = {0};
    struct files files = {.config = config, .account = account, .faults = &faults};
    bool good;

    if (config->pid_named)
        probe(&files, "pid", config->pid);
    probe(&files, "control", config->control);
    probe_listeners(&files);
    probe_log(&files, "log", config->log);
    if (config->access_log.format != CONFIG_LOG_OFF)
        probe_log(&files, "access_log.file", config->access_log.file);
    probe_pool_logs(&files);
    if (config->spool && origin_find(config, "spool"))
        judge(&files, "spool", config->spool, spool_probe(config->spool, account));
    good = faults.size == 0;
    cli_print_faults(&faults);
    return good;
}

static bool check_as_front(const struct config *config)
{
    struct faults faults = {0};
    struct account account = {0};
    char path[PATH_MAX];
    bool good = false;

    if (owner_find(config, &account, path, &faults) == 0) {
        good = check_files(config, &account);
        good &= account.change ? walk_as(config, &account) : walk_sites(config, &account);
    }
    cli_print_faults(&faults);
    account_done(&account);
    return good;
}

int cli_check(const struct cli_call *call)
{
    struct config *config = cli_load(call);
    bool good = config && check_as_front(config);

    if (good)
        (void)printf("%s: no mistakes\n", config->file ? config->file : config->folder);
    config_free(config);
    return good ? CLI_OK : CLI_FAILED;
}

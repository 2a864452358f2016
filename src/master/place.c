/* SPDX-License-Identifier: MIT */
#include "master/place.h"

#include "base/fd.h"
#include "base/num.h"
#include "master/files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 64, CONNECT_MS = 1000 };

static const char *variable(const struct master *master, const char *name)
{
    return environment_get(&master->environment, name);
}

/* The first folder of the list that can be used; its sockets are also those of molds and fronts. */
static int choose_run(struct master *master)
{
    struct control_place place = {.uid = geteuid(),
                                  .runtime = variable(master, "XDG_RUNTIME_DIR"),
                                  .temporary = variable(master, "TMPDIR")};
    char folders[CONTROL_FOLDERS][CONTROL_PATH];
    size_t count = control_folders(&place, false, folders);
    int result = -ENOENT;

    for (size_t i = 0; i < count; i++) {
        result = control_make_folder(folders[i], place.uid);
        /* A folder may be there and lie on a disk that takes no more. */
        if (result == 0 && access(folders[i], W_OK) == -1)
            result = -errno;
        if (result == 0) {
            memcpy(master->run, folders[i], sizeof master->run);
            return 0;
        }
    }
    return result;
}

/* Whether the server of that PID is gone: its control socket refuses, or is not there either. */
static bool is_left_over(const struct master *master, uint64_t pid)
{
    char text[CONTROL_PATH + 32];
    struct address address;
    int fd;

    if (kill((pid_t)pid, 0) == 0 || errno != ESRCH)
        return false;
    (void)snprintf(text, sizeof text, "unix:%s/%" PRIu64 ".sock", master->run, pid);
    if (!address_parse(span_of(text), &address))
        return false;
    fd = address_connect(&address, CONNECT_MS);
    if (fd >= 0)
        (void)close(fd);
    return fd == -ECONNREFUSED || fd == -ENOENT;
}

/* The PID that a name in RUN begins with ("123.sock", "123-0.1"), or 0. */
static uint64_t pid_of(const char *name)
{
    uint64_t pid = 0;

    (void)num_decimal(span_make(name, strspn(name, "0123456789")), &pid);
    return pid <= INT32_MAX ? pid : 0;
}

static bool is_dangling(int folder_fd, const char *name)
{
    return strncmp(name, "app-", 4) == 0 && faccessat(folder_fd, name, F_OK, 0) == -1 &&
           errno == ENOENT;
}

/* Servers that were killed leave their sockets, and links to them. */
static void sweep(const struct master *master, bool links)
{
    DIR *folder = opendir(master->run);
    struct dirent *entry;

    while (folder && (entry = readdir(folder)) != NULL) {
        uint64_t pid = pid_of(entry->d_name);
        if (links ? is_dangling(dirfd(folder), entry->d_name) : pid && is_left_over(master, pid))
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        (void)closedir(folder);
}

static int listen_at(struct master *master, const char *path)
{
    struct listen_options options = {.backlog = BACKLOG, .mode = 0600, .uid = -1, .gid = -1};
    struct address address;
    char text[CONTROL_PATH + 8];
    const char *reason = NULL;
    int fd;

    (void)snprintf(text, sizeof text, "unix:%s", path);
    if (!address_parse(span_of(text), &address))
        return -ENAMETOOLONG;
    /* `user` may call, too. */
    if (master->config->user && master->account.change)
        options.uid = (long)master->account.uid;
    fd = listen_open(&address, &options, &reason);
    if (fd >= 0)
        (void)snprintf(master->socket_path, sizeof master->socket_path, "%s", path);
    return fd;
}

/* A link is put in place whole, over whatever a former server left there; not over a file of another
 * kind, nor over the socket itself. */
static void make_link(const struct master *master, char *path)
{
    char fresh[CONTROL_PATH + 16];
    char target[CONTROL_PATH];

    if (strcmp(path, master->socket_path) == 0)
        *path = '\0';
    if (!*path)
        return;
    if (readlink(path, target, sizeof target) == -1 && errno != ENOENT) {
        *path = '\0';
        return;
    }
    (void)snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
    if (symlink(master->socket_path, fresh) == 0 && rename(fresh, path) == 0)
        return;
    (void)unlink(fresh);
    *path = '\0';
}

static void make_links(struct master *master)
{
    if (master->pidfile.path)
        control_beside_path(master->pidfile.path, master->links[0]);
    control_link_path(master->run, master->config->folder, master->links[1]);
    for (size_t i = 0; i < ARRAY_LEN(master->links); i++)
        make_link(master, master->links[i]);
}

int place_open(struct master *master, struct faults *faults)
{
    const char *named = master->config->control;
    char path[CONTROL_PATH];
    int result = choose_run(master);

    if (result != 0) {
        faults_add(faults, NULL, 0, 0, "control", "no folder for sockets can be used: %s",
                   strerror(-result));
        return -1;
    }
    sweep(master, false);
    sweep(master, true);
    (void)snprintf(path, sizeof path, "%.*s/%d.sock", CONTROL_PATH - 32, master->run,
                   (int)getpid());
    if (named)
        (void)files_make_parents(named);
    master->control_fd = listen_at(master, named ? named : path);
    if (master->control_fd < 0) {
        faults_add(faults, NULL, 0, 0, "control", "%s: %s", named ? named : path,
                   strerror(-master->control_fd));
        master->control_fd = -1;
        return -1;
    }
    make_links(master);
    return 0;
}

/* A server that started after us may have put its own link there. */
static void remove_link(const struct master *master, const char *path)
{
    char target[CONTROL_PATH];
    ssize_t size = *path ? readlink(path, target, sizeof target) : -1;

    if (size > 0 && span_is(span_make(target, (size_t)size), master->socket_path))
        (void)unlink(path);
}

void place_close(struct master *master)
{
    if (master->control_fd == -1)
        return;
    for (size_t i = 0; i < ARRAY_LEN(master->links); i++)
        remove_link(master, master->links[i]);
    (void)unlink(master->socket_path);
}

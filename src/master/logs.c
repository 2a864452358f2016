/* SPDX-License-Identifier: MIT */
#include "master/logs.h"

#include "base/fd.h"
#include "base/log.h"
#include "config/shape.h"
#include "master/files.h"
#include "master/fronts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool is_file(const char *path)
{
    return path && strcmp(path, "stdout") != 0 && strcmp(path, "stderr") != 0;
}

static int open_one(const struct master *master, const char *key, const char *path, int *ret_fd,
                    struct faults *faults)
{
    int fd = files_open_log(path, &master->account);

    if (fd < 0) {
        faults_add(faults, NULL, 0, 0, key, "%s: %s", path, strerror(-fd));
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

int logs_open(struct edition *edition, struct faults *faults)
{
    const struct config *config = edition->config;
    const struct master *master = edition->master;
    int result = 0;

    if (config->log && edition->log_fd == -1)
        result |= open_one(master, "log", config->log, &edition->log_fd, faults);
    if (config->access_log.format != CONFIG_LOG_OFF && config->access_log.file &&
        edition->access_log_fd == -1)
        result |= open_one(master, "access_log", config->access_log.file, &edition->access_log_fd,
                           faults);
    return result;
}

/* Everybody who holds the number goes on with the new file. */
static void reopen_one(const struct master *master, const char *path, int fd)
{
    int fresh;

    if (fd == -1 || !is_file(path))
        return;
    fresh = files_open_log(path, &master->account);
    if (fresh < 0) {
        log_error("reopen: %s: %s; the former file is used on", path, strerror(-fresh));
        return;
    }
    (void)dup3(fresh, fd, O_CLOEXEC);
    (void)close(fresh);
}

void logs_tell_fronts(struct master *master)
{
    const struct edition *edition = master->edition;
    struct front_message message = {.kind = FRONT_REOPEN};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int fds[2] = {edition->log_fd >= 0 ? edition->log_fd : null, edition->access_log_fd};

    if (edition->config->daemonize && edition->log_fd >= 0) {
        (void)dup2(edition->log_fd, STDOUT_FILENO);
        (void)dup2(edition->log_fd, STDERR_FILENO);
    }
    fronts_tell_all(master, &message, fds, fds[1] >= 0 ? 2 : 1);
    fd_close(&null);
}

void logs_reopen(struct master *master)
{
    const struct edition *edition = master->edition;
    const struct config *config = master->config;

    reopen_one(master, config->log, edition->log_fd);
    reopen_one(master, config->access_log.file, edition->access_log_fd);
    logs_tell_fronts(master);
    list_for_each (link, &master->instances) {
        struct master_pool *mine = CONTAINER_OF(link, struct master_pool, link);
        reopen_one(master, shape_log(mine->pool->config, mine->pool->settings), mine->log_fd);
        pool_reopen(mine->pool);
    }
    log_info("log files reopened");
}

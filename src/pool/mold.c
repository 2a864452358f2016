/* SPDX-License-Identifier: MIT */
#include "pool/mold.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "config/allocator.h"
#include "pool/pool.h"
#include "pool/protocol.h"
#include "pool/spawn.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUIT_MS = 5000 };

struct mold *mold_new(uint32_t generation, bool solo)
{
    struct mold *mold = must_alloc(1, sizeof *mold);

    *mold = (struct mold){.generation = generation, .solo = solo, .control = -1};
    list_init(&mold->link);
    return mold;
}

static void forget(struct mold *mold)
{
    account_done(&mold->account);
    environment_done(&mold->environment);
    ruby_done(&mold->ruby);
    free(mold->release);
    free(mold->rackup);
    mold->release = mold->rackup = NULL;
}

void mold_free(struct mold *mold)
{
    list_remove(&mold->link);
    fd_close(&mold->control);
    forget(mold);
    free(mold->failure);
    free(mold);
}

static char *resolve(const struct config_pool *settings, struct faults *faults)
{
    char *folder = realpath(settings->app, NULL);

    if (!folder)
        faults_add(faults, NULL, 0, 0, settings->name, "application folder %s: %s", settings->app,
                   strerror(errno));
    return folder;
}

static char *find_rackup(const struct config_pool *settings, const char *release)
{
    char path[PATH_MAX];
    const char *name = settings->rackup ? settings->rackup : "config.ru";

    if (*name == '/')
        return must_copy(name);
    (void)snprintf(path, sizeof path, "%s/%s", release, name);
    return must_copy(path);
}

static int prepare_account(struct mold *mold, const struct pool *pool, struct faults *faults)
{
    const struct config_pool *settings = pool->settings;
    const char *user = settings->user ? settings->user : pool->config->user;
    const char *group = settings->group ? settings->group : pool->config->group;

    return account_find(user, group, mold->rackup, "user", &mold->account, faults);
}

static int prepare_malloc(struct mold *mold, const struct config_pool *settings,
                          struct faults *faults)
{
    bool is_jemalloc = settings->malloc.allocator == CONFIG_ALLOCATOR_JEMALLOC;
    const char *library = is_jemalloc ? allocator_find() : NULL;

    environment_add_malloc(&mold->environment, library, settings->malloc.arenas);
    if (!is_jemalloc || library)
        return 0;
    faults_add(faults, NULL, 0, 0, "malloc", "%s", allocator_missing());
    return -1;
}

static int prepare_environment(struct mold *mold, const struct pool *pool, struct faults *faults)
{
    const struct config_pool *settings = pool->settings;
    struct environment *environment = &mold->environment;
    int result = 0;

    environment_copy(environment, pool->options.environ);
    environment_clean(environment);
    if (mold->account.change) {
        environment_set(environment, "HOME", mold->account.home);
        environment_set(environment, "USER", mold->account.name);
        environment_set(environment, "LOGNAME", mold->account.name);
    }
    environment_set(environment, "PWD", mold->release);
    if (settings->env_file)
        result = environment_read_file(environment, settings->env_file, faults);
    for (uint32_t i = 0; i < settings->env_size; i++)
        environment_set(environment, settings->env[i].name, settings->env[i].value);
    environment_finish(environment, pool->config->environment, settings);
    return result == 0 ? prepare_malloc(mold, settings, faults) : result;
}

static int prepare_ruby(struct mold *mold, const struct pool *pool, struct faults *faults)
{
    struct ruby_options options = {
        .configured = pool->settings->ruby,
        .folder = mold->release,
        .environ = mold->environment.items,
        .account = &mold->account,
        .files = pool->options.files,
        .library = pool->options.library,
    };

    return ruby_find(&options, &mold->ruby, faults);
}

static bool is_folder(const char *path)
{
    struct stat info;

    return path && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int mold_prepare(struct mold *mold, const struct pool *pool, struct faults *faults)
{
    char *release = is_folder(mold->release) ? must_copy(mold->release) : NULL;

    if (!release) {
        bool pruned = mold->release;
        release = resolve(pool->settings, faults);
        if (!release)
            return -1;
        if (pruned)
            log_warn("pool=%s generation=%u release %s is gone; its successors come from %s",
                     pool->settings->name, mold->generation, mold->release, release);
    }
    forget(mold);
    mold->release = release;
    mold->rackup = find_rackup(pool->settings, release);
    if (prepare_account(mold, pool, faults) != 0 || prepare_environment(mold, pool, faults) != 0)
        return -1;
    return prepare_ruby(mold, pool, faults);
}

/* The file that its standard output and error are, or NULL. A process that was handed over keeps what it
 * was started with. */
static const char *find_log(const struct mold *mold, const struct pool *pool)
{
    const char *path = pool->settings->log ? pool->settings->log : pool->config->log;
    bool is_handed = mold->pid != 0 && mold->pid == pool->options.handed_pid;

    return path && *path == '/' && !is_handed ? path : NULL;
}

static int write_hello(struct buf *buf, const struct mold *mold, const struct pool *pool,
                       const char *role, uint32_t index)
{
    static const char *const preloads[] = {[CONFIG_PRELOAD_AUTO] = "auto",
                                           [CONFIG_PRELOAD_TRUE] = "true",
                                           [CONFIG_PRELOAD_FALSE] = "false"};
    int result = protocol_begin(buf, "hello");

    result |= protocol_add(buf, "role", span_of(role));
    result |= protocol_add(buf, "pool", span_of(pool->settings->name));
    result |= protocol_add_number(buf, "generation", mold->generation);
    result |= protocol_add(buf, "app", span_of(mold->release));
    result |= protocol_add(buf, "rackup", span_of(mold->rackup));
    result |= protocol_add(buf, "environment", span_of(pool->config->environment));
    result |= protocol_add_number(buf, "threads", pool->instance.board.shape.threads);
    result |= protocol_add_number(buf, "master", (uint64_t)getpid());
    result |= protocol_add_number(buf, "loops", pool->instance.board.shape.loops);
    result |= protocol_add_number(buf, "verbose", pool->config->verbose);
    result |= protocol_add_number(buf, "stream_drain_ms", pool->config->timeouts.stream_drain_ms);
    result |= protocol_add_number(buf, "max_requests", pool->settings->max_requests);
    result |= protocol_add(buf, "preload", span_of(preloads[pool->settings->preload]));
    if (find_log(mold, pool))
        result |= protocol_add(buf, "log", span_of(find_log(mold, pool)));
    if (index != UINT32_MAX)
        result |= protocol_add_number(buf, "index", index);
    /* Whoever asks for a restart, or starts with -d, is told instead. */
    if (index != UINT32_MAX && pool->config->development && !pool->config->daemonize &&
        mold != pool->next)
        result |= protocol_add_number(buf, "excuse", 1);
    return result == 0 ? 0 : -ENOMEM;
}

int mold_greet(const struct mold *mold, const struct pool *pool, const char *role, uint32_t index,
               int control)
{
    int fds[FD_PASS_MAX];
    size_t count = instance_descriptors(&pool->instance, pool->options.death_pipe, fds);
    struct buf buf = {.size = 0};
    int result = write_hello(&buf, mold, pool, role, index);

    if (result == 0)
        result = fd_send(control, buf_span(&buf), fds, count);
    buf_done(&buf);
    return result;
}

/* Runs `RUBY boot.rb` with the other end of the control socket. */
static pid_t start_ruby(const struct mold *mold, const struct pool *pool, int control,
                        bool terminal, const char **ret_step)
{
    struct environment environment = {.size = 0};
    char boot[PATH_MAX];
    char number[16];
    char *argv[] = {mold->ruby.program, boot, NULL};
    struct spawn spawn = {.argv = argv,
                          .folder = mold->release,
                          .account = &mold->account,
                          .files = pool->options.files,
                          .in = terminal ? STDIN_FILENO : -1,
                          .out = pool->options.log_fd,
                          .err = pool->options.log_fd,
                          .keep = &control,
                          .keep_size = 1,
                          .umask = pool->settings->umask};
    pid_t pid;

    (void)snprintf(boot, sizeof boot, "%s/leat/boot.rb", pool->options.library);
    (void)snprintf(number, sizeof number, "%d", control);
    environment_copy(&environment, mold->environment.items);
    environment_set(&environment, "LEAT_CONTROL", number);
    spawn.environ = environment.items;
    pid = spawn_start(&spawn, ret_step);
    environment_done(&environment);
    return pid;
}

int mold_exec(struct mold *mold, struct pool *pool, const char *role, uint32_t index,
              pid_t *ret_pid, int *ret_control, struct faults *faults)
{
    const char *step = "cannot open its control socket";
    int pair[2];
    pid_t pid;
    int result;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1) {
        faults_add(faults, NULL, 0, 0, pool->settings->name, "%s: %s", step, strerror(errno));
        return -1;
    }
    pid = start_ruby(mold, pool, pair[1], mold->solo && !pool->config->daemonize, &step);
    fd_close(&pair[1]);
    if (pid < 0) {
        faults_add(faults, NULL, 0, 0, pool->settings->name, "%s: %s: %s", mold->ruby.program, step,
                   strerror(-pid));
        fd_close(&pair[0]);
        return -1;
    }
    if (index != UINT32_MAX)
        instance_begin(&pool->instance, index, pid, mold->generation);
    result = fd_set_nonblocking(pair[0]);
    if (result == 0)
        result = mold_greet(mold, pool, role, index, pair[0]);
    /* A process that cannot be greeted sees the end of its control socket and leaves. */
    if (result != 0)
        log_error("pool=%s cannot greet process %d: %s; it leaves", pool->settings->name, (int)pid,
                  strerror(-result));
    *ret_pid = pid;
    *ret_control = pair[0];
    return 0;
}

int mold_ask_fork(struct mold *mold, uint32_t index)
{
    struct buf buf = {.size = 0};
    int result = protocol_begin(&buf, "fork");

    result |= protocol_add_number(&buf, "index", index);
    result = result == 0 ? fd_send(mold->control, buf_span(&buf), NULL, 0) : -ENOMEM;
    buf_done(&buf);
    return result;
}

void mold_quit(struct mold *mold)
{
    if (mold->state == MOLD_LEAVING)
        return;
    if (mold->control >= 0)
        (void)fd_send(mold->control, span_of("quit\n"), NULL, 0);
    /* End of file says the same, should the message not have fitted. */
    fd_close(&mold->control);
    mold->state = mold->pid ? MOLD_LEAVING : MOLD_DOWN;
    mold->deadline_ms = clock_ms() + QUIT_MS;
}

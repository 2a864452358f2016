/* SPDX-License-Identifier: MIT */
#include "master/upgrade.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "base/version.h"
#include "master/fronts.h"
#include "master/handover.h"
#include "master/reload.h"
#include "master/retired.h"
#include "master/takeover.h"
#include "pool/reap.h"
#include "pool/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS =
        20, /* how often what is waited for is looked at; only while an upgrade is asked for */
    CHECK_MS = 30000, /* the new program has this long to say that it can */
    FLUSH_MS = 2000,  /* callers and fronts have this long to take what was said to them */
    WORDS_MAX = 16384 /* of what the new program says */
};

enum upgrade_state { UPGRADE_WAITING, UPGRADE_CHECKING, UPGRADE_CHECKED };

struct upgrade {
    struct master *master;
    enum upgrade_state state;
    char *binary; /* owned */
    pid_t pid;    /* of the child, 0 = none */
    int output;   /* what it says */
    struct buf words;
    struct timer timer;
    uint64_t deadline_ms; /* of the state, 0 = none */
    bool speaks_other; /* the new program and the fronts of this one do not understand each other */
    bool said_wait;    /* the log knows what is waited for */
};

/* Who asked; a signal has no call. */
struct upgrade_call {
    struct list link;
    struct control_call *call;
};

/* ---- The outcome ---- */

static void answer_all(struct master *master, bool ok, struct span text)
{
    list_for_each_safe (link, &master->upgrade_calls) {
        struct upgrade_call *mine = CONTAINER_OF(link, struct upgrade_call, link);
        list_remove(&mine->link);
        control_answer(mine->call, ok, text, false);
        free(mine);
    }
}

static void answer_failure(struct master *master, const char *words)
{
    struct buf text = {.size = 0};

    (void)buf_printf(&text, "%s\n", words);
    answer_all(master, false, buf_span(&text));
    buf_done(&text);
}

static void free_upgrade(struct upgrade *upgrade)
{
    upgrade->master->upgrade = NULL;
    timer_stop(&upgrade->timer);
    fd_close(&upgrade->output);
    buf_done(&upgrade->words);
    free(upgrade->binary);
    free(upgrade);
}

/* Nothing has changed; the words are those of the log and of whoever asked. */
static void fail(struct upgrade *upgrade, const char *format, ...) PRINTF_LIKE(2, 3);

static void fail(struct upgrade *upgrade, const char *format, ...)
{
    struct master *master = upgrade->master;
    va_list arguments;
    char *words;
    int size;

    va_start(arguments, format);
    size = vasprintf(&words, format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    log_error("upgrade failed, %s %s goes on: %s", master->binary, LEAT_VERSION, words);
    free_upgrade(upgrade);
    answer_failure(master, words);
    free(words);
}

/* ---- Becoming the new program ---- */

static int write_state(const struct saved_text *text)
{
    int fd = memfd_create("leat-state", 0);
    int result = fd == -1 ? -errno : fd_write_all(fd, buf_span(&text->buf));

    if (result == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return result == 0 ? -EIO : result;
}

static void set_cloexec(const struct saved_text *text, bool on)
{
    for (size_t i = 0; i < text->fd_count; i++)
        (void)fd_set_cloexec(text->fds[i], on);
}

/* As the server was started, and where the state is. */
static struct environment make_environment(const struct master *master, const char *how, int fd)
{
    struct environment environment = {.size = 0};
    char value[64];

    (void)snprintf(value, sizeof value, "%s:%d", how, fd);
    environment_copy(&environment, master->environment.items);
    environment_unset(&environment, "LEAT_CONTROL_FD");
    environment_unset(&environment, "LEAT_MOLD_PID");
    environment_set(&environment, TAKEOVER_VARIABLE, value);
    return environment;
}

/* The command line of the start, with the new program's name. */
static char **make_argv(const struct master *master, char *binary)
{
    size_t size = 0;
    char **argv;

    while (master->argv[size])
        size++;
    argv = must_alloc(size + 2, sizeof *argv);
    for (size_t i = 1; i < size; i++)
        argv[i] = master->argv[i];
    argv[0] = binary;
    return argv;
}

/* Returns only when the system refuses. */
static int become(const struct master *master, char *binary)
{
    struct saved_text text = {.error = 0};
    struct environment environment;
    char **argv = make_argv(master, binary);
    int result;
    int fd;

    handover_write(master, &text);
    fd = text.error ? text.error : write_state(&text);
    if (fd < 0) {
        saved_text_done(&text);
        free(argv);
        return fd;
    }
    environment = make_environment(master, TAKEOVER_RUN, fd);
    set_cloexec(&text, false);
    (void)execve(binary, argv, environment.items);
    result = -errno;
    set_cloexec(&text, true);
    environment_done(&environment);
    saved_text_done(&text);
    (void)close(fd);
    free(argv);
    return result;
}

/* ---- Trying the new program ---- */

static void read_words(struct upgrade *upgrade)
{
    for (;;) {
        char bytes[4096];
        ssize_t size = read(upgrade->output, bytes, sizeof bytes);
        if (size == -1 && errno == EINTR)
            continue;
        if (size <= 0)
            return;
        if (upgrade->words.size < WORDS_MAX)
            (void)buf_append(&upgrade->words, span_make(bytes, (size_t)size));
    }
}

static int start_child(struct upgrade *upgrade, int state, int pair[2], const char **ret_step)
{
    struct master *master = upgrade->master;
    struct environment environment = make_environment(master, TAKEOVER_CHECK, state);
    char **argv = make_argv(master, upgrade->binary);
    struct spawn spawn = {.argv = argv,
                          .environ = environment.items,
                          .files = &master->files,
                          .in = -1,
                          .out = pair[1],
                          .err = pair[1],
                          .keep = &state,
                          .keep_size = 1,
                          .umask = UINT32_MAX};
    pid_t pid = spawn_start(&spawn, ret_step);

    environment_done(&environment);
    free(argv);
    return pid;
}

/* The child has the state and nothing that it names: it could do no harm if it wanted to. */
static int try_child(struct upgrade *upgrade, const char **ret_step)
{
    struct saved_text text = {.error = 0};
    int pair[2] = {-1, -1};
    int state;
    pid_t pid;

    *ret_step = "cannot write the state";
    handover_write(upgrade->master, &text);
    state = text.error ? text.error : write_state(&text);
    saved_text_done(&text);
    if (state < 0)
        return state;
    pid = pipe2(pair, O_CLOEXEC) == -1 ? -errno : start_child(upgrade, state, pair, ret_step);
    (void)close(state);
    fd_close(&pair[1]);
    if (pid < 0) {
        fd_close(&pair[0]);
        return pid;
    }
    (void)fd_set_nonblocking(pair[0]);
    upgrade->output = pair[0];
    upgrade->pid = pid;
    return 0;
}

static void begin_check(struct upgrade *upgrade)
{
    const char *step;
    int result = try_child(upgrade, &step);

    if (result != 0) {
        fail(upgrade, "%s: %s: %s", upgrade->binary, step, strerror(-result));
        return;
    }
    upgrade->state = UPGRADE_CHECKING;
    upgrade->deadline_ms = clock_ms() + CHECK_MS;
}

/* Its last line must be the word that only a program says which understood what it was asked. */
static bool is_able(struct upgrade *upgrade)
{
    struct span words = buf_span(&upgrade->words);
    struct span rest = words;
    struct span last = {NULL, 0};
    uint64_t dialect = UINT64_MAX;

    while (rest.data) {
        struct span line = span_split(&rest, '\n');
        if (line.size)
            last = line;
    }
    if (!span_starts_with(last, span_of(TAKEOVER_ABLE)))
        return false;
    (void)num_decimal(span_skip(last, span_find_last(last, ' ') + 1), &dialect);
    upgrade->speaks_other = dialect != front_message_dialect();
    return true;
}

static void judge(struct upgrade *upgrade, int wait_status)
{
    struct span words;
    char how[100];

    read_words(upgrade);
    fd_close(&upgrade->output);
    words = buf_span(&upgrade->words);
    while (words.size && words.data[words.size - 1] == '\n')
        words.size--;
    if (wait_status == 0 && is_able(upgrade)) {
        upgrade->state = UPGRADE_CHECKED;
        upgrade->deadline_ms = clock_ms() + FLUSH_MS;
        return;
    }
    (void)exit_describe(wait_status, how, sizeof how);
    if (wait_status == 0)
        fail(upgrade, "%s: does not know how to go on where this program stops%s%.*s",
             upgrade->binary, words.size ? "; it says: " : "", SPAN_ARG(span_first(words, 500)));
    else if (words.size)
        fail(upgrade, "%s: %s\n%.*s", upgrade->binary, how, SPAN_ARG(words));
    else
        fail(upgrade, "%s: %s", upgrade->binary, how);
}

bool upgrade_child_ended(struct master *master, pid_t pid, int wait_status)
{
    struct upgrade *upgrade = master->upgrade;

    if (!upgrade || upgrade->pid != pid)
        return false;
    upgrade->pid = 0;
    judge(upgrade, wait_status);
    return true;
}

/* ---- Waiting ---- */

static unsigned count_calls(const struct master *master)
{
    unsigned count = 0;

    list_for_each (link, &master->upgrade_calls)
        count++;
    return count;
}

/* What must be over first, in words, or NULL. */
static const char *find_obstacle(const struct master *master)
{
    if (master->phase < MASTER_RUNNING)
        return "a start";
    if (reload_is_busy(master))
        return "a reload";
    list_for_each (link, &master->instances) {
        const struct pool *pool = CONTAINER_OF(link, struct master_pool, link)->pool;
        if (pool->next || pool->rolling || pool->restart_due)
            return "a restart";
    }
    if (control_waiting(master->control) > count_calls(master))
        return "what others have asked";
    return fronts_accept(master) ? NULL : "a front";
}

/* Things said that are still on their way to those who should hear them. */
static bool is_flushed(const struct upgrade *upgrade)
{
    const struct master *master = upgrade->master;

    if (clock_ms() >= upgrade->deadline_ms)
        return true;
    return !control_is_busy(master->control) && fronts_are_told(master);
}

static void go(struct upgrade *upgrade)
{
    struct master *master = upgrade->master;
    int result;

    log_info("upgrade: %s %s becomes %s", master->binary, LEAT_VERSION, upgrade->binary);
    /* Who connects now waits in the backlog, until the new program has a front of its own. */
    if (upgrade->speaks_other)
        retired_begin(master, NULL);
    result = become(master, upgrade->binary);
    fronts_renew(master);
    fail(upgrade, "%s: %s", upgrade->binary, strerror(-result));
}

static void look(struct upgrade *upgrade)
{
    const char *obstacle = find_obstacle(upgrade->master);

    if (upgrade->state == UPGRADE_CHECKING) {
        read_words(upgrade);
        if (clock_ms() < upgrade->deadline_ms)
            return;
        (void)spawn_signal(upgrade->pid, SIGKILL);
        fail(upgrade, "%s: says nothing for %d s; it was killed", upgrade->binary, CHECK_MS / 1000);
    } else if (obstacle) {
        if (!upgrade->said_wait)
            log_info("upgrade: waits for the end of %s", obstacle);
        upgrade->said_wait = true;
    } else if (upgrade->state == UPGRADE_WAITING) {
        begin_check(upgrade);
    } else if (is_flushed(upgrade)) {
        go(upgrade);
    }
}

static void on_look(struct timer *timer)
{
    struct upgrade *upgrade = CONTAINER_OF(timer, struct upgrade, timer);
    struct master *master = upgrade->master;

    look(upgrade);
    if (master->upgrade)
        timer_set(master->loop, &master->upgrade->timer, LOOK_MS, on_look);
}

/* ---- Asking ---- */

static void refuse(struct control_call *call, const char *words)
{
    if (call)
        control_answer(call, false, span_of(words), false);
    else
        log_warn("upgrade: %.*s", (int)strlen(words) - 1, words);
}

/* `user` may stop and restart what runs as `user`; what runs as root is another matter. */
static bool may_ask(const struct control_call *call)
{
    return !call || control_caller(call) == 0 || control_caller(call) == geteuid();
}

void upgrade_adopt_call(void *context, struct control_call *call)
{
    struct master *master = context;
    struct upgrade_call *mine = must_alloc(1, sizeof *mine);

    mine->call = call;
    list_init(&mine->link);
    list_push_back(&master->upgrade_calls, &mine->link);
}

void upgrade_ask(struct master *master, const char *binary, struct control_call *call)
{
    const char *wanted = binary && *binary ? binary : master->binary;
    struct upgrade *upgrade;

    if (!may_ask(call)) {
        refuse(call, "only root and the server's own user may exchange its program\n");
    } else if (master->phase >= MASTER_DELAY) {
        refuse(call, "the server is being stopped\n");
    } else if (master->upgrade || !list_is_empty(&master->upgrade_calls)) {
        refuse(call, "an upgrade is under way\n");
    } else if (*wanted != '/') {
        refuse(call, "the path of the new program must be absolute\n");
    } else {
        if (call)
            upgrade_adopt_call(master, call);
        upgrade = must_alloc(1, sizeof *upgrade);
        *upgrade = (struct upgrade){.master = master, .binary = must_copy(wanted), .output = -1};
        master->upgrade = upgrade;
        on_look(&upgrade->timer);
    }
}

void upgrade_abandon(struct master *master)
{
    struct upgrade *upgrade = master->upgrade;

    if (upgrade) {
        if (upgrade->pid)
            (void)spawn_signal(upgrade->pid, SIGKILL);
        free_upgrade(upgrade);
    }
    answer_failure(master, "the server was stopped meanwhile");
}

void upgrade_tell(struct master *master, const char *failure)
{
    struct buf text = {.size = 0};

    if (failure) {
        log_error("upgrade: %s", failure);
        answer_failure(master, failure);
        return;
    }
    log_info("upgraded: PID %d is %s %s now", (int)getpid(), master->binary, LEAT_VERSION);
    (void)buf_printf(&text, "upgraded: leat %s (%s)\n", LEAT_VERSION, master->binary);
    answer_all(master, true, buf_span(&text));
    buf_done(&text);
}

/* SPDX-License-Identifier: MIT */
#include "front/access_log.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HAND_OVER_BYTES = 64 * 1024,
    HAND_OVER_MS = 1000,
    WAITING_MAX = 64,     /* parts on their way to the writer at most */
    PIPE_WAIT_MS = 1000,  /* how long a pipe may be full before lines are dropped */
    PIPE_PART = PIPE_BUF, /* what poll says fits (pipe(7)) */
};

/* Lines on their way. */
struct part {
    struct list link;
    char *bytes;
    size_t size;
    uint64_t lines;
};

struct access_log {
    enum config_log_format format;
    _Atomic uint64_t *dropped;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct list parts;
    unsigned waiting;
    int next_fd; /* -1, or what reopen has brought */
    bool ending;
    int fd;        /* the writer's, as is stuck */
    bool is_stuck; /* the pipe was full for its time: no more waiting until it takes a line */
};

/* ---- The writer ---- */

static uint64_t count_lines(struct span bytes)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < bytes.size; i++)
        lines += bytes.data[i] == '\n';
    return lines;
}

static void drop(struct access_log *log, uint64_t lines)
{
    atomic_fetch_add_explicit(log->dropped, lines, memory_order_relaxed);
}

static bool is_regular(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static bool wait_for_room(struct access_log *log)
{
    struct pollfd poll_fd = {.fd = log->fd, .events = POLLOUT};

    log->is_stuck =
        poll(&poll_fd, 1, log->is_stuck ? 0 : PIPE_WAIT_MS) != 1 || !(poll_fd.revents & POLLOUT);
    return !log->is_stuck;
}

static bool write_all(int fd, struct span bytes)
{
    while (bytes.size) {
        ssize_t size = write(fd, bytes.data, bytes.size);

        if (size == -1 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        bytes = span_skip(bytes, (size_t)size);
    }
    return true;
}

/* Whole lines of at most a pipe's atomic size; a longer line goes alone. */
static struct span next_lines(struct span bytes)
{
    size_t end = 0;

    while (end < bytes.size) {
        size_t line = span_find(span_skip(bytes, end), '\n') + 1;

        if (end && end + line > PIPE_PART)
            break;
        end += line;
        if (end >= PIPE_PART)
            break;
    }
    return span_first(bytes, end);
}

static void write_pipe(struct access_log *log, struct span bytes)
{
    while (bytes.size) {
        struct span lines = next_lines(bytes);

        if (!wait_for_room(log) || !write_all(log->fd, lines)) {
            drop(log, count_lines(bytes));
            return;
        }
        bytes = span_skip(bytes, lines.size);
    }
}

static void write_part(struct access_log *log, const struct part *part)
{
    struct span bytes = span_make(part->bytes, part->size);

    if (log->fd == -1)
        drop(log, part->lines);
    else if (!is_regular(log->fd))
        write_pipe(log, bytes);
    else if (!write_all(log->fd, bytes))
        drop(log, part->lines);
}

static void free_part(struct part *part)
{
    free(part->bytes);
    free(part);
}

/* Waits for work; NULL when everything is written and the log ends. */
static struct part *take_part(struct access_log *log)
{
    struct part *part = NULL;

    pthread_mutex_lock(&log->lock);
    while (list_is_empty(&log->parts) && log->next_fd == -1 && !log->ending)
        pthread_cond_wait(&log->wake, &log->lock);
    if (log->next_fd != -1) {
        fd_close(&log->fd);
        log->fd = log->next_fd;
        log->next_fd = -1;
    }
    if (!list_is_empty(&log->parts)) {
        part = CONTAINER_OF(log->parts.next, struct part, link);
        list_remove(&part->link);
        log->waiting--;
    }
    pthread_mutex_unlock(&log->lock);
    return part;
}

static bool is_over(struct access_log *log)
{
    bool over;

    pthread_mutex_lock(&log->lock);
    over = log->ending && list_is_empty(&log->parts);
    pthread_mutex_unlock(&log->lock);
    return over;
}

static void *run_writer(void *data)
{
    struct access_log *log = data;

    do {
        struct part *part = take_part(log);

        if (!part)
            continue;
        write_part(log, part);
        free_part(part);
    } while (!is_over(log));
    return NULL;
}

struct access_log *access_log_new(int fd, enum config_log_format format, _Atomic uint64_t *dropped)
{
    struct access_log *log = must_alloc(1, sizeof(*log));
    sigset_t all, before;
    int error;

    log->format = format;
    log->dropped = dropped;
    log->fd = fd;
    log->next_fd = -1;
    list_init(&log->parts);
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->wake, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&log->thread, NULL, run_writer, log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return log;
    fd_close(&log->fd);
    free(log);
    return NULL;
}

void access_log_free(struct access_log *log)
{
    if (!log)
        return;
    pthread_mutex_lock(&log->lock);
    log->ending = true;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
    fd_close(&log->fd);
    fd_close(&log->next_fd);
    pthread_cond_destroy(&log->wake);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

void access_log_reopen(struct access_log *log, int fd)
{
    pthread_mutex_lock(&log->lock);
    fd_close(&log->next_fd);
    log->next_fd = fd;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
}

/* Takes the part; false when too many are on their way. */
static bool hand_part(struct access_log *log, struct part *part)
{
    bool taken;

    pthread_mutex_lock(&log->lock);
    taken = log->waiting < WAITING_MAX;
    if (taken) {
        list_push_back(&log->parts, &part->link);
        log->waiting++;
        pthread_cond_signal(&log->wake);
    }
    pthread_mutex_unlock(&log->lock);
    return taken;
}

/* ---- The loops' side ---- */

static struct part *make_part(struct access_log_buffer *buffer)
{
    struct part *part = malloc(sizeof(*part));
    char *bytes = malloc(buffer->bytes.size);

    if (!part || !bytes) {
        free(part);
        free(bytes);
        return NULL;
    }
    memcpy(bytes, buf_span(&buffer->bytes).data, buffer->bytes.size);
    *part = (struct part){.bytes = bytes, .size = buffer->bytes.size, .lines = buffer->lines};
    list_init(&part->link);
    return part;
}

static void hand_over(struct access_log_buffer *buffer)
{
    struct part *part;

    timer_stop(&buffer->timer);
    if (!buffer->bytes.size)
        return;
    part = make_part(buffer);
    if (!part || !hand_part(buffer->log, part)) {
        drop(buffer->log, buffer->lines);
        if (part)
            free_part(part);
    }
    buf_clear(&buffer->bytes);
    buf_shrink(&buffer->bytes, 2 * HAND_OVER_BYTES);
    buffer->lines = 0;
}

static void on_time(struct timer *timer)
{
    hand_over(CONTAINER_OF(timer, struct access_log_buffer, timer));
}

void access_log_buffer_init(struct access_log_buffer *buffer, struct access_log *log,
                            struct loop *loop)
{
    *buffer = (struct access_log_buffer){.log = log, .loop = loop};
}

void access_log_buffer_done(struct access_log_buffer *buffer)
{
    if (buffer->log)
        hand_over(buffer);
    buf_done(&buffer->bytes);
}

static int format(struct access_log_buffer *buffer, const struct exchange *exchange,
                  const char *pool)
{
    if (buffer->log->format == CONFIG_LOG_JSON)
        return access_log_format_json(&buffer->bytes, exchange, pool, clock_wall_ms());
    return access_log_format_combined(&buffer->bytes, exchange, clock_wall_ms());
}

void access_log_add(struct access_log_buffer *buffer, const struct exchange *exchange,
                    const char *pool)
{
    size_t before = buffer->bytes.size;

    if (!buffer->log || buffer->log->format == CONFIG_LOG_OFF)
        return;
    if (format(buffer, exchange, pool)) {
        /* Half a line is worse than none. */
        buffer->bytes.size = before;
        drop(buffer->log, 1);
        return;
    }
    buffer->lines++;
    if (buffer->bytes.size >= HAND_OVER_BYTES)
        hand_over(buffer);
    else if (!timer_is_set(&buffer->timer))
        timer_set(buffer->loop, &buffer->timer, HAND_OVER_MS, on_time);
}

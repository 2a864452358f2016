/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include "base/clock.h"
#include "base/map.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* A pipe takes up to this many bytes whole (PIPE_BUF of Linux), so that lines never mix. */
enum { LINE_ROOM = 4096 };

/* Process-wide, as the log itself is: every thread writes to the same place. The words are
 * independent of each other, so relaxed order is enough. */
static _Atomic(const char *) role = "leat";
static atomic_int descriptor = STDERR_FILENO;
static atomic_int lowest = LOG_INFO;
static atomic_ulong dropped;

static const char level_words[][8] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};

void log_name(const char *name)
{
    atomic_store_explicit(&role, name, memory_order_relaxed);
}

void log_to(int fd)
{
    atomic_store_explicit(&descriptor, fd, memory_order_relaxed);
}

int log_fd(void)
{
    return atomic_load_explicit(&descriptor, memory_order_relaxed);
}

void log_level(enum log_level level)
{
    atomic_store_explicit(&lowest, (int)level, memory_order_relaxed);
}

unsigned long log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

static size_t put_head(char *out, size_t room, enum log_level level, uint64_t wall_ms)
{
    struct tm utc;

    clock_utc((time_t)(wall_ms / 1000), &utc);
    return (size_t)snprintf(out, room, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ %.32s %ld %s ",
                            utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                            utc.tm_min, utc.tm_sec, (unsigned)(wall_ms % 1000),
                            atomic_load_explicit(&role, memory_order_relaxed), (long)getpid(),
                            level_words[level]);
}

/* Copies text with control bytes as \xHH, so that nobody forges a second line or moves a terminal's
 * cursor. Returns the bytes written; a text that does not fit ends in three dots. */
static size_t put_text(char *out, size_t room, struct span text)
{
    static const char digits[] = "0123456789abcdef";
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool is_control = byte < ' ' || byte == 0x7f;

        if (size + (is_control ? 4 : 1) + 3 > room) {
            memcpy(out + size, "...", 3);
            return size + 3;
        }
        if (is_control) {
            memcpy(out + size, "\\x", 2);
            out[size + 2] = digits[byte >> 4];
            out[size + 3] = digits[byte & 15];
            size += 4;
        } else {
            out[size++] = (char)byte;
        }
    }
    return size;
}

/* Whether the descriptor takes a line without waiting. A reader who stopped reading a pipe, or a
 * stopped terminal, shall not stop the server. */
static bool is_writable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    int ready;

    do
        ready = poll(&poll_fd, 1, 0);
    while (ready == -1 && errno == EINTR);
    return ready == 1 && (poll_fd.revents & POLLOUT);
}

static void write_line(int fd, struct span line)
{
    ssize_t written = -1;

    if (is_writable(fd))
        do
            written = write(fd, line.data, line.size);
        while (written == -1 && errno == EINTR);
    if (written != (ssize_t)line.size)
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

void log_line(enum log_level level, const char *format, ...)
{
    int fd = log_fd();
    int saved_errno = errno; /* callers log first and then decide by errno */
    char text[LINE_ROOM];
    char line[LINE_ROOM];
    va_list arguments;
    size_t size;
    int length;

    if (fd == -1 || (int)level < atomic_load_explicit(&lowest, memory_order_relaxed))
        return;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    CHECK(length >= 0);

    size = put_head(line, sizeof(line), level, clock_wall_ms());
    size += put_text(
        line + size, sizeof(line) - size - 1,
        span_make(text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1));
    line[size++] = '\n';
    write_line(fd, span_make(line, size));
    errno = saved_errno;
}

struct recent {
    uint64_t hash;
    uint64_t allowed_ms; /* monotonic; 0 = free */
    unsigned suppressed;
};

enum { RECENT_KEYS = 64 };

/* Process-wide for the same reason as above; guarded by recent_lock. */
static struct recent recent_keys[RECENT_KEYS];
static pthread_mutex_t recent_lock = PTHREAD_MUTEX_INITIALIZER;

/* The key's entry, or the one that was used longest ago. */
static struct recent *recent_of(struct recent *keys, uint64_t hash)
{
    struct recent *oldest = keys;

    for (struct recent *key = keys; key < keys + RECENT_KEYS; key++) {
        if (key->allowed_ms && key->hash == hash)
            return key;
        if (key->allowed_ms < oldest->allowed_ms)
            oldest = key;
    }
    return oldest;
}

static bool allow(struct recent *keys, uint64_t hash, uint64_t interval_ms, uint64_t now_ms,
                  unsigned *ret_suppressed)
{
    struct recent *key = recent_of(keys, hash);
    bool is_known = key->allowed_ms && key->hash == hash;

    if (is_known && now_ms - key->allowed_ms < interval_ms) {
        key->suppressed++;
        return false;
    }
    if (ret_suppressed)
        *ret_suppressed = is_known ? key->suppressed : 0;
    *key = (struct recent){.hash = hash, .allowed_ms = now_ms ? now_ms : 1};
    return true;
}

bool log_allow(struct span key, unsigned interval_s, unsigned *ret_suppressed)
{
    uint64_t hash = map_hash(key);
    bool is_allowed;

    (void)pthread_mutex_lock(&recent_lock);
    is_allowed = allow(recent_keys, hash, (uint64_t)interval_s * 1000, clock_ms(), ret_suppressed);
    (void)pthread_mutex_unlock(&recent_lock);
    return is_allowed;
}

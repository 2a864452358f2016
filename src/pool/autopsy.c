/* SPDX-License-Identifier: MIT */
#include "pool/autopsy.h"

#include "base/fd.h"
#include "base/num.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_LIMIT = 4096 };

struct call_name {
    uint32_t number;
    bool takes_file;
    const char *name;
};

enum { OTHER, DESCRIPTOR };

static const struct call_name call_names[] = {
#define ROW(word, argument) {SYS_##word, (argument) == DESCRIPTOR, #word},
#include "pool/syscall.def"
#undef ROW
};

static void copy(struct span text, char *out, size_t room)
{
    (void)snprintf(out, room, "%.*s", SPAN_ARG(text));
}

/* "4711 (leat 0) S 1 ...": the name may hold anything, so it ends at the last bracket. */
bool autopsy_parse_stat(struct span text, struct autopsy_thread *thread)
{
    size_t begin = span_find(text, '(');
    size_t end = span_find_last(text, ')');

    if (begin >= text.size || end >= text.size || end <= begin || text.size < end + 3)
        return false;
    copy(span_make(text.data + begin + 1, end - begin - 1), thread->name, sizeof thread->name);
    thread->state = text.data[end + 2];
    return true;
}

/* "0x1f" */
static bool parse_hex(struct span text, uint64_t *ret_value)
{
    return span_starts_with(text, span_of("0x")) && num_hex(span_skip(text, 2), ret_value);
}

/* "running", "-1 STACK PC" or "NUMBER ARGUMENT... STACK PC" */
void autopsy_parse_call(struct span text, struct autopsy_thread *thread)
{
    struct span word;
    uint64_t number;

    text = span_split(&text, '\n');
    thread->call = AUTOPSY_UNKNOWN;
    word = span_split(&text, ' ');
    if (span_is(word, "running")) {
        thread->call = AUTOPSY_RUNNING;
    } else if (span_is(word, "-1")) {
        thread->call = AUTOPSY_OUTSIDE;
    } else if (num_decimal(word, &number) && number <= UINT32_MAX &&
               parse_hex(span_split(&text, ' '), &thread->argument)) {
        thread->call = AUTOPSY_INSIDE;
        thread->number = (uint32_t)number;
    }
}

const char *autopsy_call_name(uint32_t number, bool *ret_takes_file)
{
    for (size_t i = 0; i < ARRAY_LEN(call_names); i++) {
        if (call_names[i].number != number)
            continue;
        *ret_takes_file = call_names[i].takes_file;
        return call_names[i].name;
    }
    return NULL;
}

static const char *state_word(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "in uninterruptible sleep";
    case 'T':
        return "stopped by a signal";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "dead";
    default:
        return "in an unknown state";
    }
}

/* ---- reading */

/* Where a thread's files are, and those of its process. */
struct place {
    const char *proc;
    pid_t pid;
    const char *thread;
};

static char *read_file(const struct place *place, const char *name, struct span *ret_text)
{
    char path[PATH_MAX];
    char *text;
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%d/task/%s/%s", place->proc, (int)place->pid,
                   place->thread, name);
    if (fd_read_file(path, FILE_LIMIT, &text, &size) < 0)
        return NULL;
    *ret_text = span_make(text, size);
    return text;
}

/* "0" stands for nothing to wait for. */
static void read_wchan(const struct place *place, struct autopsy_thread *thread)
{
    struct span text;
    char *bytes = read_file(place, "wchan", &text);

    if (bytes && !span_is(text, "0"))
        copy(text, thread->wchan, sizeof thread->wchan);
    free(bytes);
}

static bool read_thread(const struct place *place, struct autopsy_thread *ret_thread)
{
    struct autopsy_thread thread = {.state = '?'};
    struct span text;
    char *bytes = read_file(place, "stat", &text);
    bool is_there = bytes && autopsy_parse_stat(text, &thread);

    free(bytes);
    if (!is_there)
        return false;
    read_wchan(place, &thread);
    bytes = read_file(place, "syscall", &text);
    if (bytes)
        autopsy_parse_call(text, &thread);
    free(bytes);
    *ret_thread = thread;
    return true;
}

/* ---- words */

/* "read(7 socket:[123])" */
static void add_call(const struct place *place, const struct autopsy_thread *thread,
                     struct buf *out)
{
    bool takes_file = false;
    const char *name = autopsy_call_name(thread->number, &takes_file);
    char path[PATH_MAX], target[256];
    ssize_t size;

    if (name)
        (void)buf_printf(out, ", in %s(", name);
    else
        (void)buf_printf(out, ", in system call %" PRIu32 "(", thread->number);
    if (takes_file) {
        (void)snprintf(path, sizeof path, "%s/%d/fd/%" PRIu64, place->proc, (int)place->pid,
                       thread->argument);
        size = readlink(path, target, sizeof target);
        (void)buf_printf(out, "%" PRIu64, thread->argument);
        if (size > 0)
            (void)buf_printf(out, " %.*s", (int)size, target);
    }
    (void)buf_append_byte(out, ')');
}

static void add_thread(const struct place *place, const struct autopsy_thread *thread,
                       struct buf *out)
{
    (void)buf_printf(out, "thread \"%s\": %s", thread->name, state_word(thread->state));
    if (thread->wchan[0])
        (void)buf_printf(out, ", wchan %s", thread->wchan);
    if (thread->call == AUTOPSY_INSIDE)
        add_call(place, thread, out);
    else if (thread->call == AUTOPSY_RUNNING || thread->call == AUTOPSY_OUTSIDE)
        (void)buf_append(out, span_of(", in no system call"));
    (void)buf_append_byte(out, '\n');
}

char autopsy_state(const char *proc, pid_t pid)
{
    struct autopsy_thread thread = {.state = '?'};
    char path[PATH_MAX];
    char *text;
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%d/stat", proc, (int)pid);
    if (fd_read_file(path, FILE_LIMIT, &text, &size) < 0)
        return '?';
    (void)autopsy_parse_stat(span_make(text, size), &thread);
    free(text);
    return thread.state;
}

unsigned autopsy_write(const char *proc, pid_t pid, struct buf *out)
{
    char path[PATH_MAX];
    struct autopsy_thread thread;
    struct dirent *entry;
    unsigned count = 0;
    DIR *folder;

    (void)snprintf(path, sizeof path, "%s/%d/task", proc, (int)pid);
    folder = opendir(path);
    while (folder && count < AUTOPSY_THREADS && (entry = readdir(folder))) {
        struct place place = {proc, pid, entry->d_name};
        if (entry->d_name[0] == '.' || !read_thread(&place, &thread))
            continue;
        add_thread(&place, &thread, out);
        count++;
    }
    if (folder)
        (void)closedir(folder);
    return count;
}

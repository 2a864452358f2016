/* SPDX-License-Identifier: MIT */
#include "base/saved.h"

#include "base/fd.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One line; both point into the copy of the text. */
struct entry {
    const char *key;
    const char *value;
};

struct saved {
    char *memory; /* owned copy of the text, cut into strings */
    struct entry *entries;
    size_t size;
};

/* ---- Writing ---- */

void saved_text_done(struct saved_text *text)
{
    buf_done(&text->buf);
    free(text->fds);
    *text = (struct saved_text){.fd_count = 0};
}

struct saved_out saved_begin(struct saved_text *text)
{
    return (struct saved_out){.text = text};
}

/* Prefixes are of our own making and short; one that does not fit must not pass for another. */
static void join(char *out, const char *prefix, const char *name, const char *number)
{
    CHECK(snprintf(out, SAVED_PREFIX, "%s%s.%s", prefix, name, number) < SAVED_PREFIX);
}

static void join_number(char *out, const char *prefix, const char *name, uint32_t number)
{
    char digits[16];

    (void)snprintf(digits, sizeof digits, "%u.", number);
    join(out, prefix, name, digits);
}

struct saved_out saved_out_section(const struct saved_out *out, const char *name)
{
    struct saved_out inner = {.text = out->text};

    join(inner.prefix, out->prefix, name, "");
    return inner;
}

struct saved_out saved_out_item(const struct saved_out *out, const char *name, uint32_t number)
{
    struct saved_out inner = {.text = out->text};

    join_number(inner.prefix, out->prefix, name, number);
    return inner;
}

void saved_put(const struct saved_out *out, const char *name, const char *value)
{
    struct saved_text *text = out->text;
    int result;

    if (!value || text->error)
        return;
    result = buf_printf(&text->buf, "%s%s = ", out->prefix, name);
    if (result == 0)
        result = buf_append_escaped(&text->buf, span_of(value));
    if (result == 0)
        result = buf_append_byte(&text->buf, '\n');
    text->error = result;
}

void saved_put_number(const struct saved_out *out, const char *name, uint64_t value)
{
    char digits[24];

    digits[num_format(value, digits)] = '\0';
    saved_put(out, name, digits);
}

void saved_put_fd(const struct saved_out *out, const char *name, int fd)
{
    struct saved_text *text = out->text;

    if (fd < 0)
        return;
    saved_put_number(out, name, (uint64_t)fd);
    text->fds = must_resize(text->fds, (text->fd_count + 1) * sizeof *text->fds);
    text->fds[text->fd_count++] = fd;
}

/* ---- Reading ---- */

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' ||
           byte == '.' || byte == '-';
}

static bool is_key(struct span key)
{
    for (size_t i = 0; i < key.size; i++)
        if (!is_name_byte(key.data[i]))
            return false;
    return key.size > 0 && key.size < (size_t)2 * SAVED_PREFIX;
}

/* Unescaping never lengthens, so it is done where the value stands; NULs have no place in it. */
static bool unescape(char *text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        char byte = text[i];
        if (byte == '\0')
            return false;
        if (byte == '\\') {
            i++;
            if (i == size || (text[i] != 'n' && text[i] != '\\'))
                return false;
            byte = text[i] == 'n' ? '\n' : '\\';
        }
        text[used++] = byte;
    }
    text[used] = '\0';
    return true;
}

/* `line` is followed by its newline, which makes room for the NUL. */
static bool read_line(char *line, size_t size, struct entry *ret_entry)
{
    static const char between[] = " = ";
    size_t end = span_find(span_make(line, size), ' ');

    if (!is_key(span_make(line, end)) || size - end < strlen(between) ||
        memcmp(line + end, between, strlen(between)) != 0)
        return false;
    line[end] = '\0';
    *ret_entry = (struct entry){.key = line, .value = line + end + strlen(between)};
    return unescape(line + end + strlen(between), size - end - strlen(between));
}

static bool read_lines(struct saved *saved, size_t size, unsigned *ret_line)
{
    size_t start = 0;

    while (start < size) {
        size_t length = span_find(span_make(saved->memory + start, size - start), '\n');
        *ret_line = (unsigned)saved->size + 1;
        if (start + length == size)
            return false;
        saved->entries = must_resize(saved->entries, (saved->size + 1) * sizeof *saved->entries);
        if (!read_line(saved->memory + start, length, &saved->entries[saved->size]))
            return false;
        saved->size++;
        start += length + 1;
    }
    return saved->size > 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

struct saved *saved_read(struct span text, unsigned *ret_line)
{
    struct saved *saved = must_alloc(1, sizeof *saved);

    *ret_line = 1;
    if (text.size > SAVED_BYTES_MAX) {
        free(saved);
        return NULL;
    }
    saved->memory = must_alloc(1, text.size + 1);
    if (text.size)
        memcpy(saved->memory, text.data, text.size);
    if (!read_lines(saved, text.size, ret_line)) {
        saved_free(saved);
        return NULL;
    }
    qsort(saved->entries, saved->size, sizeof *saved->entries, compare);
    return saved;
}

void saved_free(struct saved *saved)
{
    if (!saved)
        return;
    free(saved->entries);
    free(saved->memory);
    free(saved);
}

struct saved_in saved_root(struct saved *saved)
{
    return (struct saved_in){.saved = saved};
}

struct saved_in saved_section(const struct saved_in *in, const char *name)
{
    struct saved_in inner = {.saved = in->saved};

    join(inner.prefix, in->prefix, name, "");
    return inner;
}

struct saved_in saved_item(const struct saved_in *in, const char *name, uint32_t number)
{
    struct saved_in inner = {.saved = in->saved};

    join_number(inner.prefix, in->prefix, name, number);
    return inner;
}

static const struct entry *find(const struct saved_in *in, const char *name)
{
    char key[2 * SAVED_PREFIX];
    struct entry wanted = {.key = key};

    if (snprintf(key, sizeof key, "%s%s", in->prefix, name) >= (int)sizeof key)
        return NULL;
    return bsearch(&wanted, in->saved->entries, in->saved->size, sizeof wanted, compare);
}

const char *saved_get(const struct saved_in *in, const char *name)
{
    const struct entry *entry = find(in, name);

    return entry ? entry->value : NULL;
}

uint64_t saved_number(const struct saved_in *in, const char *name, uint64_t most,
                      uint64_t otherwise)
{
    uint64_t value;

    if (!num_decimal(span_of(saved_get(in, name)), &value) || value > most)
        return otherwise;
    return value;
}

size_t saved_word(const struct saved_in *in, const char *name, const char *const *words,
                  size_t count)
{
    const char *value = saved_get(in, name);

    for (size_t i = 0; value && i < count; i++)
        if (words[i] && strcmp(words[i], value) == 0)
            return i;
    return count;
}

static bool is_fd_key(const char *key)
{
    struct span name = span_of(key);

    return span_ends_with(name, span_of(".fd")) || span_ends_with(name, span_of("_fd")) ||
           span_is(name, "fd");
}

/* The descriptor of a line that nobody has taken yet, or -1. What was handed over is not close-on-exec,
 * everything that this process has opened or taken is; standard descriptors are never handed over. */
static int read_fd(const struct entry *entry)
{
    uint64_t number;

    if (!is_fd_key(entry->key) || !num_decimal(span_of(entry->value), &number) ||
        number <= STDERR_FILENO || number > INT_MAX || fcntl((int)number, F_GETFD) != 0)
        return -1;
    return (int)number;
}

int saved_fd(const struct saved_in *in, const char *name)
{
    const struct entry *entry = find(in, name);
    int fd = entry ? read_fd(entry) : -1;

    return fd >= 0 && fd_set_cloexec(fd, true) == 0 ? fd : -1;
}

void saved_close_rest(struct saved *saved)
{
    for (size_t i = 0; i < saved->size; i++) {
        int fd = read_fd(&saved->entries[i]);
        fd_close(&fd);
    }
}

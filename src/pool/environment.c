/* SPDX-License-Identifier: MIT */
#include "pool/environment.h"

#include "base/ascii.h"
#include "base/buf.h"
#include "base/fd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 20 };

#define ORIGINAL "BUNDLER_ORIG_"
/* Bundler's word for "was not set". */
#define ORIGINAL_NONE "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL"

/* Variables that were meant for this process alone. */
static const char *const ours[] = {
    "LEAT_CONTROL",      "LEAT_CONTROL_FD",          "LEAT_MOLD_PID",    "LISTEN_FDS",
    "LISTEN_PID",        "LISTEN_FDNAMES",           "NOTIFY_SOCKET",    "WATCHDOG_USEC",
    "WATCHDOG_PID",      "RACKUP_HANDLER",           "RACK_HANDLER",     "LEAT_BINARY",
    "LEAT_DEFAULT_PORT", "LEAT_DEFAULT_ENVIRONMENT", "LEAT_DEFAULT_PID",
};

void environment_done(struct environment *environment)
{
    for (size_t i = 0; i < environment->size; i++)
        free(environment->items[i]);
    free(environment->items);
    *environment = (struct environment){.size = 0};
}

/* Index of the entry of that name, or size. */
static size_t find(const struct environment *environment, struct span name)
{
    for (size_t i = 0; i < environment->size; i++) {
        const char *item = environment->items[i];
        if (strncmp(item, name.data, name.size) == 0 && item[name.size] == '=')
            return i;
    }
    return environment->size;
}

/* Takes over the string. */
static void append(struct environment *environment, char *item)
{
    environment->items =
        must_resize(environment->items, (environment->size + 2) * sizeof *environment->items);
    environment->items[environment->size++] = item;
    environment->items[environment->size] = NULL;
}

void environment_copy(struct environment *environment, char *const *from)
{
    for (; from && *from; from++) {
        struct span item = span_of(*from);
        size_t equals = span_find(item, '=');
        if (equals == 0 || equals == item.size)
            continue;
        if (find(environment, span_first(item, equals)) == environment->size)
            append(environment, must_copy(*from));
    }
}

const char *environment_get(const struct environment *environment, const char *name)
{
    size_t index = find(environment, span_of(name));

    return index == environment->size ? NULL : environment->items[index] + strlen(name) + 1;
}

static void set(struct environment *environment, struct span name, struct span value)
{
    size_t index = find(environment, name);
    size_t room = name.size + value.size + 2;
    char *item = must_alloc(1, room);

    (void)snprintf(item, room, "%.*s=%.*s", SPAN_ARG(name), SPAN_ARG(value));
    if (index == environment->size) {
        append(environment, item);
    } else {
        free(environment->items[index]);
        environment->items[index] = item;
    }
}

void environment_set(struct environment *environment, const char *name, const char *value)
{
    set(environment, span_of(name), span_of(value));
}

static void remove_at(struct environment *environment, size_t index)
{
    free(environment->items[index]);
    memmove(environment->items + index, environment->items + index + 1,
            (environment->size - index) * sizeof *environment->items);
    environment->size--;
}

void environment_unset(struct environment *environment, const char *name)
{
    size_t index = find(environment, span_of(name));

    if (index < environment->size)
        remove_at(environment, index);
}

/* Puts back one BUNDLER_ORIG_NAME=value and removes it from the list. */
static void put_back(struct environment *environment, size_t index)
{
    char *text = must_copy(environment->items[index] + strlen(ORIGINAL));
    char *value = strchr(text, '=');

    *value++ = '\0';
    remove_at(environment, index);
    if (strcmp(value, ORIGINAL_NONE) == 0)
        environment_unset(environment, text);
    else
        environment_set(environment, text, value);
    free(text);
}

void environment_clean(struct environment *environment)
{
    bool bundled = false;

    for (size_t i = 0; i < environment->size;) {
        struct span item = span_of(environment->items[i]);
        if (span_starts_with(item, (struct span)SPAN(ORIGINAL))) {
            put_back(environment, i);
            bundled = true;
            i = 0;
        } else {
            i++;
        }
    }
    if (bundled)
        environment_unset(environment, "BUNDLER_SETUP");
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        environment_unset(environment, ours[i]);
}

static bool is_name(struct span name)
{
    if (name.size == 0 || ascii_is(name.data[0], ASCII_DIGIT))
        return false;
    for (size_t i = 0; i < name.size; i++)
        if (!ascii_is(name.data[i], ASCII_ALPHA | ASCII_DIGIT) && name.data[i] != '_')
            return false;
    return true;
}

/* The text within double quotes: \n, \", \\ and \$ are undone. */
static void add_unquoted(struct buf *buf, struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '\\' && i + 1 < text.size && strchr("n\"\\$", text.data[i + 1])) {
            i++;
            byte = text.data[i] == 'n' ? '\n' : text.data[i];
        }
        CHECK(buf_append_byte(buf, byte) == 0);
    }
}

/* The end of a quoted text that starts at 1, or the size when it has none. */
static size_t find_quote_end(struct span value)
{
    for (size_t i = 1; i < value.size; i++) {
        if (value.data[0] == '"' && value.data[i] == '\\')
            i++;
        else if (value.data[i] == value.data[0])
            return i;
    }
    return value.size;
}

/* Reads the right side of a line into buf; false when a quote is not closed. */
static bool read_value(struct span value, struct buf *buf)
{
    value = span_trim(value);
    if (value.size && (value.data[0] == '"' || value.data[0] == '\'')) {
        size_t end = find_quote_end(value);
        if (end == value.size)
            return false;
        if (value.data[0] == '"')
            add_unquoted(buf, span_make(value.data + 1, end - 1));
        else
            CHECK(buf_append(buf, span_make(value.data + 1, end - 1)) == 0);
        return true;
    }
    for (size_t i = 1; i < value.size; i++)
        if (value.data[i] == '#' && (value.data[i - 1] == ' ' || value.data[i - 1] == '\t'))
            value = span_trim(span_first(value, i));
    CHECK(buf_append(buf, value) == 0);
    return true;
}

static int add_line(struct environment *environment, const char *file, unsigned number,
                    struct span line, struct faults *faults)
{
    struct span name;
    struct buf value = {.size = 0};

    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    line = span_trim(line);
    if (line.size == 0 || line.data[0] == '#')
        return 0;
    if (span_starts_with(line, span_of("export ")))
        line = span_trim(span_skip(line, 7));
    name = span_trim(span_first(line, span_find(line, '=')));
    if (name.size >= line.size || !is_name(name)) {
        faults_add(faults, file, number, 1, NULL, "expected NAME=value");
        return -1;
    }
    if (!read_value(span_skip(line, span_find(line, '=') + 1), &value)) {
        faults_add(faults, file, number, 1, NULL, "the quote is not closed");
        buf_done(&value);
        return -1;
    }
    set(environment, name, buf_span(&value));
    buf_done(&value);
    return 0;
}

int environment_add_text(struct environment *environment, const char *file, struct span text,
                         struct faults *faults)
{
    unsigned number = 0;
    int result = 0;

    while (text.data)
        if (add_line(environment, file, ++number, span_split(&text, '\n'), faults) != 0)
            result = -1;
    return result;
}

int environment_read_file(struct environment *environment, const char *file, struct faults *faults)
{
    char *text;
    size_t size;
    int result = fd_read_file(file, FILE_LIMIT, &text, &size);

    if (result != 0) {
        faults_add(faults, file, 0, 0, "env_file", "cannot read: %s", strerror(-result));
        return -1;
    }
    result = environment_add_text(environment, file, span_make(text, size), faults);
    free(text);
    return result;
}

static bool is_set(const struct environment *environment, const char *name)
{
    const char *value = environment_get(environment, name);

    return value && *value;
}

/* The loader reads LD_PRELOAD as a list with colons or spaces. */
static void preload(struct environment *environment, const char *library)
{
    const char *others = environment_get(environment, "LD_PRELOAD");
    struct buf list = {.size = 0};

    if (others && strstr(others, "jemalloc"))
        return;
    CHECK(buf_printf(&list, "%s%s%s", library, others && *others ? ":" : "",
                     others ? others : "") == 0);
    set(environment, span_of("LD_PRELOAD"), buf_span(&list));
    buf_done(&list);
}

void environment_add_malloc(struct environment *environment, const char *library, uint64_t arenas)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%" PRIu64, arenas);
    if (arenas && !is_set(environment, "MALLOC_ARENA_MAX"))
        environment_set(environment, "MALLOC_ARENA_MAX", digits);
    if (library)
        preload(environment, library);
}

void environment_finish(struct environment *environment, const char *name,
                        const struct config_pool *pool)
{
    char digits[16];

    environment_set(environment, "RACK_ENV", name);
    environment_set(environment, "RAILS_ENV", name);
    environment_set(environment, "APP_ENV", name);
    (void)snprintf(digits, sizeof digits, "%u", pool->threads);
    if (!is_set(environment, "RAILS_MAX_THREADS"))
        environment_set(environment, "RAILS_MAX_THREADS", digits);
    if (pool->mount && !is_set(environment, "RAILS_RELATIVE_URL_ROOT"))
        environment_set(environment, "RAILS_RELATIVE_URL_ROOT", pool->mount);
    if (!is_set(environment, "LANG") && !is_set(environment, "LC_ALL") &&
        !is_set(environment, "LC_CTYPE"))
        environment_set(environment, "LANG", "C.UTF-8");
}

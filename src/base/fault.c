/* SPDX-License-Identifier: MIT */
#include "base/fault.h"

#include "base/fd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void faults_add(struct faults *faults, const char *file, unsigned line, unsigned column,
                const char *key, const char *format, ...)
{
    struct fault fault = {.line = line, .column = column};
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    CHECK(length >= 0);

    fault.reason = must_alloc(1, (size_t)length + 1);
    va_start(arguments, format);
    (void)vsnprintf(fault.reason, (size_t)length + 1, format, arguments);
    va_end(arguments);
    fault.file = file ? must_copy(file) : NULL;
    fault.key = key ? must_copy(key) : NULL;

    faults->items = must_resize(faults->items, (faults->size + 1) * sizeof(fault));
    faults->items[faults->size++] = fault;
}

/* A number of the place with the colon that separates it, or nothing. */
static void put_number(char out[16], unsigned number)
{
    out[0] = '\0';
    if (number)
        (void)snprintf(out, 16, ":%u", number);
}

int fault_format(const struct fault *fault, char *out, size_t room)
{
    char line[16], column[16];

    put_number(line, fault->file ? fault->line : 0);
    put_number(column, fault->file && fault->line ? fault->column : 0);
    return snprintf(out, room, "%s%s%s%s%s%s%s", fault->file ? fault->file : "", line, column,
                    fault->file ? ": " : "", fault->key ? fault->key : "", fault->key ? ": " : "",
                    fault->reason);
}

void faults_print(const struct faults *faults, int fd, const char *prefix)
{
    size_t before = strlen(prefix);

    for (size_t i = 0; i < faults->size; i++) {
        char beginning[1];
        size_t size = (size_t)fault_format(&faults->items[i], beginning, sizeof(beginning));
        char *line = must_alloc(1, before + size + 1);

        memcpy(line, prefix, before);
        (void)fault_format(&faults->items[i], line + before, size + 1);
        line[before + size] = '\n'; /* in the place of the NUL: one line, one write */
        (void)fd_write_all(fd, span_make(line, before + size + 1));
        free(line);
    }
}

void faults_done(struct faults *faults)
{
    for (size_t i = 0; i < faults->size; i++) {
        free(faults->items[i].file);
        free(faults->items[i].key);
        free(faults->items[i].reason);
    }
    free(faults->items);
    *faults = (struct faults){0};
}

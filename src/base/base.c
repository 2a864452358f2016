/* SPDX-License-Identifier: MIT */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One write of a line made on the stack: it must work without memory and beside other threads. */
static void say(const char *line, int length, size_t room)
{
    size_t size = length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
    ssize_t written;

    do
        written = write(STDERR_FILENO, line, size);
    while (written == -1 && errno == EINTR);
}

void check_failed(const char *condition, const char *file, int line)
{
    char text[512];

    say(text, snprintf(text, sizeof(text), "%s:%d: check failed: %s\n", file, line, condition),
        sizeof(text));
    abort();
}

_Noreturn static void out_of_memory(size_t size)
{
    char text[128];

    say(text, snprintf(text, sizeof(text), "leat: out of memory (%zu bytes wanted)\n", size),
        sizeof(text));
    _exit(1);
}

void *must_alloc(size_t count, size_t size)
{
    /* A size of 0 may give NULL, which callers would take for a failure. */
    void *memory = calloc(count ? count : 1, size ? size : 1);

    if (!memory)
        out_of_memory(size && count > (size_t)-1 / size ? (size_t)-1 : count * size);
    return memory;
}

void *must_resize(void *memory, size_t size)
{
    void *resized = realloc(memory, size ? size : 1);

    if (!resized)
        out_of_memory(size);
    return resized;
}

char *must_copy(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        out_of_memory(strlen(text) + 1);
    return copy;
}

/* SPDX-License-Identifier: MIT */
/*
 * The few macros every file may use; nothing else belongs here. Any thread or process may use them.
 */
#pragma once

#include <stddef.h>

/* Aborts with file and line when our own code broke its promise. Never used on input. */
#define CHECK(condition) ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__))

/* Number of elements of an array (never of a pointer). */
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* The structure of the given type whose member this pointer is. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Lets the compiler check arguments against a printf format. */
#define PRINTF_LIKE(format_index, first_argument) \
    __attribute__((format(printf, format_index, first_argument)))

/* Writes the failed condition with its place to standard error and aborts. */
_Noreturn void check_failed(const char *condition, const char *file, int line);

/* Allocates like calloc, realloc and strdup, but ends the process with one line when memory is out. */
void *must_alloc(size_t count, size_t size);
void *must_resize(void *memory, size_t size);
char *must_copy(const char *text);

/* SPDX-License-Identifier: MIT */
#include "config/allocator.h"

#include "base/base.h"

#include <stddef.h>
#include <unistd.h>

/* Debian keeps libraries in a folder named after the architecture; elsewhere one of the others it is. */
#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#elif defined(__arm__)
#define MULTIARCH "arm-linux-gnueabihf"
#elif defined(__i386__)
#define MULTIARCH "i386-linux-gnu"
#elif defined(__riscv)
#define MULTIARCH "riscv64-linux-gnu"
#elif defined(__powerpc64__)
#define MULTIARCH "powerpc64le-linux-gnu"
#elif defined(__s390x__)
#define MULTIARCH "s390x-linux-gnu"
#else
#define MULTIARCH "."
#endif

#define NAME "libjemalloc.so.2"

static const char *const paths[] = {
    "/usr/local/lib/" NAME, "/usr/lib/" MULTIARCH "/" NAME,
    "/usr/lib64/" NAME,     "/usr/lib/" NAME,
    "/lib64/" NAME,         "/lib/" NAME,
};

const char *allocator_find(void)
{
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (access(paths[i], R_OK) == 0)
            return paths[i];
    return NULL;
}

const char *allocator_missing(void)
{
    return NAME
        " is not installed (Debian: apt-get install libjemalloc2; looked for in /usr/lib/" MULTIARCH
        ", /usr/lib64, /usr/lib, /usr/local/lib)";
}

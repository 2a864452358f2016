/* SPDX-License-Identifier: MIT */
#include "pool/memory.h"

#include "base/fd.h"
#include "base/num.h"
#include "base/span.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STATM_BYTES = 256 };

uint64_t memory_resident(pid_t pid)
{
    char path[64];
    uint64_t pages;
    char *text;
    size_t size;
    struct span rest;
    bool found;

    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if (fd_read_file(path, STATM_BYTES, &text, &size) != 0)
        return UINT64_MAX;
    rest = span_make(text, size);
    (void)span_split(&rest, ' ');
    found = num_decimal(span_split(&rest, ' '), &pages);
    free(text);
    return found ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : UINT64_MAX;
}

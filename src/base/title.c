/* SPDX-License-Identifier: MIT */
#include "base/title.h"

#include "base/base.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* The memory the kernel shows as this process's command line: one for each process, like the process's
 * arguments themselves. */
static char *area;
static size_t area_size;

/* Extends the area while strings lie one behind the other. */
static void extend(char **strings)
{
    for (; *strings; strings++)
        if (*strings == area + area_size)
            area_size += strlen(*strings) + 1;
}

static void move_environment(char **list)
{
    size_t size = 0;
    char **copy;

    while (list[size])
        size++;
    copy = must_alloc(size + 1, sizeof *copy);
    for (size_t i = 0; i < size; i++)
        copy[i] = must_copy(list[i]);
    copy[size] = NULL;
    environ = copy;
}

void title_init(char **argv, char **environ_list)
{
    if (area || !argv || !argv[0])
        return;
    area = argv[0];
    extend(argv);
    extend(environ_list);
    move_environment(environ_list);
}

void title_set(const char *title)
{
    size_t size = strlen(title);

    if (area_size == 0)
        return;
    if (size >= area_size)
        size = area_size - 1;
    memset(area, 0, area_size);
    memcpy(area, title, size);
}

/* SPDX-License-Identifier: MIT */
#include "master/releases.h"

#include "master/fronts.h"
#include "pool/release.h"

#include <stdio.h>
#include <string.h>

static struct front_message make_message(const struct master_pool *pool, uint32_t place)
{
    struct front_message message = {.kind = FRONT_RELEASE, .number = place};

    memcpy(message.text, pool->releases[place], sizeof message.text);
    return message;
}

/* A path that a message has no room for is left out. */
static void list_releases(const struct pool *pool, char list[static FRONT_RELEASES][FRONT_TEXT])
{
    const char *folders[FRONT_RELEASES];
    uint32_t size = release_list(pool, folders, FRONT_RELEASES);

    memset(list, 0, FRONT_RELEASES * sizeof list[0]);
    if (size == 1 && strcmp(folders[0], pool->settings->app) == 0)
        return;
    for (uint32_t i = 0; i < size; i++)
        if (strlen(folders[i]) < sizeof list[i])
            (void)snprintf(list[i], sizeof list[i], "%s", folders[i]);
}

void releases_tell_all(struct master_pool *pool)
{
    char list[FRONT_RELEASES][FRONT_TEXT];

    list_releases(pool->pool, list);
    for (uint32_t i = 0; i < FRONT_RELEASES; i++) {
        struct front_message message;

        if (strcmp(list[i], pool->releases[i]) == 0)
            continue;
        memcpy(pool->releases[i], list[i], sizeof list[i]);
        message = make_message(pool, i);
        (void)fronts_tell_users(pool, &message);
    }
}

void releases_tell(const struct master_pool *pool, uint32_t number, struct master_front *front)
{
    for (uint32_t i = 0; i < FRONT_RELEASES; i++) {
        struct front_message message = make_message(pool, i);

        message.pool = number;
        if (message.text[0])
            fronts_tell(front, &message, NULL, 0);
    }
}

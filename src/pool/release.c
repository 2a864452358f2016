/* SPDX-License-Identifier: MIT */
#include "pool/release.h"

#include "base/base.h"
#include "pool/mold.h"

#include <stdlib.h>
#include <string.h>

void release_note(struct pool *pool, const struct mold *mold)
{
    struct pool_release *place = &pool->releases[mold->generation % POOL_RELEASES];
    char *folder;

    if (!mold->release || (place->generation == mold->generation && place->folder &&
                           strcmp(place->folder, mold->release) == 0))
        return;
    folder = strdup(mold->release);
    CHECK(folder);
    free(place->folder);
    *place = (struct pool_release){.generation = mold->generation, .folder = folder};
}

static bool has_worker(const struct pool *pool, uint32_t generation)
{
    for (uint32_t i = 0; i < pool->instance.board.shape.workers; i++)
        if (worker_is_there(&pool->workers[i]) && pool->workers[i].generation == generation)
            return true;
    return false;
}

const char *release_find(const struct pool *pool, uint32_t generation)
{
    const struct pool_release *place = &pool->releases[generation % POOL_RELEASES];

    return place->generation == generation ? place->folder : NULL;
}

static bool is_listed(const char *const *list, uint32_t size, const char *folder)
{
    for (uint32_t i = 0; i < size; i++)
        if (strcmp(list[i], folder) == 0)
            return true;
    return false;
}

uint32_t release_list(const struct pool *pool, const char **list, uint32_t room)
{
    uint32_t size = 0;

    for (uint32_t age = 0; age < POOL_RELEASES && size < room; age++) {
        uint32_t generation = pool->generation - age;
        const struct pool_release *place = &pool->releases[generation % POOL_RELEASES];

        if (place->folder && place->generation == generation && has_worker(pool, generation) &&
            !is_listed(list, size, place->folder))
            list[size++] = place->folder;
    }
    return size;
}

void release_done(struct pool *pool)
{
    for (uint32_t i = 0; i < POOL_RELEASES; i++)
        free(pool->releases[i].folder);
}

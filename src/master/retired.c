/* SPDX-License-Identifier: MIT */
#include "master/retired.h"

#include "base/log.h"
#include "master/fronts.h"

#include <inttypes.h>

static void retire(struct master_front *front)
{
    const struct edition *edition = front->edition;
    struct front_message message = {.kind = FRONT_GIVE_UP};

    for (uint32_t i = 0; i < edition->listener_size; i++) {
        if (edition->listeners[i]->fd >= 0)
            continue;
        message.number = i;
        fronts_tell(front, &message, NULL, 0);
    }
    message = (struct front_message){.kind = FRONT_RETIRE};
    fronts_tell(front, &message, NULL, 0);
    front->accepting = false;
    front->retiring = true;
}

void retired_begin(struct master *master, const struct edition *current)
{
    for (uint32_t i = 0; i < BOARD_FRONTS; i++) {
        struct master_front *front = &master->fronts[i];
        if (front->pid && !front->retiring && front->edition != current)
            retire(front);
    }
}

bool retired_are_released(const struct master *master)
{
    for (uint32_t i = 0; i < BOARD_FRONTS; i++)
        if (master->fronts[i].pid && master->fronts[i].retiring && !master->fronts[i].released)
            return false;
    return true;
}

static uint64_t count_streams(const struct front_gauges *gauges)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < FRONT_COUNTED_POOLS; i++)
        count += atomic_load_explicit(&gauges->streams[i], memory_order_relaxed);
    return count;
}

/* Requests that will come to an end by themselves. */
static bool has_requests(const struct front_gauges *gauges, uint64_t streams)
{
    uint64_t open = atomic_load_explicit(&gauges->open, memory_order_relaxed);
    uint64_t idle = atomic_load_explicit(&gauges->idle, memory_order_relaxed);

    return open > idle + streams;
}

bool retired_make_room(struct master *master)
{
    struct front_message message = {.kind = FRONT_END_STREAMS};
    struct master_front *oldest = NULL;
    uint64_t streams = 0;

    for (uint32_t i = 0; i < BOARD_FRONTS; i++) {
        struct master_front *front = &master->fronts[i];
        uint64_t its = count_streams(&master->counters->gauges[i]);
        /* One that has gone leaves its place as soon as workers let go of what it had. */
        if (!front->pid || front->ending)
            return true;
        if (!front->released || has_requests(&master->counters->gauges[i], its) ||
            (oldest && oldest->started_ms <= front->started_ms))
            continue;
        oldest = front;
        streams = its;
    }
    if (!oldest)
        return false;
    log_warn("reload: all %d places for fronts are taken; the oldest, %d, ends its %" PRIu64
             " stream%s",
             BOARD_FRONTS, (int)oldest->pid, streams, streams == 1 ? "" : "s");
    oldest->ending = true;
    fronts_tell(oldest, &message, NULL, 0);
    return true;
}

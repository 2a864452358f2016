/* SPDX-License-Identifier: MIT */
#include "front/limits.h"

enum { ROOM_PART = 256, ROOM_MAX = 64 };

enum limits_verdict limits_judge(uint64_t open, uint64_t limit, bool idle)
{
    if (!limit || open < limit)
        return LIMITS_TAKE;
    return idle ? LIMITS_MAKE_ROOM : LIMITS_REFUSE;
}

uint64_t limits_room(uint64_t limit)
{
    uint64_t part = limit / ROOM_PART;

    if (part < 1)
        return 1;
    return part < ROOM_MAX ? part : ROOM_MAX;
}

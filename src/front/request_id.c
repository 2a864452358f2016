/* SPDX-License-Identifier: MIT */
#include "front/request_id.h"

#include "base/ascii.h"
#include "base/clock.h"

#include <sys/random.h>
#include <unistd.h>

void request_ids_init(struct request_ids *ids)
{
    if (getrandom(ids->state, sizeof(ids->state), 0) != sizeof(ids->state)) {
        ids->state[0] = clock_wall_ms() ^ ((uint64_t)getpid() << 32);
        ids->state[1] = clock_us() ^ (uint64_t)(uintptr_t)ids;
    }
    if (!(ids->state[0] | ids->state[1]))
        ids->state[0] = 1;
}

/* xoroshiro128+ by Blackman and Vigna: a few nanoseconds, and ids of one loop never repeat. */
static uint64_t next(struct request_ids *ids)
{
    uint64_t a = ids->state[0], b = ids->state[1], sum = a + b;

    b ^= a;
    ids->state[0] = (a << 24 | a >> 40) ^ b ^ (b << 16);
    ids->state[1] = b << 37 | b >> 27;
    return sum;
}

bool request_id_is_valid(struct span id)
{
    if (id.size < 1 || id.size > REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < id.size; i++)
        if (!ascii_is(id.data[i], ASCII_ALPHA | ASCII_DIGIT) && id.data[i] != '-' &&
            id.data[i] != '_' && id.data[i] != '@')
            return false;
    return true;
}

void request_id_make(struct request_ids *ids, char out[REQUEST_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned half = 0; half < 2; half++) {
        uint64_t bits = next(ids);

        for (unsigned i = 0; i < 16; i++, bits >>= 4)
            out[half * 16 + i] = digits[bits & 15];
    }
}

struct span request_id_choose(struct request_ids *ids, struct span given, struct arena *arena)
{
    char *out;

    if (request_id_is_valid(given))
        return given;
    out = arena_take(arena, REQUEST_ID_SIZE);
    if (!out)
        return (struct span){0};
    request_id_make(ids, out);
    return span_make(out, REQUEST_ID_SIZE);
}

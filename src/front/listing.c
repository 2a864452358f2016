/* SPDX-License-Identifier: MIT */
#include "front/listing.h"

#include <string.h>

enum { STRINGS = 5 };

/* As it travels between two processes of one program. */
struct head {
    uint64_t age_us, run_us;
    uint32_t stage, pid;
    uint32_t sizes[STRINGS];
};

static const uint32_t bounds[STRINGS] = {LISTING_NAME, LISTING_METHOD, LISTING_PATH, LISTING_NAME,
                                         LISTING_ID};

bool listing_add(struct buf *out, const struct listing_entry *entry)
{
    const struct span strings[STRINGS] = {entry->pool, entry->method, entry->path, entry->client,
                                          entry->id};
    struct head head = {entry->age_us, entry->run_us, entry->stage, entry->pid, {0}};
    size_t size = sizeof(head);
    char *room;

    for (unsigned i = 0; i < STRINGS; i++) {
        head.sizes[i] = (uint32_t)span_first(strings[i], bounds[i]).size;
        size += head.sizes[i];
    }
    room = out->size + size <= LISTING_MAX ? buf_reserve(out, size) : NULL;
    if (!room)
        return false;
    memcpy(room, &head, sizeof(head));
    room += sizeof(head);
    for (unsigned i = 0; i < STRINGS; i++) {
        if (head.sizes[i])
            memcpy(room, strings[i].data, head.sizes[i]);
        room += head.sizes[i];
    }
    buf_grow(out, size);
    return true;
}

bool listing_next(struct span *bytes, struct listing_entry *ret_entry)
{
    struct span strings[STRINGS], rest = *bytes;
    struct head head;

    if (rest.size < sizeof(head))
        return false;
    memcpy(&head, rest.data, sizeof(head));
    rest = span_skip(rest, sizeof(head));
    for (unsigned i = 0; i < STRINGS; i++) {
        if (head.sizes[i] > bounds[i] || head.sizes[i] > rest.size)
            return false;
        strings[i] = span_first(rest, head.sizes[i]);
        rest = span_skip(rest, head.sizes[i]);
    }
    *ret_entry =
        (struct listing_entry){head.stage, head.pid,   head.age_us, head.run_us, strings[0],
                               strings[1], strings[2], strings[3],  strings[4]};
    *bytes = rest;
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "front/inquiry.h"

#include "base/base.h"
#include "base/fd.h"
#include "front/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One question, on its way through all loops. */
struct inquiry {
    struct front *front;
    uint64_t number;
    char id[REQUEST_ID_MAX];
    struct span wanted; /* in id */
    _Atomic uint32_t left;
    struct inquiry_part {
        struct post_item item;
        struct inquiry *inquiry;
        struct front_loop *loop;
        struct buf listing;
        uint32_t left_out; /* requests that found no room */
        uint32_t pool;     /* whose requests are being listed */
    } parts[];
};

static int write_listing(const struct inquiry *inquiry, int fd)
{
    int result = 0;

    for (uint32_t i = 0; i < inquiry->front->options->loops && result == 0; i++)
        result = fd_write_all(fd, buf_span(&inquiry->parts[i].listing));
    return result;
}

/* The listing in a memory file, or a negative errno. */
static int make_file(const struct inquiry *inquiry)
{
    int fd = memfd_create("leat-requests", MFD_CLOEXEC);
    int result = fd == -1 ? -errno : write_listing(inquiry, fd);

    if (result == 0 && lseek(fd, 0, SEEK_SET) == -1)
        result = -errno;
    if (result != 0 && fd >= 0)
        (void)close(fd);
    return result == 0 ? fd : result;
}

static void finish(struct inquiry *inquiry)
{
    struct front_message message = {.kind = FRONT_REQUESTS, .number = inquiry->number};
    int fd = make_file(inquiry);

    for (uint32_t i = 0; i < inquiry->front->options->loops; i++) {
        message.value += inquiry->parts[i].left_out;
        buf_done(&inquiry->parts[i].listing);
    }
    front_tell_file(inquiry->front, &message, fd < 0 ? -1 : fd);
    free(inquiry);
}

static void add(void *data, const struct rack_request *request)
{
    struct inquiry_part *part = data;
    const struct front_pool *pool = &part->inquiry->front->options->pools[part->pool];
    struct listing_entry entry = {
        .stage = request->stage,
        .pid = request->pid,
        .age_us = request->age_us,
        .run_us = request->run_us,
        .pool = span_of(pool->config->name),
        .method = request->method,
        .path = request->path,
        .client = request->client,
        .id = request->id,
    };

    part->left_out += !listing_add(&part->listing, &entry);
}

static void look(struct post_item *item)
{
    struct inquiry_part *part = CONTAINER_OF(item, struct inquiry_part, item);
    struct inquiry *inquiry = part->inquiry;

    for (part->pool = 0; part->pool < inquiry->front->options->pool_size; part->pool++) {
        struct rack *rack = part->loop->racks[part->pool];

        if (rack && inquiry->wanted.size)
            rack_kill(rack, inquiry->wanted, add, part);
        else if (rack)
            rack_list(rack, add, part);
    }
    /* The last loop sees what all others wrote before it. */
    if (atomic_fetch_sub_explicit(&inquiry->left, 1, memory_order_acq_rel) == 1)
        finish(inquiry);
}

void inquiry_start(struct front *front, uint64_t number, struct span id)
{
    uint32_t loops = front->options->loops;
    struct inquiry *inquiry = must_alloc(1, sizeof(*inquiry) + loops * sizeof(inquiry->parts[0]));

    id = span_first(id, sizeof(inquiry->id));
    inquiry->front = front;
    inquiry->number = number;
    if (id.size)
        memcpy(inquiry->id, id.data, id.size);
    inquiry->wanted = span_make(inquiry->id, id.size);
    inquiry->left = loops;
    for (uint32_t i = 0; i < loops; i++) {
        struct inquiry_part *part = &inquiry->parts[i];

        part->inquiry = inquiry;
        part->loop = front->loops[i];
        part->item.run = look;
        post_send(front->posts[i], &part->item);
    }
}

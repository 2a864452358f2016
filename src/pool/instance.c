/* SPDX-License-Identifier: MIT */
#include "pool/instance.h"

#include "base/fd.h"
#include "board/bell.h"
#include "board/slot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static uint32_t at_most(uint64_t value, uint64_t limit)
{
    return (uint32_t)(value < limit ? value : limit);
}

static struct board_shape choose_shape(const struct config *config,
                                       const struct config_pool *settings, uint32_t max,
                                       uint32_t loops)
{
    const struct config_limits *limits = &config->limits;
    uint32_t threads = settings->threads ? settings->threads : 1;

    return (struct board_shape){
        .slots = at_most(settings->queue_length + (uint64_t)threads * max, BOARD_SLOTS_MAX),
        .workers =
            at_most(at_most(2 * (uint64_t)max + 8, BOARD_WORKERS_MAX), BOARD_THREADS_MAX / threads),
        .threads = threads,
        .loops = loops,
        .slot_bytes = board_slot_bytes(limits->target, limits->header, limits->headers),
    };
}

static int open_bells(struct instance *instance)
{
    uint32_t count = BOARD_FRONTS * instance->board.shape.loops;

    for (uint32_t i = 0; i < count; i++)
        instance->board.bells[i] = -1;
    for (uint32_t i = 0; i < count; i++) {
        instance->board.bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (instance->board.bells[i] == -1)
            return -errno;
    }
    return 0;
}

static int open_report(struct instance *instance)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
        return -errno;
    instance->report = pair[0];
    instance->report_peer = pair[1];
    return fd_set_nonblocking(pair[0]);
}

int instance_open(const struct config *config, const struct config_pool *settings, uint32_t max,
                  uint32_t loops, const char *runtime, struct instance *ret_instance,
                  struct faults *faults)
{
    struct board_shape shape = choose_shape(config, settings, max, loops);
    struct instance instance = {.report = -1, .report_peer = -1};
    int result;

    CHECK(loops > 0 && loops <= INSTANCE_LOOPS_MAX);
    instance.board_fd = board_make(&shape, runtime, &instance.board);
    if (instance.board_fd < 0) {
        faults_add(faults, NULL, 0, 0, settings->name,
                   "cannot make its board (%u workers of %u threads, %u places): %s", shape.workers,
                   shape.threads, shape.slots, strerror(-instance.board_fd));
        return -1;
    }
    result = open_bells(&instance);
    if (result == 0)
        result = open_report(&instance);
    if (result != 0) {
        faults_add(faults, NULL, 0, 0, settings->name, "cannot open its descriptors: %s",
                   strerror(-result));
        instance_close(&instance);
        return -1;
    }
    memcpy(instance.runtime, instance.board.header->runtime, sizeof instance.runtime);
    *ret_instance = instance;
    return 0;
}

static const char *bell_key(uint32_t number, char *out, size_t room)
{
    (void)snprintf(out, room, "bell_%u_fd", number);
    return out;
}

void instance_save(const struct instance *instance, const struct saved_out *out)
{
    const struct board_shape *shape = &instance->board.shape;
    char key[24];

    saved_put_number(out, "layout", BOARD_VERSION);
    saved_put_number(out, "slots", shape->slots);
    saved_put_number(out, "workers", shape->workers);
    saved_put_number(out, "threads", shape->threads);
    saved_put_number(out, "loops", shape->loops);
    saved_put_number(out, "slot_bytes", shape->slot_bytes);
    saved_put_fd(out, "board_fd", instance->board_fd);
    saved_put_fd(out, "report_fd", instance->report);
    saved_put_fd(out, "report_peer_fd", instance->report_peer);
    for (uint32_t i = 0; i < BOARD_FRONTS * shape->loops; i++)
        saved_put_fd(out, bell_key(i, key, sizeof key), instance->board.bells[i]);
}

bool instance_is_adoptable(const struct saved_in *in)
{
    uint64_t loops = saved_number(in, "loops", INSTANCE_LOOPS_MAX, 0);

    return saved_number(in, "layout", UINT32_MAX, 0) == BOARD_VERSION && loops > 0;
}

/* What workers can write is not asked: the header must say what master knew of the board. */
static bool has_saved_shape(const struct board_shape *shape, const struct saved_in *in)
{
    return shape->slots == saved_number(in, "slots", UINT32_MAX, 0) &&
           shape->workers == saved_number(in, "workers", UINT32_MAX, 0) &&
           shape->threads == saved_number(in, "threads", UINT32_MAX, 0) &&
           shape->loops == saved_number(in, "loops", UINT32_MAX, 0) &&
           shape->slot_bytes == saved_number(in, "slot_bytes", UINT32_MAX, 0);
}

static int adopt_descriptors(const struct saved_in *in, struct instance *instance)
{
    uint32_t count = BOARD_FRONTS * instance->board.shape.loops;
    char key[24];

    instance->report = saved_fd(in, "report_fd");
    instance->report_peer = saved_fd(in, "report_peer_fd");
    if (instance->report == -1 || instance->report_peer == -1)
        return -EBADF;
    for (uint32_t i = 0; i < count; i++) {
        instance->board.bells[i] = saved_fd(in, bell_key(i, key, sizeof key));
        if (instance->board.bells[i] == -1)
            return -EBADF;
    }
    return 0;
}

int instance_adopt(const struct saved_in *in, struct instance *ret_instance)
{
    struct instance instance = {.report = -1, .report_peer = -1};
    int result;

    if (!instance_is_adoptable(in))
        return -EPROTO;
    instance.board_fd = saved_fd(in, "board_fd");
    if (instance.board_fd == -1)
        return -EBADF;
    result = board_map(instance.board_fd, false, &instance.board);
    if (result == 0 && !has_saved_shape(&instance.board.shape, in))
        result = -EPROTO;
    if (result == 0)
        result = adopt_descriptors(in, &instance);
    if (result != 0) {
        instance_close(&instance);
        return result;
    }
    memcpy(instance.runtime, instance.board.header->runtime, sizeof instance.runtime);
    *ret_instance = instance;
    return 0;
}

void instance_close(struct instance *instance)
{
    if (instance->board_fd == -1)
        return;
    for (uint32_t i = 0; i < BOARD_FRONTS * instance->board.shape.loops; i++)
        fd_close(&instance->board.bells[i]);
    board_unmap(&instance->board);
    fd_close(&instance->board_fd);
    fd_close(&instance->report);
    fd_close(&instance->report_peer);
}

size_t instance_descriptors(const struct instance *instance, int death_pipe, int *out)
{
    size_t bells = BOARD_FRONTS * instance->board.shape.loops;

    out[0] = instance->report_peer;
    out[1] = death_pipe;
    out[2] = instance->board_fd;
    memcpy(out + INSTANCE_FIXED, instance->board.bells, bells * sizeof *out);
    return INSTANCE_FIXED + bells;
}

static struct board_worker *entry(const struct instance *instance, uint32_t worker)
{
    CHECK(worker < instance->board.shape.workers);
    return &instance->board.workers[worker];
}

void instance_begin(const struct instance *instance, uint32_t worker, pid_t pid,
                    uint32_t generation)
{
    struct board_worker *place = entry(instance, worker);

    atomic_store_explicit(&place->generation, generation, memory_order_relaxed);
    atomic_store_explicit(&place->life, BOARD_STARTING, memory_order_relaxed);
    /* Pairs with the worker's acquire: once it sees its PID it may use the entry. */
    atomic_store_explicit(&place->pid, (uint32_t)pid, memory_order_release);
}

void instance_serve(const struct instance *instance, uint32_t worker)
{
    /* Pairs with the acquire of fronts and of the worker's own threads. */
    atomic_store_explicit(&entry(instance, worker)->life, BOARD_ALIVE, memory_order_release);
}

void instance_retire(const struct instance *instance, uint32_t worker)
{
    const struct board *board = &instance->board;

    /* Before the bells: a thread that wakes must see it. */
    atomic_store_explicit(&entry(instance, worker)->life, BOARD_RETIRING, memory_order_seq_cst);
    for (uint32_t i = 0; i < board->shape.threads; i++)
        bell_ring_thread(board, board_thread_of(board, worker, i));
}

void instance_end(const struct instance *instance, uint32_t worker)
{
    /* Pairs with the acquire of the fronts' audit. */
    atomic_store_explicit(&entry(instance, worker)->life, BOARD_DEAD, memory_order_release);
}

uint32_t instance_busy(const struct instance *instance, uint32_t worker)
{
    return atomic_load_explicit(&entry(instance, worker)->busy, memory_order_relaxed);
}

uint32_t instance_streams(const struct instance *instance, uint32_t worker)
{
    return atomic_load_explicit(&entry(instance, worker)->streams, memory_order_relaxed);
}

uint32_t instance_late(const struct instance *instance, uint32_t worker)
{
    const struct board *board = &instance->board;
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < board->shape.slots; slot++) {
        struct slot_word word = slot_look(board, slot);
        count += slot_is_held(word) && board_worker_of(board, word.owner) == worker &&
                 slot_get_note(board, slot) == SLOT_LATE;
    }
    return count;
}

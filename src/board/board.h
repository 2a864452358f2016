/* SPDX-License-Identifier: MIT */
/*
 * The board: one sealed memory file per Rack pool instance, shared by master, its fronts and the
 * pool's workers. It holds one fair queue of requests (slots) and each worker thread's reply pages.
 * README.md in this folder has the numbered rules: who may write which word, in what order, and what
 * survives a crash. Nothing in a board is ever allocated or freed, it holds no pointer, and a process
 * may die between any two instructions.
 *
 *   +--------+--------+---------+---------+-------+-------+-----------------+----------------+
 *   | header | fronts | workers | threads | words | notes | pages           | slots          |
 *   +--------+--------+---------+---------+-------+-------+-----------------+----------------+
 *
 * Master makes it, a front inherits the mapping, a worker maps it after its fork. The front trusts
 * nothing it reads here: shape and offsets are copied into struct board once, when it is made or
 * mapped, and every later index is checked against that private copy.
 */
#pragma once

#include "base/span.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    BOARD_MAGIC = 0x7461656c, /* "leat" */
    BOARD_VERSION = 3,
    BOARD_FRONTS = 8,     /* fronts that may hold slots at once, draining ones included */
    BOARD_LOOPS_MAX = 64, /* loop threads of one front */
    BOARD_WORKERS_MAX = 2056,
    BOARD_THREADS_MAX = 16384, /* workers * threads at most: an owner number has 14 bits */
    BOARD_SLOTS_MAX = 1 << 20, /* a page word has 20 bits for the slot */
    BOARD_PAGES = 16,          /* reply pages of one worker thread */
    BOARD_PAGE_BYTES = 16384,
    BOARD_RUNTIME_BYTES = 256, /* longest path prefix of the descriptor sockets, NUL included */
    BOARD_BODY_INLINE = 32768, /* a request body up to this many bytes travels in its slot */
    BOARD_LINE = 64            /* words with different writers stay on different cache lines */
};

/* What fixes the size of everything; the same for the life of a board. */
struct board_shape {
    uint32_t slots;      /* queue length + worker threads, 1 .. BOARD_SLOTS_MAX */
    uint32_t workers;    /* worker entries: 2 * max + 8, 1 .. BOARD_WORKERS_MAX */
    uint32_t threads;    /* threads of one worker, 1.. */
    uint32_t loops;      /* loop threads of one front, 1 .. BOARD_LOOPS_MAX */
    uint32_t slot_bytes; /* of one slot: request head and small body; a multiple of 4096 */
};

/* The first bytes of the file. Written by master before anybody else maps it, save where noted. */
struct board_header {
    uint32_t magic;
    uint32_t version;
    struct board_shape shape;
    uint64_t bytes;                    /* of the whole file */
    char runtime[BOARD_RUNTIME_BYTES]; /* descriptor sockets are RUNTIME.0 .. RUNTIME.7 */
    _Alignas(BOARD_LINE) _Atomic uint32_t ticket; /* next ticket; fronts add */
    _Alignas(
        BOARD_LINE) _Atomic uint32_t high; /* slots from here up are FREE; fronts, see queue.h */
    _Alignas(BOARD_LINE) _Atomic uint64_t wake;     /* the wake in flight, see bell.h; 0 = none */
    _Alignas(BOARD_LINE) _Atomic uint32_t sleepers; /* threads asleep on the queue; never too low */
    _Atomic uint32_t naps;                          /* counts sleeps, to find the latest sleeper */
};

/* What a front or a worker is, as far as master knows. Master is the only writer. */
enum board_life {
    BOARD_FREE,     /* entry unused */
    BOARD_STARTING, /* worker: forked, not yet serving */
    BOARD_ALIVE,
    BOARD_RETIRING, /* worker: takes nothing new; front: accepts nothing new */
    BOARD_DEAD      /* ended; what it held has not yet been given back by everybody */
};

/* One front. Its loops' `asleep` words and notice bits follow the table, see board_asleep. */
struct board_front {
    _Alignas(BOARD_LINE) _Atomic uint32_t life; /* enum board_life; master */
    _Atomic uint32_t pid;                       /* master */
};

/* One worker process. */
struct board_worker {
    _Alignas(BOARD_LINE) _Atomic uint32_t life; /* enum board_life; master */
    _Atomic uint32_t pid;                       /* master, before the worker proceeds */
    _Atomic uint32_t generation;                /* master */
    _Atomic uint32_t audited;  /* bit per front that has given back; fronts, master clears */
    _Atomic uint32_t question; /* number of the last one put to it; master */
    _Atomic uint32_t bell; /* futex word of its main thread; master and the worker add 1 to ring */
    _Alignas(BOARD_LINE) _Atomic uint32_t ready; /* 1 = serving; worker */
    _Atomic uint32_t busy;          /* threads that answer or tidy up after an answer; worker */
    _Atomic uint64_t requests;      /* finished since it started; worker */
    _Atomic uint64_t service_ns;    /* of one request, a running mean; 0 = none yet; worker */
    _Atomic uint64_t taken_us;      /* when it took its latest request (clock_us); worker */
    _Atomic uint64_t private_bytes; /* own smaps_rollup, measured when idle; worker */
    _Atomic uint64_t pss_bytes;
    _Atomic uint64_t rss_bytes;
    _Atomic uint64_t done_us; /* when it last ended a request; worker */
    _Atomic uint32_t streams; /* connections that its application holds; worker */
};

/* What a worker thread sleeps for. */
enum board_sleep { BOARD_AWAKE, BOARD_SLEEP_QUEUE, BOARD_SLEEP_PAGE };

/* What a front's loop does, as far as its ringers know. */
enum board_loop { BOARD_LOOP_AWAKE, BOARD_LOOP_ASLEEP, BOARD_LOOP_RUNG };

/* One worker thread: thread number = worker * shape.threads + index. */
struct board_thread {
    _Alignas(BOARD_LINE) _Atomic uint32_t bell; /* futex word; whoever rings adds 1 */
    _Atomic uint32_t asleep; /* enum board_sleep; the thread alone, audit when it is dead */
    _Atomic uint32_t nap;    /* header.naps when it fell asleep; the thread */
    _Alignas(BOARD_LINE) _Atomic uint64_t pages[BOARD_PAGES]; /* page words, see page.h */
};

/* One process's view of a board. Owned by its user, not shared; one struct may be used by all threads
 * of the process, as nothing in it changes after board_make or board_map. */
struct board {
    struct board_header *header; /* the mapping */
    struct board_shape shape;    /* checked private copy */
    size_t bytes;
    struct board_front *fronts;
    struct board_worker *workers;
    struct board_thread *threads;
    _Atomic uint32_t *asleep;  /* [front][loop]: enum board_loop; the loop, RUNG by a ringer */
    _Atomic uint64_t *notices; /* [front][loop][thread / 64]: a bit per thread with news */
    _Atomic uint64_t *words;   /* [slot], see slot.h */
    _Atomic uint32_t *notes;   /* [slot], see slot.h */
    char *pages;               /* [thread][BOARD_PAGES][BOARD_PAGE_BYTES] */
    char *slots;               /* [slot][shape.slot_bytes] */
    int bells[BOARD_FRONTS *
              BOARD_LOOPS_MAX]; /* eventfd of [front * loops + loop]; set by the user */
    uint32_t notice_words;      /* 64-bit words of notices per loop */
};

/* The slot size that holds any head within these limits (bytes of the request target, of all fields,
 * number of fields) and a small body. */
uint32_t board_slot_bytes(size_t target, size_t header, size_t fields);

/* Makes the memory file, sealed against changes of size, writes the header and maps it. runtime is the
 * path prefix of the descriptor sockets. Returns the descriptor (close-on-exec, owned by the caller) or
 * a negative errno; -EINVAL when the shape is out of range. Master only. */
int board_make(const struct board_shape *shape, const char *runtime, struct board *ret_board);

/* Maps a board that master made; dontfork: children of this process do not inherit the mapping
 * (workers). 0 or a negative errno; -EPROTO when it is not a board of this version or not sealed. Does
 * not own fd. */
int board_map(int fd, bool dontfork, struct board *ret_board);

/* Unmaps; harmless on a board of zeros. */
void board_unmap(struct board *board);

/* The thread number of a worker's n-th thread, and back. */
static inline uint32_t board_thread_of(const struct board *board, uint32_t worker, uint32_t index)
{
    return worker * board->shape.threads + index;
}

static inline uint32_t board_worker_of(const struct board *board, uint32_t thread)
{
    return thread / board->shape.threads;
}

static inline uint32_t board_thread_count(const struct board *board)
{
    return board->shape.workers * board->shape.threads;
}

/* Whether an entry's process lives, or is about to: it may hold slots and is told what happens. */
static inline bool board_is_live(uint32_t life)
{
    return life == BOARD_STARTING || life == BOARD_ALIVE || life == BOARD_RETIRING;
}

/* Whether the worker that this thread number belongs to lives; false for numbers out of range. */
static inline bool board_thread_lives(const struct board *board, uint32_t thread)
{
    return thread < board_thread_count(board) &&
           board_is_live(atomic_load(&board->workers[board_worker_of(board, thread)].life));
}

/* The asleep word of a front's loop; the notice words of a front's loop. */
static inline _Atomic uint32_t *board_asleep(const struct board *board, uint32_t front,
                                             uint32_t loop)
{
    return &board->asleep[front * board->shape.loops + loop];
}

static inline _Atomic uint64_t *board_notices(const struct board *board, uint32_t front,
                                              uint32_t loop)
{
    return &board->notices[(front * board->shape.loops + loop) * board->notice_words];
}

/* Gives the memory of idle slots from `above` up back to the system: claims each FREE slot for
 * itself, punches its pages out of the file and frees it. fd is the board's. Master only. Returns
 * the number of slots emptied. */
uint32_t board_trim(const struct board *board, int fd, uint32_t above);

/* SPDX-License-Identifier: MIT */
#include "board/board.h"

#include "base/base.h"
#include "board/slot.h"
#include "board/step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MEMORY_PAGE = 4096,
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
    TRIM_RUN = 64,   /* slots that master holds at once while it empties them */
    OWN_FIELDS = 16, /* fields that the front adds (forwarding, request id) */
    OWN_BYTES = 4096 /* method, protocol, names, addresses, and the fields above */
};

/* Where each part lies, in bytes from the start of the file. */
struct layout {
    uint64_t fronts;
    uint64_t workers;
    uint64_t threads;
    uint64_t asleep;
    uint64_t notices;
    uint64_t words;
    uint64_t notes;
    uint64_t pages;
    uint64_t slots;
    uint64_t bytes;
    uint32_t notice_words;
};

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* Puts a part of count * size bytes behind *end and moves *end. Every part begins on its own cache
 * line, so that words of different writers never share one across parts. */
static uint64_t place(uint64_t *end, uint64_t count, uint64_t size, uint64_t alignment)
{
    uint64_t start = round_up(*end, alignment);

    *end = start + count * size;
    return start;
}

static bool shape_is_sound(const struct board_shape *shape)
{
    return shape->slots >= 1 && shape->slots <= BOARD_SLOTS_MAX && shape->workers >= 1 &&
           shape->workers <= BOARD_WORKERS_MAX && shape->threads >= 1 &&
           shape->threads <= BOARD_THREADS_MAX / shape->workers && shape->loops >= 1 &&
           shape->loops <= BOARD_LOOPS_MAX && shape->slot_bytes >= MEMORY_PAGE &&
           shape->slot_bytes % MEMORY_PAGE == 0;
}

/* The shape is sound, so that no product leaves 64 bits. */
static struct layout layout_of(const struct board_shape *shape)
{
    uint64_t threads = (uint64_t)shape->workers * shape->threads;
    uint64_t loops = (uint64_t)BOARD_FRONTS * shape->loops;
    uint64_t end = sizeof(struct board_header);
    struct layout at;

    at.notice_words = (uint32_t)round_up((threads + 63) / 64, BOARD_LINE / sizeof(uint64_t));
    at.fronts = place(&end, BOARD_FRONTS, sizeof(struct board_front), BOARD_LINE);
    at.workers = place(&end, shape->workers, sizeof(struct board_worker), BOARD_LINE);
    at.threads = place(&end, threads, sizeof(struct board_thread), BOARD_LINE);
    at.asleep = place(&end, loops, sizeof(uint32_t), BOARD_LINE);
    at.notices = place(&end, loops * at.notice_words, sizeof(uint64_t), BOARD_LINE);
    at.words = place(&end, shape->slots, sizeof(uint64_t), BOARD_LINE);
    at.notes = place(&end, shape->slots, sizeof(uint32_t), BOARD_LINE);
    at.pages = place(&end, threads * BOARD_PAGES, BOARD_PAGE_BYTES, MEMORY_PAGE);
    at.slots = place(&end, shape->slots, shape->slot_bytes, MEMORY_PAGE);
    at.bytes = end;
    return at;
}

static void attach(struct board *board, char *memory, const struct board_shape *shape,
                   const struct layout *at)
{
    board->header = (struct board_header *)memory;
    board->shape = *shape;
    board->bytes = (size_t)at->bytes;
    board->fronts = (struct board_front *)(memory + at->fronts);
    board->workers = (struct board_worker *)(memory + at->workers);
    board->threads = (struct board_thread *)(memory + at->threads);
    board->asleep = (_Atomic uint32_t *)(memory + at->asleep);
    board->notices = (_Atomic uint64_t *)(memory + at->notices);
    board->words = (_Atomic uint64_t *)(memory + at->words);
    board->notes = (_Atomic uint32_t *)(memory + at->notes);
    board->pages = memory + at->pages;
    board->slots = memory + at->slots;
    board->notice_words = at->notice_words;
    for (size_t i = 0; i < ARRAY_LEN(board->bells); i++)
        board->bells[i] = -1;
}

static int map_whole(int fd, const struct layout *at, char **ret_memory)
{
    void *memory;

    if (at->bytes > SIZE_MAX / 2)
        return -EOVERFLOW;
    memory = mmap(NULL, (size_t)at->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    *ret_memory = memory;
    return 0;
}

static int make_file(uint64_t bytes)
{
    int fd = memfd_create("leat-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error;

    if (fd == -1)
        return -errno;
    if (bytes <= INT64_MAX && ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    error = bytes <= INT64_MAX ? errno : EOVERFLOW;
    (void)close(fd);
    return -error;
}

static void write_header(struct board_header *header, const struct board_shape *shape,
                         uint64_t bytes, struct span runtime)
{
    header->magic = BOARD_MAGIC;
    header->version = BOARD_VERSION;
    header->shape = *shape;
    header->bytes = bytes;
    memcpy(header->runtime, runtime.data, runtime.size);
}

/* Whether the file is as large as its shape says and can never become smaller (README 2). */
static int check_file(int fd, struct board_shape *ret_shape)
{
    struct board_header header;
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1 || (seals & SEALS) != SEALS)
        return -EPROTO;
    if (fstat(fd, &info) == -1)
        return -errno;
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return -EPROTO;
    if (header.magic != BOARD_MAGIC || header.version != BOARD_VERSION ||
        !shape_is_sound(&header.shape) || info.st_size < 0 ||
        layout_of(&header.shape).bytes != header.bytes || (uint64_t)info.st_size != header.bytes ||
        !memchr(header.runtime, 0, sizeof(header.runtime)))
        return -EPROTO;
    *ret_shape = header.shape;
    return 0;
}

/* Claims up to TRIM_RUN free slots from start on for master, whose number as an owner is one behind the
 * last front's. Returns where the run ends. */
static uint32_t claim_run(const struct board *board, uint32_t start)
{
    uint32_t slot = start;

    for (; slot < board->shape.slots && slot - start < TRIM_RUN; slot++) {
        uint64_t seen = atomic_load_explicit(&board->words[slot], memory_order_relaxed);
        struct slot_word word = slot_unpack(seen);

        if (word.state != SLOT_FREE)
            break;
        word = (struct slot_word){SLOT_FILLING, BOARD_FRONTS, word.turn, 0};
        /* Acquire: partner of the release with which the slot became FREE. */
        if (!atomic_compare_exchange_strong_explicit(&board->words[slot], &seen, slot_pack(word),
                                                     memory_order_acquire, memory_order_relaxed))
            break;
    }
    return slot;
}

static void free_run(const struct board *board, uint32_t start, uint32_t end)
{
    for (uint32_t slot = start; slot < end; slot++) {
        uint32_t turn =
            slot_unpack(atomic_load_explicit(&board->words[slot], memory_order_relaxed)).turn;

        /* Release: partner of the acquire in slot_claim. */
        atomic_store_explicit(&board->words[slot],
                              slot_pack((struct slot_word){SLOT_FREE, 0, turn, 0}),
                              memory_order_release);
    }
}

static bool punch(const struct board *board, int fd, uint32_t start, uint32_t end)
{
    off_t at = (off_t)(board->slots - (char *)board->header);
    off_t size = (off_t)board->shape.slot_bytes;
    int result;

    do
        result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at + start * size,
                           (end - start) * size);
    while (result == -1 && errno == EINTR);
    return result == 0;
}

uint32_t board_slot_bytes(size_t target, size_t header, size_t fields)
{
    uint64_t bytes = sizeof(struct slot_request) + OWN_BYTES + BOARD_BODY_INLINE;

    /* The target comes a second time as path and query, which are decoded copies. */
    bytes += 2 * (uint64_t)target + header + (fields + OWN_FIELDS) * sizeof(struct slot_field);
    bytes = round_up(bytes, MEMORY_PAGE);
    return bytes > INT32_MAX ? (uint32_t)INT32_MAX / MEMORY_PAGE * MEMORY_PAGE : (uint32_t)bytes;
}

int board_make(const struct board_shape *shape, const char *runtime, struct board *ret_board)
{
    struct span prefix = span_of(runtime);
    struct layout at;
    char *memory = NULL;
    int fd, result;

    if (!shape_is_sound(shape))
        return -EINVAL;
    if (prefix.size >= BOARD_RUNTIME_BYTES)
        return -ENAMETOOLONG;
    at = layout_of(shape);
    fd = make_file(at.bytes);
    if (fd < 0)
        return fd;
    result = map_whole(fd, &at, &memory);
    if (result < 0) {
        (void)close(fd);
        return result;
    }
    attach(ret_board, memory, shape, &at);
    write_header(ret_board->header, shape, at.bytes, prefix);
    return fd;
}

int board_map(int fd, bool dontfork, struct board *ret_board)
{
    struct board_shape shape;
    struct layout at;
    char *memory = NULL;
    int result = check_file(fd, &shape);

    if (result < 0)
        return result;
    at = layout_of(&shape);
    result = map_whole(fd, &at, &memory);
    if (result < 0)
        return result;
    if (dontfork && madvise(memory, (size_t)at.bytes, MADV_DONTFORK) == -1) {
        result = -errno;
        (void)munmap(memory, (size_t)at.bytes);
        return result;
    }
    attach(ret_board, memory, &shape, &at);
    return 0;
}

void board_unmap(struct board *board)
{
    if (board->header)
        (void)munmap(board->header, board->bytes);
    *board = (struct board){0};
}

uint32_t board_trim(const struct board *board, int fd, uint32_t above)
{
    uint32_t emptied = 0;

    for (uint32_t start = above; start < board->shape.slots;) {
        uint32_t end = claim_run(board, start);

        if (end == start) {
            start++;
            continue;
        }
        emptied += punch(board, fd, start, end) ? end - start : 0;
        free_run(board, start, end);
        start = end;
    }
    return emptied;
}

#ifdef LEAT_CRASH_POINTS
#include <signal.h>

/* The words of the points, for CRASH_AT. */
static const char *const step_words[] = {
#define ROW(constant, word, what) [STEP_##constant] = word,
#include "board/step.def"
#undef ROW
};

void board_reached(enum board_step step)
{
    const char *wanted = getenv("CRASH_AT");
    const char *once = getenv("CRASH_ONCE");
    int fd;

    if (!wanted || strcmp(wanted, step_words[step]) != 0)
        return;
    if (once) {
        fd = open(once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd == -1)
            return;
        (void)close(fd);
    }
    (void)kill(getpid(), SIGKILL);
}
#endif

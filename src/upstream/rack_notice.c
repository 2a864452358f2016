/* SPDX-License-Identifier: MIT */
/*
 * How answers come in: workers set a bit per thread and ring the loop's eventfd only while the loop
 * sleeps, so that a busy loop finds them at the end of each batch without a system call.
 */
#include "base/base.h"
#include "base/log.h"
#include "board/bell.h"
#include "upstream/rack_table.h"

#include <string.h>
#include <sys/epoll.h>

enum { BROKEN_LOG_S = 60 };

static bool collect_one(struct rack *rack, struct rack_entry *entry)
{
    const struct board *board = rack->options.board;
    uint32_t slot = (uint32_t)(entry - rack->entries);
    struct slot_word word = slot_look(board, slot);

    if (word.turn == entry->turn && word.state != SLOT_DONE && word.state != SLOT_FREE)
        return false;
    rack_forget(rack, entry);
    /* In any other state somebody gave it away for us. */
    if (word.turn == entry->turn && word.state == SLOT_DONE)
        (void)slot_free(board, slot);
    return true;
}

uint32_t rack_collect(struct rack *rack)
{
    uint32_t count = 0;

    list_for_each_safe (link, &rack->orphans)
        count += collect_one(rack, CONTAINER_OF(link, struct rack_entry, orphan));
    return count;
}

/* A page that nobody of this loop waits for: of an orphan it is thrown away, all else is the business of
 * another loop or front. */
static void discard(struct rack *rack, uint32_t thread, const struct rack_entry *entry)
{
    struct page_word seen;
    uint32_t slot = (uint32_t)(entry - rack->entries);
    int page = page_find(rack->options.board, thread, slot, entry->turn, &seen);

    if (page >= 0)
        page_release(rack->options.board, thread, (unsigned)page, seen);
}

static void take_page(struct rack *rack, uint32_t thread, struct rack_job *job)
{
    const struct board *board = rack->options.board;
    struct page_word seen;
    int page = page_find(board, thread, job->slot, job->turn, &seen);

    if (page < 0)
        return;
    if (seen.bytes > BOARD_PAGE_BYTES) {
        page_release(board, thread, (unsigned)page, seen);
        rack_break(job, board_worker_of(board, thread), "page size");
        return;
    }
    memcpy(rack->page, page_bytes(board, thread, (unsigned)page), seen.bytes);
    page_release(board, thread, (unsigned)page, seen);
    if (job->thread == RACK_NOBODY)
        job->thread = thread;
    if (job->thread != thread)
        rack_break(job, board_worker_of(board, thread), "another thread's page");
    else
        rack_take_records(job, span_make(rack->page, seen.bytes));
}

/* Whether a job's pages wait for its client. Not once its worker is done with it: the pages are then needed
 * for that thread's next answer, which must not wait for this one's client. */
static bool is_waiting(const struct rack *rack, const struct rack_job *job)
{
    return job->is_held_back && slot_look(rack->options.board, job->slot).state != SLOT_DONE;
}

static bool take_word(struct rack *rack, uint32_t thread, struct page_word word)
{
    const struct board *board = rack->options.board;
    struct rack_entry *entry;

    if (word.slot >= board->shape.slots)
        return false;
    entry = &rack->entries[word.slot];
    if (!entry->held || entry->turn != word.turn)
        return false;
    if (!entry->job)
        discard(rack, thread, entry);
    else if (!is_waiting(rack, entry->job))
        take_page(rack, thread, entry->job);
    return true;
}

static unsigned take_pages(struct rack *rack, uint32_t thread)
{
    struct page_word words[BOARD_PAGES];
    unsigned count = page_list(rack->options.board, thread, words);
    unsigned taken = 0;

    for (unsigned i = 0; i < count; i++)
        taken += take_word(rack, thread, words[i]);
    return taken;
}

void rack_take_thread(struct rack *rack, uint32_t thread)
{
    (void)take_pages(rack, thread);
}

/* A thread that says it is DONE without having answered would leave its client waiting for ever. */
static void find_unanswered(struct rack *rack, uint32_t thread)
{
    const struct board *board = rack->options.board;

    for (uint32_t slot = 0; slot < rack->top; slot++) {
        struct rack_job *job = rack->entries[slot].job;
        struct slot_word word;

        if (!job)
            continue;
        word = slot_look(board, slot);
        if (word.state != SLOT_DONE || word.turn != job->turn || word.owner != thread)
            continue;
        /* The order of writing is pages, then DONE: whatever it published is visible by now. */
        take_pages(rack, thread);
        job = rack_find_job(rack, slot, word.turn);
        if (job)
            rack_break(job, board_worker_of(board, thread), "no end");
    }
}

/* A thread rang without an answer that could be taken. */
static void explain(struct rack *rack, uint32_t thread)
{
    const struct board *board = rack->options.board;
    uint32_t worker = board_worker_of(board, thread);

    find_unanswered(rack, thread);
    if (!page_is_broken(board, thread))
        return;
    if (log_allow(span_of("broken-page"), BROKEN_LOG_S, NULL))
        log_error("pool=%s worker=%u wrote a page word that cannot be, it is replaced",
                  rack->options.pool, worker);
    rack->options.owner->on_broken(rack->options.owner_data, worker);
}

static bool take_group(struct rack *rack, uint32_t group, uint64_t bits)
{
    uint32_t count = board_thread_count(rack->options.board);
    bool any = bits != 0;

    while (bits) {
        uint32_t thread = group * 64 + (uint32_t)__builtin_ctzll(bits);

        bits &= bits - 1;
        if (thread >= count)
            continue;
        if (!take_pages(rack, thread) && !rack_collect(rack))
            explain(rack, thread);
    }
    return any;
}

static bool take_notices(struct rack *rack)
{
    const struct rack_options *options = &rack->options;
    bool any = false;

    for (uint32_t group = 0; group < options->board->notice_words; group++)
        any |= take_group(rack, group,
                          bell_take_notices(options->board, options->front, options->loop, group));
    if (!list_is_empty(&rack->orphans))
        (void)rack_collect(rack);
    return any;
}

/* News that came while the batch ran are taken before the loop even tries to sleep: that spares the
 * workers' side the bell. */
static bool on_sleep(struct loop_hook *hook)
{
    struct rack *rack = CONTAINER_OF(hook, struct rack, hook);
    const struct rack_options *options = &rack->options;

    if (take_notices(rack))
        return false;
    return bell_front_sleep(options->board, options->front, options->loop);
}

static void on_wake(struct loop_hook *hook)
{
    struct rack *rack = CONTAINER_OF(hook, struct rack, hook);
    const struct rack_options *options = &rack->options;

    bell_front_wake(options->board, options->front, options->loop);
    (void)take_notices(rack);
}

/* The bell only ends the sleep; on_wake has taken the news. A ringer that came to its write late has left
 * the descriptor readable, which would keep the loop from sleeping. */
static void on_bell(struct watch *watch, uint32_t events)
{
    struct rack *rack = CONTAINER_OF(watch, struct rack, bell);

    (void)events;
    bell_front_empty(rack->options.board, rack->options.front, rack->options.loop);
}

int rack_listen(struct rack *rack)
{
    const struct rack_options *options = &rack->options;
    const struct board *board = options->board;
    int bell = board->bells[options->front * board->shape.loops + options->loop];
    int error = loop_watch(rack->loop, &rack->bell, bell, EPOLLIN, on_bell);

    if (error)
        return error;
    rack->hook = (struct loop_hook){.on_sleep = on_sleep, .on_wake = on_wake};
    loop_add_hook(rack->loop, &rack->hook);
    return 0;
}

void rack_unlisten(struct rack *rack)
{
    list_remove(&rack->hook.link);
    loop_unwatch(&rack->bell);
}

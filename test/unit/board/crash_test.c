/* SPDX-License-Identifier: MIT */
/*
 * Stops a party at every point of step.def and audits. All parties of a small pool live in this one
 * process and take turns by a fixed script; the one that reaches the chosen point for the n-th time is
 * left there for good (longjmp), declared dead and audited by the others, who go on until every request
 * has its answer. Sleepers are woken only by what the board's code really did: a futex wake or an
 * eventfd, so that a lost wake is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void on_step(int step);
static long on_futex(const void *word, int operation, ...);
#define BOARD_STEP(constant) on_step(STEP_##constant)

#include "board/board.c"
#include "board/page.c"
#include "board/slot.c"

/* The static names that two of the sources use. */
#define is_before                  is_ticket_before
#define change                     audit_change
#define syscall(number, word, ...) on_futex(word, __VA_ARGS__)
#include "board/audit.c"
#include "board/bell.c"
#include "board/check.c"
#include "board/queue.c"

#include "world.h"

#include <poll.h>

enum {
    FRONTS = 2,
    WORKERS = 2,
    THREADS = 2, /* of one worker; actors are the fronts, then the threads */
    ACTORS = FRONTS + WORKERS * THREADS,
    SLOTS = 48,
    JOBS = 128,
    SENDING = 80, /* rounds in which requests arrive */
    ROUNDS = 400,
    TIMES_MAX = 200 /* one point is never reached more often than this by the script */
};

enum outcome { WAITING, ANSWERED, BROKEN, GONE, CANCELLED };

/* A request as its front remembers it, and how often the application saw it. */
struct job {
    uint32_t front;
    uint32_t slot;
    uint32_t turn;
    enum outcome outcome;
    unsigned runs;
    bool again;    /* it was run again once after CALLED */
    bool repeats;  /* the method allows that */
    uint32_t data; /* bytes of the answer taken so far */
};

/* What a worker thread knows. */
struct seat {
    int64_t slot; /* -1 = none */
    unsigned job;
    int phase;
    bool sleeps; /* in the system's hands until its bell's futex is woken */
    struct page_writer writer;
};

static struct {
    struct world world;
    struct job jobs[JOBS];
    unsigned job_count;
    struct seat seats[WORKERS * THREADS];
    bool front_sleeps[FRONTS];
    uint64_t now_us;
    jmp_buf stop;
    int target; /* the point, and how often it is passed before somebody stops; -1 = never */
    unsigned passes;
    bool stopped;
    bool planned; /* worker 1 is to be killed once while it holds a request, between two steps */
    uint32_t auditor; /* the front that audits a dead worker now */
} play;

static void on_step(int step)
{
    if (step != play.target || play.passes-- > 0)
        return;
    play.target = -1;
    play.stopped = true;
    longjmp(play.stop, 1);
}

/* Only wakes come here: nobody waits in this process. */
static long on_futex(const void *word, int operation, ...)
{
    for (uint32_t thread = 0; thread < WORKERS * THREADS; thread++)
        if (operation == FUTEX_WAKE && word == &play.world.board.threads[thread].bell)
            play.seats[thread].sleeps = false;
    return 0;
}

static struct board *board(void)
{
    return &play.world.board;
}

static bool is_there(uint32_t actor)
{
    return actor >= FRONTS || atomic_load(&board()->fronts[actor].life) == BOARD_ALIVE;
}

/* ---- A front ---- */

static bool is_rung(uint32_t front)
{
    struct pollfd bell = {board()->bells[front * WORLD_LOOPS], POLLIN, 0};

    return poll(&bell, 1, 0) == 1;
}

static void send_one(uint32_t front)
{
    struct job *job = &play.jobs[play.job_count];
    struct slot_span part;
    int64_t slot;

    *job = (struct job){.front = front, .outcome = GONE, .repeats = play.job_count % 2};
    slot = slot_claim(board(), front, &job->turn);
    if (slot < 0)
        return;
    job->slot = (uint32_t)slot;
    slot_begin(board(), job->slot, front, 0);
    if (!slot_append(board(), job->slot, span_make((char *)&play.job_count, sizeof(unsigned)),
                     &part))
        fail();
    /* Only what is known to be queued counts as accepted; a front that dies in between has told nobody. */
    play.job_count++;
    job->outcome = WAITING;
    if (!queue_push(board(), job->slot, play.now_us))
        fail();
    (void)bell_wake_worker(board(), play.now_us, false);
}

static void take_page(struct job *job, uint32_t thread, int page, struct page_word word)
{
    struct span bytes = span_make(page_bytes(board(), thread, (unsigned)page), word.bytes), payload;
    struct page_record record;
    bool broken;

    while (page_next(&bytes, &record, &payload, &broken))
        job->data += record.size;
    assert_false(broken);
    page_release(board(), thread, (unsigned)page, word);
}

/* Takes what is there of one answer; frees the slot when it is whole. */
static void collect(struct job *job)
{
    struct slot_word word = slot_look(board(), job->slot);
    struct page_word seen;
    int page;

    if (word.turn != job->turn || word.state < SLOT_TAKEN || word.state > SLOT_DONE)
        return;
    while ((page = page_find(board(), word.owner, job->slot, job->turn, &seen)) >= 0)
        take_page(job, word.owner, page, seen);
    if (word.state != SLOT_DONE)
        return;
    job->outcome = job->outcome == WAITING ? ANSWERED : job->outcome;
    assert_true(slot_free(board(), job->slot));
}

static bool is_mine(const struct job *job, uint32_t front)
{
    return job->front == front && (job->outcome == WAITING || job->outcome == CANCELLED);
}

static void collect_all(uint32_t front)
{
    for (uint32_t word = 0; word < board()->notice_words; word++)
        (void)bell_take_notices(board(), front, 0, word);
    for (unsigned i = 0; i < play.job_count; i++)
        if (is_mine(&play.jobs[i], front))
            collect(&play.jobs[i]);
}

/* Cancels the front's youngest queued request, or tells the worker that the client left. */
static void give_one_up(uint32_t front)
{
    for (unsigned i = play.job_count; i-- > 0;) {
        struct job *job = &play.jobs[i];

        if (job->front != front || job->outcome != WAITING)
            continue;
        job->outcome = CANCELLED;
        if (queue_cancel(board(), job->slot, job->turn))
            (void)slot_free(board(), job->slot);
        else
            slot_set_note(board(), job->slot, SLOT_LEFT);
        return;
    }
}

/* The timer of bell_wake_worker's callers. */
static void repeat_wake(void)
{
    if (queue_oldest_us(board(), play.now_us) >= 0)
        (void)bell_wake_worker(board(), play.now_us, false);
}

/* How many requests come in this round. */
static unsigned arriving(unsigned round)
{
    if (round == 20 || round == 60)
        return 14;
    return round > 2 && round < SENDING && round % 8 == 0;
}

static void run_front(uint32_t front, unsigned round)
{
    unsigned count = arriving(round);

    repeat_wake();
    if (play.front_sleeps[front] && !is_rung(front) && count == 0)
        return;
    play.front_sleeps[front] = false;
    bell_front_wake(board(), front, 0);
    bell_front_empty(board(), front, 0);
    while (count-- > 0)
        send_one(front);
    collect_all(front);
    if (round % 9 == 5)
        give_one_up(front);
    play.front_sleeps[front] = bell_front_sleep(board(), front, 0);
}

/* ---- A worker thread ---- */

static void nap(struct seat *seat, uint32_t thread)
{
    uint32_t bell = bell_prepare(board(), thread, BOARD_SLEEP_QUEUE);

    seat->sleeps = queue_is_empty(board()) && atomic_load(&board()->threads[thread].bell) == bell;
    if (!seat->sleeps)
        bell_stay(board(), thread);
}

static void take_one(struct seat *seat, uint32_t thread)
{
    struct slot_word word;

    bell_stay(board(), thread);
    seat->slot = queue_take(board(), thread, &word);
    if (seat->slot < 0) {
        nap(seat, thread);
        return;
    }
    bell_pass_on(board(), play.now_us);
    seat->phase = 0;
    seat->writer.slot = (uint32_t)seat->slot;
    seat->writer.turn = word.turn;
    memcpy(&seat->job,
           (char *)slot_request(board(), seat->writer.slot) + sizeof(struct slot_request),
           sizeof(seat->job));
}

/* One page of the answer, if there is room; waits for the front otherwise. */
static bool write_page(struct seat *seat, uint32_t thread, uint8_t type)
{
    if (page_is_lost(&seat->writer))
        return true;
    if (!page_can_write(&seat->writer)) {
        (void)bell_prepare(board(), thread, BOARD_SLEEP_PAGE);
        seat->sleeps = !page_can_write(&seat->writer) && !page_is_lost(&seat->writer);
        if (!seat->sleeps)
            bell_stay(board(), thread);
        return false;
    }
    memset(page_put(&seat->writer, type, 0, 8), 0, 8);
    page_publish(&seat->writer);
    return true;
}

static void run_thread(uint32_t thread)
{
    struct seat *seat = &play.seats[thread];

    if (seat->sleeps)
        return;
    if (seat->slot < 0) {
        take_one(seat, thread);
        return;
    }
    bell_stay(board(), thread);
    if (seat->phase == 0) {
        /* The application sees it from here on: a thread that stops inside has not run it. */
        assert_true(slot_advance(board(), seat->writer.slot, thread, SLOT_CALLED));
        play.jobs[seat->job].runs++;
    } else if (seat->phase == 1) {
        assert_true(slot_advance(board(), seat->writer.slot, thread, SLOT_REPLYING));
    } else if (seat->phase < 7) {
        if (!write_page(seat, thread, seat->phase < 6 ? PAGE_DATA : PAGE_END))
            return;
    } else {
        assert_true(slot_finish(board(), seat->writer.slot, thread));
        seat->slot = -1;
    }
    seat->phase++;
}

/* ---- Deaths ---- */

static struct job *find_job(uint32_t slot, uint32_t turn)
{
    for (unsigned i = 0; i < play.job_count; i++)
        if (play.jobs[i].slot == slot && play.jobs[i].turn == turn &&
            (play.jobs[i].outcome == WAITING || play.jobs[i].outcome == CANCELLED))
            return &play.jobs[i];
    return NULL;
}

/* The crash rules of the front, as far as the board is concerned. */
static void judge(void *context, uint32_t slot, struct slot_word word)
{
    struct job *job = find_job(slot, word.turn);

    (void)context;
    assert_non_null(job);
    collect(job);
    if (word.state == SLOT_DONE)
        return;
    if (job->outcome == WAITING && job->data == 0 &&
        (word.state == SLOT_TAKEN || (job->repeats && !job->again))) {
        job->again |= word.state != SLOT_TAKEN;
        assert_true(queue_push_again(board(), slot, word, job->front));
        return;
    }
    if (job->outcome == WAITING)
        job->outcome = BROKEN;
    assert_true(slot_free(board(), slot));
}

static void bury_worker(uint32_t worker)
{
    atomic_store(&board()->workers[worker].life, BOARD_DEAD);
    for (uint32_t front = 0; front < FRONTS; front++) {
        if (!is_there(front))
            continue;
        play.auditor = front;
        bell_ring_front(board(), front, 0);
        audit_worker(board(), worker, front, 0, judge, NULL);
        assert_false(audit_worker_free(board(), worker));
        audit_worker_done(board(), worker, front);
    }
    assert_true(audit_worker_free(board(), worker));
    for (uint32_t i = 0; i < THREADS; i++)
        play.seats[worker * THREADS + i] =
            (struct seat){.slot = -1, .writer = {.board = board(), .thread = worker * THREADS + i}};
    atomic_store(&board()->workers[worker].life, BOARD_ALIVE);
    atomic_store(&board()->workers[worker].ready, 1);
}

static void bury_front(uint32_t front)
{
    atomic_store(&board()->fronts[front].life, BOARD_DEAD);
    for (unsigned i = 0; i < play.job_count; i++)
        if (is_mine(&play.jobs[i], front))
            play.jobs[i].outcome = GONE;
    (void)audit_front(board(), front);
}

static void bury(uint32_t actor)
{
    const char *broken;

    if (actor < FRONTS)
        bury_front(actor);
    else
        bury_worker((actor - FRONTS) / THREADS);
    broken = board_audit(board());
    if (broken)
        fail_msg("after a death: %s", broken);
}

/* ---- The script ---- */

/* volatile: it is read after a longjmp. */
static void act(volatile uint32_t actor, unsigned round)
{
    if (!is_there(actor))
        return;
    if (setjmp(play.stop)) {
        bury(actor);
        return;
    }
    if (actor < FRONTS)
        run_front(actor, round);
    else
        run_thread(actor - FRONTS);
}

static bool is_over(void)
{
    for (unsigned i = 0; i < play.job_count; i++)
        if (play.jobs[i].outcome == WAITING)
            return false;
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (slot_look(board(), slot).state != SLOT_FREE)
            return false;
    return true;
}

static void check_end(void)
{
    for (uint32_t front = 0; front < FRONTS; front++)
        if (atomic_load(&board()->fronts[front].life) == BOARD_DEAD)
            assert_int_equal(audit_front(board(), front), 0);
    for (unsigned i = 0; i < play.job_count; i++) {
        const struct job *job = &play.jobs[i];

        if (job->outcome == WAITING)
            fail_msg("request %u was lost", i);
        if (job->runs > 1U + job->again)
            fail_msg("request %u ran %u times", i, job->runs);
        if (job->outcome == ANSWERED && (job->data != 5 * 8 || job->runs == 0))
            fail_msg("request %u: %u bytes of its answer", i, job->data);
    }
    world_is_empty(&play.world);
}

/* Whether a thread of the worker has taken a request that the application has not seen. */
static bool holds_unseen(uint32_t worker)
{
    for (uint32_t i = worker * THREADS; i < (worker + 1) * THREADS; i++)
        if (play.seats[i].slot >= 0 && play.seats[i].phase == 0)
            return true;
    return false;
}

/* A front that stops in its audit dies too; those that are left audit again. */
static void kill_as_planned(uint32_t worker)
{
    play.planned = false;
    if (setjmp(play.stop))
        bury_front(play.auditor);
    bury_worker(worker);
}

/* Plays once; whoever passes the point for the given time is stopped there. planned: worker 1 is killed
 * between two steps as well, so that requests are run again. Returns whether anybody was stopped. */
static bool play_once(int step, unsigned passes, bool planned)
{
    memset(&play, 0, sizeof(play));
    world_open(&play.world, SLOTS, WORKERS, THREADS);
    play.target = step;
    play.passes = passes;
    play.planned = planned;
    for (uint32_t i = 0; i < WORKERS * THREADS; i++)
        play.seats[i] = (struct seat){.slot = -1, .writer = {.board = board(), .thread = i}};
    for (unsigned round = 0; round < ROUNDS && (round < SENDING + 40 || !is_over()); round++) {
        play.now_us += 2000;
        if (play.planned && round > 20 && holds_unseen(1))
            kill_as_planned(1);
        for (uint32_t actor = 0; actor < ACTORS; actor++)
            act(actor, round);
    }
    check_end();
    world_close(&play.world);
    return play.stopped;
}

static const char *const words[] = {
#define ROW(constant, word, what) [STEP_##constant] = word,
#include "board/step.def"
#undef ROW
};

static void nothing_is_lost_when_nobody_stops(void **state)
{
    (void)state;

    assert_false(play_once(-1, 0, false));
    assert_false(play_once(-1, 0, true));
}

static void a_party_may_stop_at_every_point(void **state)
{
    (void)state;

    for (int step = 0; step < BOARD_STEPS; step++) {
        bool planned = step == STEP_SLOT_REQUEUED;
        unsigned times = 0;

        while (times < TIMES_MAX && play_once(step, times, planned))
            times++;
        if (times == 0)
            fail_msg("%s is never reached", words[step]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_when_nobody_stops),
        cmocka_unit_test(a_party_may_stop_at_every_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A front hands over many requests to four worker threads, as fast as it goes, with real futexes and
 * eventfds: once to two processes of which one is killed again and again, once to threads of this
 * process, so that thread sanitizer can look on. Every answer must be the one to its request.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "board/audit.c"
#include "world.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
    WORKERS = 2,
    THREADS = 2,
    SLOTS = 40,
    IN_FLIGHT = 32,
    REQUESTS = 200000, /* as many as the time allows */
    LONGEST_MS = 4000,
    KILL_EVERY_MS = 40
};

#ifdef __SANITIZE_THREAD__
enum { HAS_TSAN = 1 };
#else
enum { HAS_TSAN = 0 };
#endif

/* One request in flight, by slot: the front's private copy. */
struct job {
    bool used;
    bool left; /* its client is gone */
    uint32_t turn;
    uint64_t number;
    uint64_t bytes; /* of the answer taken so far */
    bool wrong;
    bool ended;
};

struct stress {
    struct world world;
    struct job jobs[SLOTS];
    uint64_t sent, answered, cancelled, left, again;
    unsigned in_flight;
    pid_t workers[WORKERS];
    uint32_t seed;
};

static uint32_t draw(struct stress *stress, uint32_t limit)
{
    stress->seed = stress->seed * 1664525 + 1013904223;
    return (stress->seed >> 8) % limit;
}

/* ---- A worker thread ---- */

static bool wait_for_page(struct page_writer *writer)
{
    while (!page_can_write(writer)) {
        uint32_t bell = bell_prepare(writer->board, writer->thread, BOARD_SLEEP_PAGE);

        if (page_is_lost(writer)) {
            bell_stay(writer->board, writer->thread);
            return false;
        }
        if (page_can_write(writer))
            bell_stay(writer->board, writer->thread);
        else
            (void)bell_sleep(writer->board, writer->thread, bell, -1);
    }
    return !page_is_lost(writer);
}

/* An answer of 1 to 7 pages, each of records that hold the request's number. */
static void answer(struct page_writer *writer, uint64_t number)
{
    for (uint64_t page = 0; page <= number % 64 % 7; page++) {
        if (!wait_for_page(writer))
            return;
        memcpy(page_put(writer, PAGE_DATA, 0, sizeof(number)), &number, sizeof(number));
        if (page == number % 64 % 7)
            (void)page_put(writer, PAGE_END, 0, 0);
        page_publish(writer);
    }
}

static void serve(struct page_writer *writer, uint32_t slot, uint32_t turn)
{
    const struct board *board = writer->board;
    const struct slot_request *request = slot_request(board, slot);
    uint64_t number;

    memcpy(&number, slot_text(board, slot, request->path).data, sizeof(number));
    writer->slot = slot;
    writer->turn = turn;
    writer->used = 0;
    CHECK(slot_advance(board, slot, writer->thread, SLOT_CALLED));
    CHECK(slot_advance(board, slot, writer->thread, SLOT_REPLYING));
    answer(writer, number);
    CHECK(slot_finish(board, slot, writer->thread));
}

static bool is_retiring(const struct board *board, uint32_t thread)
{
    return atomic_load(&board->workers[board_worker_of(board, thread)].life) == BOARD_RETIRING;
}

static void rest(const struct board *board, uint32_t thread)
{
    uint32_t bell = bell_prepare(board, thread, BOARD_SLEEP_QUEUE);

    if (!queue_is_empty(board) || is_retiring(board, thread))
        bell_stay(board, thread);
    else
        (void)bell_sleep(board, thread, bell, -1);
}

static void *run_thread(void *memory)
{
    struct page_writer *writer = memory;
    const struct board *board = writer->board;
    struct board_worker *worker = &board->workers[board_worker_of(board, writer->thread)];
    bool has_slept = false;

    while (!is_retiring(board, writer->thread)) {
        struct slot_word word;
        int64_t slot = queue_take(board, writer->thread, &word);

        if (slot < 0) {
            rest(board, writer->thread);
            has_slept = true;
            continue;
        }
        atomic_fetch_add(&worker->busy, 1);
        if (has_slept)
            bell_pass_on(board, clock_us());
        has_slept = false;
        serve(writer, (uint32_t)slot, word.turn);
        atomic_fetch_sub(&worker->busy, 1);
    }
    return NULL;
}

static void start_threads(const struct board *board, uint32_t worker, pthread_t ids[THREADS],
                          struct page_writer writers[THREADS])
{
    for (uint32_t i = 0; i < THREADS; i++) {
        writers[i] =
            (struct page_writer){.board = board, .thread = board_thread_of(board, worker, i)};
        CHECK(pthread_create(&ids[i], NULL, run_thread, &writers[i]) == 0);
    }
}

static void start_process(struct stress *stress, uint32_t worker)
{
    const struct board *board = &stress->world.board;
    pthread_t ids[THREADS];
    struct page_writer writers[THREADS];

    atomic_store(&board->workers[worker].life, BOARD_STARTING);
    stress->workers[worker] = fork();
    assert_int_not_equal(stress->workers[worker], -1);
    if (stress->workers[worker] == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        start_threads(board, worker, ids, writers);
        for (uint32_t i = 0; i < THREADS; i++)
            (void)pthread_join(ids[i], NULL);
        _exit(0);
    }
    atomic_store(&board->workers[worker].ready, 1);
    atomic_store(&board->workers[worker].life, BOARD_ALIVE);
}

/* ---- The front ---- */

static void send_one(struct stress *stress)
{
    const struct board *board = &stress->world.board;
    uint32_t turn;
    int64_t slot = slot_claim(board, 0, &turn);
    struct job *job;

    assert_in_range(slot, 0, SLOTS - 1);
    job = &stress->jobs[slot];
    assert_false(job->used);
    *job = (struct job){.used = true, .turn = turn, .number = stress->sent++};
    slot_begin(board, (uint32_t)slot, 0, 0);
    assert_true(slot_append(board, (uint32_t)slot,
                            span_make((char *)&job->number, sizeof(job->number)),
                            &slot_request(board, (uint32_t)slot)->path));
    assert_true(queue_push(board, (uint32_t)slot, clock_us()));
    (void)bell_wake_worker(board, clock_us(), false);
    stress->in_flight++;
}

static void end_job(struct stress *stress, uint32_t slot)
{
    struct job *job = &stress->jobs[slot];

    assert_true(slot_free(&stress->world.board, slot));
    job->used = false;
    stress->in_flight--;
}

/* Clients that leave: the request is cancelled, or its worker told. */
static void give_up_some(struct stress *stress)
{
    uint32_t slot = draw(stress, SLOTS);
    struct job *job = &stress->jobs[slot];

    if (!job->used || job->left)
        return;
    if (queue_cancel(&stress->world.board, slot, job->turn)) {
        stress->cancelled++;
        end_job(stress, slot);
    } else {
        job->left = true;
        slot_set_note(&stress->world.board, slot, SLOT_LEFT);
    }
}

static void take_page(struct job *job, const struct board *board, uint32_t thread, int page,
                      struct page_word word)
{
    struct span bytes = span_make(page_bytes(board, thread, (unsigned)page), word.bytes), payload;
    struct page_record record;
    bool broken;

    while (page_next(&bytes, &record, &payload, &broken)) {
        job->ended |= record.type == PAGE_END;
        job->bytes += record.size;
        if (record.type == PAGE_DATA)
            job->wrong |= memcmp(payload.data, &job->number, sizeof(job->number)) != 0;
    }
    assert_false(broken);
    page_release(board, thread, (unsigned)page, word);
}

/* Takes what is there of the answer in a slot. Returns whether it is whole and the slot free. */
static bool collect(struct stress *stress, uint32_t slot, struct slot_word word)
{
    const struct board *board = &stress->world.board;
    struct job *job = &stress->jobs[slot];
    struct page_word seen;
    int page;

    while ((page = page_find(board, word.owner, slot, job->turn, &seen)) >= 0)
        take_page(job, board, word.owner, page, seen);
    if (word.state != SLOT_DONE)
        return false;
    assert_false(job->wrong);
    if (!job->left) {
        assert_true(job->ended);
        assert_int_equal(job->bytes, (job->number % 64 % 7 + 1) * sizeof(job->number));
    }
    stress->left += job->left;
    stress->answered += !job->left;
    end_job(stress, slot);
    return true;
}

static void collect_all(struct stress *stress)
{
    const struct board *board = &stress->world.board;

    for (uint32_t i = 0; i < board->notice_words; i++)
        (void)bell_take_notices(board, 0, 0, i);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct slot_word word = slot_look(board, slot);

        if (stress->jobs[slot].used && word.state >= SLOT_TAKEN && word.state <= SLOT_DONE) {
            assert_int_equal(word.turn, stress->jobs[slot].turn);
            (void)collect(stress, slot, word);
        }
    }
}

/* Sleeps until news, or 5 ms while something is queued. A worker that does not answer for a second is a
 * lost wake. */
static void rest_front(struct stress *stress)
{
    const struct board *board = &stress->world.board;
    struct pollfd bell = {board->bells[0], POLLIN, 0};
    bool queued = !queue_is_empty(board);
    int ready = 1;

    if (bell_front_sleep(board, 0, 0)) {
        ready = poll(&bell, 1, queued ? BELL_REPEAT_MS : 1000);
        if (ready == 1)
            bell_front_empty(board, 0, 0);
    }
    bell_front_wake(board, 0, 0);
    if (ready == 0 && !queued)
        fail_msg("nobody rings, %u in flight", stress->in_flight);
    if (queued)
        (void)bell_wake_worker(board, clock_us(), false);
}

/* All requests may be run again here; what was taken of a broken answer is forgotten. */
static void judge(void *context, uint32_t slot, struct slot_word word)
{
    struct stress *stress = context;
    struct job *job = &stress->jobs[slot];

    assert_true(job->used);
    if (collect(stress, slot, word))
        return;
    if (job->left) {
        stress->left++;
        end_job(stress, slot);
        return;
    }
    job->bytes = 0;
    job->ended = false;
    stress->again++;
    assert_true(queue_push_again(&stress->world.board, slot, word, 0));
    (void)bell_wake_worker(&stress->world.board, clock_us(), false);
}

static void kill_one(struct stress *stress)
{
    const struct board *board = &stress->world.board;
    uint32_t worker = draw(stress, WORKERS);

    assert_int_equal(kill(stress->workers[worker], SIGKILL), 0);
    assert_int_equal(waitpid(stress->workers[worker], NULL, 0), stress->workers[worker]);
    atomic_store(&board->workers[worker].life, BOARD_DEAD);
    bell_ring_front(board, 0, 0);
    audit_worker(board, worker, 0, 0, judge, stress);
    audit_worker_done(board, worker, 0);
    assert_true(audit_worker_free(board, worker));
    start_process(stress, worker);
}

static void run_front(struct stress *stress, bool kills)
{
    uint64_t start_ms = clock_ms(), now_ms = start_ms, kill_ms = start_ms + KILL_EVERY_MS;

    while (stress->in_flight || (stress->sent < REQUESTS && now_ms - start_ms < LONGEST_MS)) {
        bool more = stress->sent < REQUESTS && now_ms - start_ms < LONGEST_MS;

        while (more && stress->in_flight < IN_FLIGHT)
            send_one(stress);
        if (draw(stress, 16) == 0)
            give_up_some(stress);
        if (kills && now_ms >= kill_ms) {
            kill_one(stress);
            kill_ms = now_ms + KILL_EVERY_MS + draw(stress, KILL_EVERY_MS);
        }
        rest_front(stress);
        collect_all(stress);
        now_ms = clock_ms();
    }
    print_message("%llu requests in %llu ms: %llu cancelled, %llu left, %llu run again\n",
                  (unsigned long long)stress->sent, (unsigned long long)(now_ms - start_ms),
                  (unsigned long long)stress->cancelled, (unsigned long long)stress->left,
                  (unsigned long long)stress->again);
}

static void open_stress(struct stress *stress)
{
    *stress = (struct stress){.seed = (uint32_t)clock_us()};
    world_open(&stress->world, SLOTS, WORKERS, THREADS);
    atomic_store(&stress->world.board.fronts[1].life, BOARD_FREE);
}

static void retire(struct stress *stress)
{
    const struct board *board = &stress->world.board;

    for (uint32_t worker = 0; worker < WORKERS; worker++)
        atomic_store(&board->workers[worker].life, BOARD_RETIRING);
    for (uint32_t thread = 0; thread < board_thread_count(board); thread++)
        bell_ring_thread(board, thread);
}

static void close_stress(struct stress *stress)
{
    assert_int_equal(stress->answered + stress->cancelled + stress->left, stress->sent);
    world_is_empty(&stress->world);
    world_close(&stress->world);
}

static void two_processes_answer_everything_though_they_are_killed(void **state)
{
    struct stress stress;
    (void)state;

    if (HAS_TSAN)
        skip();
    open_stress(&stress);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        start_process(&stress, worker);
    run_front(&stress, true);
    retire(&stress);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        assert_int_equal(waitpid(stress.workers[worker], NULL, 0), stress.workers[worker]);
    assert_true(stress.again > 0);
    close_stress(&stress);
}

static void threads_answer_everything(void **state)
{
    struct stress stress;
    pthread_t ids[WORKERS][THREADS];
    struct page_writer writers[WORKERS][THREADS];
    (void)state;

    open_stress(&stress);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        start_threads(&stress.world.board, worker, ids[worker], writers[worker]);
    run_front(&stress, false);
    retire(&stress);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        for (uint32_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(ids[worker][i], NULL), 0);
    close_stress(&stress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_answer_everything_though_they_are_killed),
        cmocka_unit_test(threads_answer_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

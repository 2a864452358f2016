/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <ruby/thread.h>
#include <unistd.h>

enum {
    MEAN_REQUESTS = 8,  /* the running mean of service times follows the last few */
    PATIENCE_US = 1000, /* a request this young may wait for an emptier process */
};

/* Set in every child that the worker forks: a fact about the process, so it belongs to no object. */
static bool is_foreign;

static void mark_foreign(void)
{
    is_foreign = true;
}

bool ext_is_foreign(void)
{
    return is_foreign;
}

/* ---- Leat::Board: the mapping */

static void place_free(void *memory)
{
    struct place *place = memory;

    if (!is_foreign)
        board_unmap(&place->board);
    xfree(place);
}

static size_t place_size(const void *memory)
{
    (void)memory;
    return sizeof(struct place);
}

const rb_data_type_t place_type = {
    .wrap_struct_name = "Leat::Board",
    .function = {.dfree = place_free, .dsize = place_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

struct place *place_get(VALUE self)
{
    struct place *place = rb_check_typeddata(self, &place_type);

    if (is_foreign || !place->board.header)
        rb_raise(rb_eIOError, "the board is not open in this process");
    return place;
}

static VALUE place_alloc(VALUE class)
{
    struct place *place;

    return TypedData_Make_Struct(class, struct place, &place_type, place);
}

static struct board_worker *entry(const struct place *place)
{
    return &place->board.workers[place->worker];
}

static void set_bells(struct board *board, VALUE bells)
{
    size_t count = BOARD_FRONTS * (size_t)board->shape.loops;

    if ((size_t)RARRAY_LEN(bells) != count)
        rb_raise(rb_eArgError, "expected %zu bells, got %ld", count, RARRAY_LEN(bells));
    for (size_t i = 0; i < count; i++)
        board->bells[i] = NUM2INT(rb_ary_entry(bells, (long)i));
}

/* Board.new(descriptor, worker index, bells): maps it so that children do not inherit the mapping. */
static VALUE place_initialize(VALUE self, VALUE fd, VALUE worker, VALUE bells)
{
    struct place *place = rb_check_typeddata(self, &place_type);
    uint32_t index = NUM2UINT(worker);
    int error = board_map(NUM2INT(fd), true, &place->board);

    if (error < 0)
        rb_syserr_fail(-error, "the board");
    if (index >= place->board.shape.workers)
        rb_raise(rb_eRangeError, "no worker entry %u", index);
    place->worker = index;
    place->report = -1;
    Check_Type(bells, T_ARRAY);
    set_bells(&place->board, bells);
    (void)pthread_atfork(NULL, NULL, mark_foreign);
    return self;
}

/* The PID that master wrote into this worker's entry. */
static VALUE place_pid(VALUE self)
{
    struct place *place = place_get(self);

    /* Acquire: what master wrote before the PID is visible. */
    return UINT2NUM(atomic_load_explicit(&entry(place)->pid, memory_order_acquire));
}

static VALUE place_ready(VALUE self)
{
    struct place *place = place_get(self);

    /* Release: a front that sees it finds the threads' entries as they are. */
    atomic_store_explicit(&entry(place)->ready, 1, memory_order_release);
    return Qnil;
}

static void stop_taking(struct place *place)
{
    const struct board *board = &place->board;

    if (atomic_exchange(&place->is_stopping, true))
        return;
    /* Release: from here on no front wakes this worker for the queue. */
    atomic_store_explicit(&entry(place)->ready, 0, memory_order_release);
    for (uint32_t i = 0; i < board->shape.threads; i++)
        bell_ring_thread(board, board_thread_of(board, place->worker, i));
}

/* Board#retire: every thread finishes its request and takes no more. */
static VALUE place_retire(VALUE self)
{
    stop_taking(place_get(self));
    return Qnil;
}

static bool is_retiring(struct place *place)
{
    if (atomic_load_explicit(&place->is_stopping, memory_order_relaxed))
        return true;
    /* Acquire pairs with master's store before it rings the threads. */
    if (atomic_load_explicit(&entry(place)->life, memory_order_acquire) < BOARD_RETIRING)
        return false;
    stop_taking(place);
    return true;
}

static VALUE place_is_retiring(VALUE self)
{
    return is_retiring(place_get(self)) ? Qtrue : Qfalse;
}

/* Board#report(descriptor, last request): master is told there of this process's memory, and when it has
 * answered as many requests as it shall (0 = any number). */
static VALUE place_report(VALUE self, VALUE descriptor, VALUE last_request)
{
    struct place *place = place_get(self);

    place->report = NUM2INT(descriptor);
    place->last_request = NUM2ULL(last_request);
    return Qnil;
}

/* Board#streams = count: connections that the application holds. */
static VALUE place_set_streams(VALUE self, VALUE count)
{
    /* Relaxed: a gauge. */
    atomic_store_explicit(&entry(place_get(self))->streams, NUM2UINT(count), memory_order_relaxed);
    return count;
}

static VALUE place_threads(VALUE self)
{
    return UINT2NUM(place_get(self)->board.shape.threads);
}

static VALUE place_measure(VALUE self)
{
    measure_now(place_get(self));
    RB_GC_GUARD(self);
    return Qnil;
}

/* ---- Leat::Seat: one thread */

static void seat_mark(void *memory)
{
    struct seat *seat = memory;

    rb_gc_mark(seat->place_object);
    rb_gc_mark(seat->reporter);
    rb_gc_mark(seat->template);
    rb_gc_mark(seat->input);
    rb_gc_mark(seat->id);
    rb_gc_mark(seat->thread_object);
    for (int i = 0; i < ENV_CACHED; i++)
        rb_gc_mark(seat->cached[i]);
}

static void seat_free(void *memory)
{
    struct seat *seat = memory;

    if (seat->socket != -1)
        (void)close(seat->socket);
    buf_done(&seat->head.bytes);
    xfree(seat);
}

static size_t seat_size(const void *memory)
{
    const struct seat *seat = memory;

    return sizeof(*seat) + seat->head.bytes.room;
}

const rb_data_type_t seat_type = {
    .wrap_struct_name = "Leat::Seat",
    .function = {.dmark = seat_mark, .dfree = seat_free, .dsize = seat_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

struct seat *seat_get(VALUE self)
{
    struct seat *seat = rb_check_typeddata(self, &seat_type);

    if (!seat->place)
        rb_raise(rb_eIOError, "a seat without a board");
    return seat;
}

struct seat *seat_get_held(VALUE self)
{
    struct seat *seat = seat_get(self);

    if (is_foreign)
        rb_raise(rb_eIOError, "a forked child cannot answer");
    if (seat->slot < 0)
        rb_raise(rb_eIOError, "the request was answered");
    return seat;
}

static VALUE seat_alloc(VALUE class)
{
    struct seat *seat;
    VALUE self = TypedData_Make_Struct(class, struct seat, &seat_type, seat);

    seat->place_object = seat->reporter = seat->template = seat->input = seat->id =
        seat->thread_object = Qnil;
    for (int i = 0; i < ENV_CACHED; i++)
        seat->cached[i] = Qnil;
    seat->slot = -1;
    seat->socket = -1;
    return self;
}

/* Seat.new(board, index, fixed env, reporter, old rack): made by the thread that will take. */
static VALUE seat_initialize(VALUE self, VALUE place_object, VALUE index, VALUE fixed,
                             VALUE reporter, VALUE is_old_rack)
{
    struct seat *seat = rb_check_typeddata(self, &seat_type);
    struct place *place = place_get(place_object);

    if (NUM2UINT(index) >= place->board.shape.threads)
        rb_raise(rb_eRangeError, "no thread %u", NUM2UINT(index));
    seat->place_object = place_object;
    seat->reporter = reporter;
    seat->thread_object = rb_thread_current();
    seat->is_old_rack = RTEST(is_old_rack);
    seat->thread = board_thread_of(&place->board, place->worker, NUM2UINT(index));
    seat->writer = (struct page_writer){.board = &place->board, .thread = seat->thread};
    env_init_template(seat, fixed);
    seat->place = place;
    return self;
}

/* ---- taking */

/* A wait on the thread's bell, run without the GVL. */
struct wait {
    struct seat *seat;
    int timeout_ms;  /* -1 = until rung */
    bool is_patient; /* sleeps although something is queued */
    int result;
    _Atomic bool is_interrupted; /* set by the ubf before it rings */
};

static void *wait_on_queue(void *memory)
{
    struct wait *wait = memory;
    const struct board *board = &wait->seat->place->board;
    uint32_t thread = wait->seat->thread;
    uint32_t bell = bell_prepare(board, thread, BOARD_SLEEP_QUEUE);

    /* Whoever queues, retires or interrupts after this look rings the bell that was read above. */
    if (atomic_load(&wait->is_interrupted) || is_retiring(wait->seat->place) ||
        (!wait->is_patient && queue_oldest_us(board, clock_us()) >= 0))
        bell_stay(board, thread);
    else
        wait->result = bell_sleep(board, thread, bell, wait->timeout_ms);
    return NULL;
}

static void ring_self(void *memory)
{
    struct wait *wait = memory;

    atomic_store(&wait->is_interrupted, true);
    bell_ring_thread(&wait->seat->place->board, wait->seat->thread);
}

/* Sleeps until something may have come. patience_ms > 0: no longer than that, whatever is queued. */
static void wait_for_work(struct seat *seat, int patience_ms)
{
    struct wait wait = {.seat = seat, .is_patient = patience_ms > 0};

    if (!wait.is_patient && collect_if_due(seat->place))
        return;
    wait.timeout_ms = wait.is_patient ? patience_ms : measure_timeout_ms(seat->place);
    rb_nogvl(wait_on_queue, &wait, ring_self, &wait, 0);
    if (!wait.is_patient && wait.result == -ETIMEDOUT)
        measure_if_idle(seat->place);
}

/* Whether the oldest request is better left to a sleeping process with nothing to do: this one has
 * other requests running, which will want the GVL. */
static bool should_leave(struct seat *seat)
{
    struct place *place = seat->place;
    const struct board *board = &place->board;
    uint64_t now_us;
    int64_t age_us;

    if (atomic_load_explicit(&entry(place)->busy, memory_order_relaxed) == 0 ||
        atomic_load_explicit(&board->header->sleepers, memory_order_relaxed) == 0)
        return false;
    now_us = clock_us();
    if (bell_can_wait(board, now_us))
        return false;
    age_us = queue_oldest_us(board, now_us);
    return age_us >= 0 && age_us < PATIENCE_US && bell_wake_worker(board, now_us, true);
}

static bool take(struct seat *seat)
{
    const struct board *board = &seat->place->board;
    struct slot_word word;
    int64_t slot = queue_take(board, seat->thread, &word);
    struct slot_request *request;

    if (slot < 0)
        return false;
    request = slot_request(board, (uint32_t)slot);
    seat->taken_us = clock_us();
    atomic_store_explicit(&request->taken_us, seat->taken_us, memory_order_relaxed);
    atomic_store_explicit(&entry(seat->place)->taken_us, seat->taken_us, memory_order_relaxed);
    seat->slot = slot;
    seat->turn = word.turn;
    seat->front = request->front;
    seat->request_flags = request->flags;
    seat->is_head_put = seat->is_published = seat->is_hijacked = false;
    seat->writer.slot = (uint32_t)slot;
    seat->writer.turn = word.turn;
    seat->writer.used = 0;
    return true;
}

/* Counts this thread as busy, or as idle again with one request more. */
static void count_busy(struct seat *seat)
{
    atomic_fetch_add_explicit(&entry(seat->place)->busy, 1, memory_order_relaxed);
    seat->is_counted = true;
}

/* Adds the request that ends to the running mean. Threads of one process may lose a sample to each other. */
static void count_service(struct seat *seat)
{
    _Atomic uint64_t *mean = &entry(seat->place)->service_ns;
    uint64_t old_ns = atomic_load_explicit(mean, memory_order_relaxed);
    uint64_t now_us = clock_us();
    uint64_t took_ns = (now_us - seat->taken_us) * 1000 + 1;
    uint64_t new_ns = old_ns ? old_ns - old_ns / MEAN_REQUESTS + took_ns / MEAN_REQUESTS : took_ns;

    atomic_store_explicit(mean, new_ns ? new_ns : 1, memory_order_relaxed);
    atomic_store_explicit(&entry(seat->place)->done_us, now_us, memory_order_relaxed);
}

/* A worker that has answered as many requests as it shall says so once, and goes on until it is told to
 * retire: its successor comes first. */
static void count_request(struct place *place)
{
    uint64_t count =
        atomic_fetch_add_explicit(&entry(place)->requests, 1, memory_order_relaxed) + 1;

    if (place->last_request && count >= place->last_request &&
        !atomic_load_explicit(&place->is_spent, memory_order_relaxed) &&
        measure_tell(place, "spent", 0))
        atomic_store_explicit(&place->is_spent, true, memory_order_relaxed);
}

static void count_done(struct seat *seat)
{
    struct place *place = seat->place;

    if (!seat->is_counted)
        return;
    seat->is_counted = false;
    count_service(seat);
    /* Sequentially consistent, before this thread looks at the queue: see bell_can_wait. */
    atomic_fetch_sub(&entry(place)->busy, 1);
    count_request(place);
    atomic_store_explicit(&place->has_looked, false, memory_order_relaxed);
    atomic_store_explicit(&place->is_used, true, memory_order_relaxed);
}

/* Lets requests that this process has begun go on before another one is begun: a thread that always
 * finds work would keep the GVL until Ruby's timer takes it, a tenth of a second later, and those that
 * gave it up to read or write would wait for all of that. */
static void let_others_go_on(const struct seat *seat)
{
    if (atomic_load_explicit(&entry(seat->place)->busy, memory_order_relaxed) > 0)
        rb_thread_schedule();
}

/* Waits for a request and holds it; false when this process takes no more. May raise (interrupts)
 * while it holds nothing. Returns whether it slept in *ret_slept. */
static bool take_or_wait(struct seat *seat, bool *ret_slept)
{
    bool has_waited = false;

    for (;;) {
        bool must_leave;

        rb_thread_check_ints();
        if (is_retiring(seat->place))
            return false;
        must_leave = !has_waited && should_leave(seat);
        if (!must_leave && take(seat))
            return true;
        *ret_slept = true;
        has_waited = must_leave;
        wait_for_work(seat, must_leave ? PATIENCE_US / 1000 : 0);
    }
}

/* Seat#wait: whether a request may be taken now; false when this thread shall end. Takes nothing. */
static VALUE seat_wait(VALUE self)
{
    struct seat *seat = seat_get(self);

    if (is_foreign)
        return Qfalse;
    count_done(seat);
    for (;;) {
        rb_thread_check_ints();
        if (is_retiring(seat->place))
            return Qfalse;
        if (queue_oldest_us(&seat->place->board, clock_us()) >= 0)
            return Qtrue;
        wait_for_work(seat, 0);
    }
}

/* Seat#take: the env of the next request, or nil when this thread shall end. */
static VALUE seat_take(VALUE self)
{
    struct seat *seat = seat_get(self);
    const struct board *board = &seat->place->board;
    bool has_slept = false;
    VALUE env;

    if (is_foreign)
        return Qnil;
    count_done(seat);
    measure_between(seat->place);
    let_others_go_on(seat);
    if (!take_or_wait(seat, &has_slept))
        return Qnil;
    count_busy(seat);
    if (has_slept && atomic_load_explicit(&board->header->sleepers, memory_order_relaxed) > 0 &&
        queue_oldest_us(board, seat->taken_us) >= 0 && !bell_can_wait(board, seat->taken_us))
        (void)bell_wake_worker(board, seat->taken_us, false);
    env = env_build(seat);
    slot_advance(board, (uint32_t)seat->slot, seat->thread, SLOT_CALLED);
    return env;
}

void seat_release(struct seat *seat)
{
    uint32_t slot = (uint32_t)seat->slot;

    seat->slot = -1;
    input_end(seat->input);
    seat->input = Qnil;
    slot_finish(&seat->place->board, slot, seat->thread);
}

/* Seat#done: the thread ends; it is not busy any more. */
static VALUE seat_done(VALUE self)
{
    struct seat *seat = seat_get(self);

    if (!is_foreign)
        count_done(seat);
    return Qnil;
}

static VALUE seat_is_held(VALUE self)
{
    return seat_get(self)->slot >= 0 ? Qtrue : Qfalse;
}

/* Seat#mine?: false in a child that the application forked. */
static VALUE seat_is_mine(VALUE self)
{
    (void)self;
    return is_foreign ? Qfalse : Qtrue;
}

/* Seat#tunnel?: the connection can be hijacked. */
static VALUE seat_has_tunnel(VALUE self)
{
    return seat_get(self)->request_flags & SLOT_FLAG_TUNNEL ? Qtrue : Qfalse;
}

/* Seat#work: [request id, seconds since it was taken, whether its answer is still to come], or nil
 * when the thread has nothing to do. For any thread of this process. */
static VALUE seat_work(VALUE self)
{
    const struct seat *seat = seat_get(self);

    if (is_foreign || !seat->is_counted)
        return Qnil;
    return rb_ary_new_from_args(3, seat->id, DBL2NUM((double)(clock_us() - seat->taken_us) / 1e6),
                                seat->slot >= 0 ? Qtrue : Qfalse);
}

static VALUE seat_id(VALUE self)
{
    return seat_get(self)->id;
}

/* Seat#left?: the client has gone, or was told 504. */
static VALUE seat_is_left(VALUE self)
{
    struct seat *seat = seat_get(self);

    if (is_foreign || seat->slot < 0)
        return Qtrue;
    return slot_get_note(&seat->place->board, (uint32_t)seat->slot) == SLOT_WANTED ? Qfalse : Qtrue;
}

void init_take(VALUE leat)
{
    VALUE board = rb_define_class_under(leat, "Board", rb_cObject);
    VALUE seat = rb_define_class_under(leat, "Seat", rb_cObject);

    rb_define_alloc_func(board, place_alloc);
    rb_define_method(board, "initialize", place_initialize, 3);
    rb_define_method(board, "pid", place_pid, 0);
    rb_define_method(board, "ready", place_ready, 0);
    rb_define_method(board, "retire", place_retire, 0);
    rb_define_method(board, "retiring?", place_is_retiring, 0);
    rb_define_method(board, "report", place_report, 2);
    rb_define_method(board, "streams=", place_set_streams, 1);
    rb_define_method(board, "threads", place_threads, 0);
    rb_define_method(board, "measure", place_measure, 0);
    init_attend(board);

    rb_define_alloc_func(seat, seat_alloc);
    rb_define_method(seat, "initialize", seat_initialize, 5);
    rb_define_method(seat, "wait", seat_wait, 0);
    rb_define_method(seat, "take", seat_take, 0);
    rb_define_method(seat, "done", seat_done, 0);
    rb_define_method(seat, "held?", seat_is_held, 0);
    rb_define_method(seat, "mine?", seat_is_mine, 0);
    rb_define_method(seat, "left?", seat_is_left, 0);
    rb_define_method(seat, "id", seat_id, 0);
    rb_define_method(seat, "work", seat_work, 0);
    rb_define_method(seat, "tunnel?", seat_has_tunnel, 0);
    init_reply(seat);
}

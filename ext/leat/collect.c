/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include "base/clock.h"

/*
 * Out of band: a major collection stops a worker for as long as several requests. One that Ruby would
 * soon make within a request is made as soon as the worker has none, and none waits. Should one come
 * meanwhile, another worker takes it; where there is none it waits no longer than it would have inside.
 */

enum {
    NEAR_PERCENT = 90,
    MALLOC_NEAR_PERCENT = 80, /* the limit itself grows by a fifth when it is passed */
    FREE_PERCENT = 20,        /* what a minor collection has to leave free */
    OLD_AGE = 3               /* collections since the last major one before that counts */
};

/* Numbers that Ruby tells. Not every version and collector knows them all. */
enum number {
    MAJOR_COUNT,
    OLD_OBJECTS,
    OLD_OBJECTS_LIMIT,
    SHADY_OBJECTS,
    SHADY_OBJECTS_LIMIT,
    OLD_MALLOC,
    OLD_MALLOC_LIMIT,
    SLOTS,
    MARKED_SLOTS,
    NUMBERS
};

static const char *const names[NUMBERS] = {
    [MAJOR_COUNT] = "major_gc_count",
    [OLD_OBJECTS] = "old_objects",
    [OLD_OBJECTS_LIMIT] = "old_objects_limit",
    [SHADY_OBJECTS] = "remembered_wb_unprotected_objects",
    [SHADY_OBJECTS_LIMIT] = "remembered_wb_unprotected_objects_limit",
    [OLD_MALLOC] = "oldmalloc_increase_bytes",
    [OLD_MALLOC_LIMIT] = "oldmalloc_increase_bytes_limit",
    [SLOTS] = "heap_available_slots",
    [MARKED_SLOTS] = "heap_marked_slots",
};

/* Symbols of the numbers that this Ruby tells, Qnil for the others; symbols are constants of the process. */
static VALUE keys[NUMBERS];
static VALUE need_key = Qnil;

static uint64_t look(enum number number)
{
    return NIL_P(keys[number]) ? 0 : rb_gc_stat(keys[number]);
}

static bool is_near(enum number number, enum number limit, uint64_t percent)
{
    uint64_t bound = look(limit);

    return bound && look(number) * 100 >= bound * percent;
}

/* A minor collection that leaves too little free is followed by a major one. */
static bool is_full(const struct place *place)
{
    uint64_t slots = look(SLOTS);
    uint64_t marked = look(MARKED_SLOTS);

    return place->collected - place->collected_major >= OLD_AGE && marked < slots &&
           (slots - marked) * 100 < slots * FREE_PERCENT;
}

/* Ruby 3.2 and later say what the next collection will be. */
static bool is_announced(void)
{
    return !NIL_P(need_key) && !NIL_P(rb_gc_latest_gc_info(need_key));
}

/* What only collections change is looked at once after each. */
static bool is_due(struct place *place)
{
    uint64_t count = rb_gc_count();
    uint64_t majors;

    if (count == place->collected)
        return place->is_collection_due;
    majors = look(MAJOR_COUNT);
    if (majors != place->majors)
        place->collected_major = count;
    place->majors = majors;
    place->collected = count;
    place->is_collection_due =
        is_announced() || is_near(OLD_OBJECTS, OLD_OBJECTS_LIMIT, NEAR_PERCENT) ||
        is_near(SHADY_OBJECTS, SHADY_OBJECTS_LIMIT, NEAR_PERCENT) ||
        is_near(OLD_MALLOC, OLD_MALLOC_LIMIT, MALLOC_NEAR_PERCENT) || is_full(place);
    return place->is_collection_due;
}

static VALUE collect(VALUE unused)
{
    (void)unused;
    rb_gc();
    return Qnil;
}

static VALUE end_collection(VALUE argument)
{
    struct place *place = (struct place *)argument;

    atomic_fetch_sub(&place->board.workers[place->worker].busy, 1);
    place->collected = place->collected_major = rb_gc_count();
    place->majors = look(MAJOR_COUNT);
    return Qnil;
}

bool collect_if_due(struct place *place)
{
    const struct board_worker *worker = &place->board.workers[place->worker];

    /* Relaxed: a request that comes at the same moment is seen by neither order. */
    if (atomic_load_explicit(&worker->busy, memory_order_relaxed) > 0 || !is_due(place) ||
        queue_oldest_us(&place->board, clock_us()) >= 0)
        return false;
    place->is_collection_due = false;
    /* As one that is busy it is not chosen for what comes, when there is anybody else. Finalizers, which
     * are the application's, run within. */
    atomic_fetch_add(&place->board.workers[place->worker].busy, 1);
    (void)rb_ensure(collect, Qnil, end_collection, (VALUE)place);
    return true;
}

/* The symbol, when the hash of everything that can be asked for has it. */
static VALUE find_key(VALUE all, const char *name)
{
    VALUE key = ID2SYM(rb_intern(name));

    return rb_hash_lookup2(all, key, Qundef) == Qundef ? Qnil : key;
}

void init_collect(void)
{
    VALUE all = rb_hash_new();

    (void)rb_gc_stat(all);
    for (int i = 0; i < NUMBERS; i++)
        keys[i] = find_key(all, names[i]);
    all = rb_hash_new();
    (void)rb_gc_latest_gc_info(all);
    need_key = find_key(all, "need_major_by");
}

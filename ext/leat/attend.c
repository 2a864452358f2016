/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include <ruby/thread.h>

static struct board_worker *entry(VALUE self)
{
    const struct place *place = place_get(self);

    return &place->board.workers[place->worker];
}

/* Board#bell: to be read before the main thread looks at what it would be rung for. */
static VALUE attend_bell(VALUE self)
{
    return UINT2NUM(atomic_load(&entry(self)->bell));
}

/* Board#ring: the main thread has something to look at. Harmless in a child that was forked. */
static VALUE attend_ring(VALUE self)
{
    if (!ext_is_foreign()) {
        const struct place *place = place_get(self);
        bell_ring_worker(&place->board, place->worker);
    }
    return Qnil;
}

/* Board#question: the number of the last one that master has put to this worker. */
static VALUE attend_question(VALUE self)
{
    return UINT2NUM(atomic_load(&entry(self)->question));
}

struct attendance {
    const struct place *place;
    uint32_t bell;
};

static void *sleep_without_gvl(void *memory)
{
    const struct attendance *attendance = memory;

    bell_sleep_worker(&attendance->place->board, attendance->place->worker, attendance->bell);
    return NULL;
}

static void end_sleep(void *memory)
{
    const struct attendance *attendance = memory;

    bell_ring_worker(&attendance->place->board, attendance->place->worker);
}

/* Board#attend(bell): sleeps until the main thread is rung after that bell was read. */
static VALUE attend_wait(VALUE self, VALUE bell)
{
    struct attendance attendance = {place_get(self), NUM2UINT(bell)};

    rb_nogvl(sleep_without_gvl, &attendance, end_sleep, &attendance, 0);
    RB_GC_GUARD(self);
    return Qnil;
}

void init_attend(VALUE board)
{
    rb_define_method(board, "bell", attend_bell, 0);
    rb_define_method(board, "ring", attend_ring, 0);
    rb_define_method(board, "question", attend_question, 0);
    rb_define_method(board, "attend", attend_wait, 1);
}

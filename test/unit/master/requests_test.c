/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/requests.c"

#include "master_world.h"

#include <stdio.h>
#include <sys/mman.h>

/* A caller and what it was told. */
struct control_call {
    unsigned answers;
    bool ok;
    char text[2000];
};

/* What fronts were told. One per program, as the functions below are. */
static struct {
    unsigned size;
    struct front_message last;
} told;

void control_answer(struct control_call *call, bool ok, struct span text, bool hold)
{
    (void)hold;
    call->answers++;
    call->ok = ok;
    (void)snprintf(call->text, sizeof call->text, "%.*s", SPAN_ARG(text));
}

void fronts_tell(struct master_front *front, const struct front_message *message, const int *fds,
                 size_t count)
{
    (void)fds, (void)count;
    told.size += front->pid != 0;
    told.last = *message;
}

static struct control_call call;

static struct edition edition = {.loops = 1};

static void open_world(struct world *world, unsigned fronts)
{
    world_open(world);
    for (unsigned i = 0; i < fronts; i++) {
        world->master.fronts[i].pid = (pid_t)(100 + i);
        world->master.fronts[i].edition = &edition;
    }
    memset(&call, 0, sizeof call);
    memset(&told, 0, sizeof told);
}

/* The front of that entry answers the last question with one request, or with none. */
static void answer(struct world *world, unsigned entry, const char *id)
{
    struct front_message message = {.kind = FRONT_REQUESTS, .number = told.last.number};
    struct listing_entry listed = {.stage = 0, .pool = span_of("shop"), .id = span_of(id)};
    struct buf buf = {.size = 0};
    int fd = memfd_create("test", MFD_CLOEXEC);

    if (*id)
        assert_true(listing_add(&buf, &listed));
    assert_int_equal(fd_write_all(fd, buf_span(&buf)), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    requests_take(&world->master, &world->master.fronts[entry], &message, fd);
    (void)close(fd);
    buf_done(&buf);
}

static void a_call_is_answered_when_every_front_has_answered(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 2);
    requests_list(&world.master, true, &call);
    assert_int_equal(told.size, 2);
    assert_int_equal(told.last.kind, FRONT_REQUESTS_WANTED);
    answer(&world, 1, "id-1");
    assert_int_equal(call.answers, 0);
    answer(&world, 0, "id-0");
    assert_int_equal(call.answers, 1);
    assert_true(call.ok);
    assert_non_null(strstr(call.text, "id-0"));
    assert_non_null(strstr(call.text, "id-1"));
    assert_true(list_is_empty(&world.master.inquiries));
    world_close(&world);
}

static void a_front_that_hangs_is_named_after_a_second(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 2);
    requests_list(&world.master, true, &call);
    answer(&world, 0, "id-0");
    for (int i = 0; i < 100 && !call.answers; i++)
        (void)loop_step(world.master.loop, 100);
    assert_int_equal(call.answers, 1);
    assert_non_null(strstr(call.text, "id-0"));
    assert_non_null(strstr(call.text, "\"silent_fronts\":[101]"));
    /* What it says later is nobody's. */
    answer(&world, 1, "id-1");
    assert_int_equal(call.answers, 1);
    world_close(&world);
}

static void a_front_that_dies_is_not_waited_for(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 1);
    requests_list(&world.master, false, &call);
    requests_front_gone(&world.master, &world.master.fronts[0]);
    assert_int_equal(call.answers, 1);
    assert_string_equal(call.text, "no request waits or runs\n");
    world_close(&world);
}

static void without_fronts_nothing_runs(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 0);
    requests_list(&world.master, false, &call);
    assert_true(call.ok);
    assert_string_equal(call.text, "no request waits or runs\n");
    world_close(&world);
}

static void ending_one_needs_its_id(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 2);
    requests_kill(&world.master, span_of("no id"), &call);
    assert_int_equal(call.answers, 1);
    assert_false(call.ok);
    assert_int_equal(told.size, 0);
    requests_kill(&world.master, span_of("id-1"), &call);
    assert_int_equal(told.last.kind, FRONT_REQUEST_KILL);
    assert_string_equal(told.last.text, "id-1");
    answer(&world, 0, "");
    answer(&world, 1, "");
    assert_false(call.ok);
    assert_string_equal(call.text, "no request with that id waits or runs\n");
    requests_kill(&world.master, span_of("id-1"), &call);
    answer(&world, 0, "id-1");
    answer(&world, 1, "");
    assert_true(call.ok);
    assert_non_null(strstr(call.text, "ended: "));
    world_close(&world);
}

static void an_answer_that_is_no_listing_is_an_empty_one(void **state)
{
    struct front_message message = {.kind = FRONT_REQUESTS, .value = 2};
    struct world world;
    int pair[2];
    (void)state;

    open_world(&world, 2);
    requests_list(&world.master, true, &call);
    message.number = told.last.number;
    requests_take(&world.master, &world.master.fronts[0], &message, -1);
    assert_int_equal(pipe(pair), 0);
    requests_take(&world.master, &world.master.fronts[1], &message, pair[0]);
    assert_string_equal(call.text, "{\"requests\":[],\"left_out\":4,\"silent_fronts\":[]}\n");
    (void)close(pair[0]);
    (void)close(pair[1]);
    world_close(&world);
}

static void a_stop_answers_those_who_wait(void **state)
{
    struct world world;
    (void)state;

    open_world(&world, 1);
    requests_list(&world.master, false, &call);
    requests_end(&world.master);
    assert_int_equal(call.answers, 1);
    assert_true(list_is_empty(&world.master.inquiries));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered_when_every_front_has_answered),
        cmocka_unit_test(a_front_that_hangs_is_named_after_a_second),
        cmocka_unit_test(a_front_that_dies_is_not_waited_for),
        cmocka_unit_test(without_fronts_nothing_runs),
        cmocka_unit_test(ending_one_needs_its_id),
        cmocka_unit_test(an_answer_that_is_no_listing_is_an_empty_one),
        cmocka_unit_test(a_stop_answers_those_who_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

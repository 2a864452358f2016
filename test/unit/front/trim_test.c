/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/trim.c"

static struct offload_job *sent;
static unsigned count;

/* In place of the file threads. */
void offload_send(struct offload *offload, struct offload_job *job)
{
    (void)offload;
    sent = job;
    count++;
}

static void note(struct trim *trim, uint32_t open)
{
    trim_note(trim, open);
}

static void a_crowd_that_leaves_gives_its_memory_back(void **state)
{
    struct trim trim = {0};
    (void)state;

    count = 0;
    for (uint32_t open = 1; open <= 4000; open++)
        note(&trim, open);
    for (uint32_t open = 4000; open > 2000; open--)
        note(&trim, open);
    assert_int_equal(count, 0);
    note(&trim, 2000);
    assert_int_equal(count, 1);
    sent->work(sent);
    sent->on_done(sent);
    assert_int_equal(count, 1);
}

static void those_that_leave_meanwhile_are_not_forgotten(void **state)
{
    struct trim trim = {0};
    (void)state;

    count = 0;
    note(&trim, 5000);
    note(&trim, 2500);
    note(&trim, 1250);
    assert_int_equal(count, 1);
    sent->on_done(sent);
    assert_int_equal(count, 2);
    sent->on_done(sent);
    assert_int_equal(count, 2);
    note(&trim, 625);
    assert_int_equal(count, 3);
    sent->on_done(sent);
    note(&trim, 1);
    assert_int_equal(count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_that_leaves_gives_its_memory_back),
        cmocka_unit_test(those_that_leave_meanwhile_are_not_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

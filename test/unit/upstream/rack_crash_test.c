/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "upstream/rack_crash.c"

static void the_crash_rules_hold_for_every_stage(void **state)
{
    static const struct {
        struct rack_death death;
        enum rack_fate fate;
    } rows[] = {
        /* The application never saw it: again, whatever the method. */
        {{SLOT_TAKEN, false, false, 1, 0}, RACK_AGAIN},
        {{SLOT_TAKEN, false, true, 1, 0}, RACK_AGAIN},
        /* It may have: only what is safe, and once. */
        {{SLOT_CALLED, false, true, 1, 0}, RACK_AGAIN},
        {{SLOT_CALLED, false, false, 1, 0}, RACK_REFUSE},
        {{SLOT_REPLYING, false, true, 1, 0}, RACK_AGAIN},
        {{SLOT_REPLYING, false, false, 1, 0}, RACK_REFUSE},
        {{SLOT_CALLED, false, true, 1, 1}, RACK_REFUSE},
        /* Two dead workers are enough. */
        {{SLOT_TAKEN, false, true, 2, 0}, RACK_REFUSE},
        {{SLOT_TAKEN, false, false, 2, 0}, RACK_REFUSE},
        {{SLOT_CALLED, false, true, 2, 1}, RACK_REFUSE},
        {{SLOT_CALLED, false, true, 3, 0}, RACK_REFUSE},
        /* Once the client has the head, nothing can be taken back. */
        {{SLOT_REPLYING, true, true, 1, 0}, RACK_CUT},
        {{SLOT_REPLYING, true, false, 1, 0}, RACK_CUT},
        {{SLOT_DONE, true, true, 2, 1}, RACK_CUT},
        /* DONE without an end is an answer that never came. */
        {{SLOT_DONE, false, true, 1, 0}, RACK_AGAIN},
        {{SLOT_DONE, false, false, 1, 0}, RACK_REFUSE},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(rack_decide_fate(&rows[i].death), rows[i].fate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_crash_rules_hold_for_every_stage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/counters.c"

static void an_observation_falls_into_one_bucket(void **state)
{
    static const struct {
        uint64_t us;
        unsigned bucket;
    } rows[] = {{0, 0}, {1000, 0}, {1001, 1}, {10000000, 12}, {10000001, 13}, {UINT64_MAX / 2, 13}};
    (void)state;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct front_histogram histogram = {0};

        front_observe(&histogram, rows[i].us);
        for (unsigned bucket = 0; bucket < FRONT_BUCKETS; bucket++)
            assert_int_equal(histogram.buckets[bucket], bucket == rows[i].bucket);
        assert_int_equal(histogram.sum_us, rows[i].us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observation_falls_into_one_bucket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/admin_metrics.c"

#include "front_world.h"

static void the_text_has_every_family_and_ends_as_it_must(void **state)
{
    static const char *const families[] = {
        "leat_requests_total{site=\"*\",pool=\"app\",status=\"2xx\"} 1\n",
        "# TYPE leat_request_seconds histogram\n",
        "leat_request_seconds_bucket{pool=\"app\",stage=\"total\",le=\"+Inf\"} 1\n",
        "leat_request_seconds_count{pool=\"app\",stage=\"queue\"} 0\n",
        "leat_queue_length{pool=\"app\"} 0\n",
        "leat_workers{pool=\"app\",state=\"idle\"} 1\n",
        "leat_slots{pool=\"app\",state=\"idle\"} 1\n",
        "leat_worker_memory_bytes{pool=\"app\",kind=\"private\"} 4096\n",
        "leat_connections{state=\"idle\"} ",
        "leat_refusals_total{reason=\"queue-full\"} 0\n",
        "leat_bytes_total{direction=\"in\"} 0\n",
        "leat_worker_exits_total{pool=\"app\",reason=\"normal\"} 0\n",
        "leat_worker_exits_total{pool=\"app\",reason=\"crash\"} 2\n",
        "leat_request_seconds_bucket{pool=\"app\",stage=\"total\",le=\"1.0\"} 1\n",
    };
    const char *text;
    (void)state;

    world_configure();
    world_start();
    atomic_store(&world.counters->pools[0].exits[1], 2);
    atomic_store(&world.board.workers[0].private_bytes, 4096);
    (void)world_get(0, "GET /pulse");
    text = world_get(1, "GET /metrics");
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (!strstr(text, families[i]))
            fail_msg("%s is missing", families[i]);
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_has_every_family_and_ends_as_it_must),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

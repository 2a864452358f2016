/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "master/phase.c"

#include "master_world.h"

/* What the phases asked of everybody else. One per program, as the functions below are. */
static struct {
    uint32_t fronts; /* that run */
    bool accept;
    unsigned begun, abandoned;
    unsigned drains, leaves, stops, kills, front_kills, releases, told;
    uint64_t grace_ms;
    bool told_ok;
    char text[300];
} seen;

uint32_t fronts_size(const struct master *master)
{
    (void)master;
    return seen.fronts;
}

bool fronts_accept(const struct master *master)
{
    (void)master;
    return seen.accept;
}

void fronts_tell_all(struct master *master, const struct front_message *message, const int *fds,
                     size_t count)
{
    (void)master, (void)fds, (void)count;
    seen.drains += message->kind == FRONT_DRAIN;
    seen.leaves += message->kind == FRONT_LEAVE;
}

void fronts_kill(struct master *master)
{
    (void)master;
    seen.front_kills++;
}

void reload_begin_asked(struct master *master)
{
    (void)master;
    seen.begun++;
}

void reload_abandon(struct master *master)
{
    (void)master;
    seen.abandoned++;
}

void listeners_release(struct master *master)
{
    (void)master;
    seen.releases++;
}

void pool_drain(struct pool *pool)
{
    pool->draining = true;
}

void pool_stop(struct pool *pool, uint64_t grace_ms)
{
    pool->stopping = true;
    seen.stops++;
    seen.grace_ms = grace_ms;
}

void pool_kill(struct pool *pool)
{
    pool->stopping = true;
    seen.kills++;
}

uint32_t pool_serving(const struct pool *pool)
{
    return pool->state == POOL_UP;
}

void banner_write(const struct master *master, double seconds, struct buf *out)
{
    (void)master, (void)seconds;
    (void)buf_append(out, span_of("banner\n"));
}

void daemon_tell(int *pipe_fd, bool ok, struct span text)
{
    (void)pipe_fd;
    seen.told++;
    seen.told_ok = ok;
    (void)snprintf(seen.text, sizeof seen.text, "%.*s", SPAN_ARG(text));
}

static void open_running(struct world *world)
{
    world_open(world);
    memset(&seen, 0, sizeof seen);
    seen.fronts = 1;
    seen.accept = true;
}

/* A request that a worker holds. */
static void hold_request(const struct world *world)
{
    uint32_t turn;

    assert_true(slot_claim(&world->pool.instance.board, 0, &turn) >= 0);
}

static void close_world(struct world *world)
{
    timer_stop(&world->master.stop_timer);
    world_close(world);
}

static void it_is_ready_when_every_pool_has_come_to_something_and_a_front_accepts(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    world.master.phase = MASTER_STARTING;
    phase_check_ready(&world.master);
    assert_int_equal(world.master.phase, MASTER_STARTING);
    world.master_pool.settled = true;
    seen.accept = false;
    phase_check_ready(&world.master);
    assert_int_equal(world.master.phase, MASTER_STARTING);
    seen.accept = true;
    phase_check_ready(&world.master);
    assert_int_equal(world.master.phase, MASTER_RUNNING);
    assert_true(seen.told_ok);
    assert_string_equal(seen.text, "banner\n");
    phase_check_ready(&world.master);
    assert_int_equal(seen.told, 1);
    assert_int_equal(seen.begun, 1);
    close_world(&world);
}

static void it_fails_with_the_reason_of_its_only_pool(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    world.master.phase = MASTER_STARTING;
    world.master_pool.settled = world.master_pool.failed = true;
    (void)snprintf(world.pool.error, sizeof world.pool.error, "no database");
    phase_check_ready(&world.master);
    assert_int_equal(world.master.exit_status, 1);
    assert_false(seen.told_ok);
    assert_string_equal(seen.text, "leat: pool shop: no database\n");
    assert_int_equal(seen.kills, 1);
    close_world(&world);
}

static void with_two_pools_a_broken_one_does_not_keep_the_other_from_serving(void **state)
{
    struct world world;
    struct master_pool other;

    (void)state;
    open_running(&world);
    world.master_pool.settled = true;
    other = world.master_pool;
    other.failed = true;
    world.pools[1] = &other;
    world.master.pool_size = 2;
    world.master.phase = MASTER_STARTING;
    phase_check_ready(&world.master);
    assert_int_equal(world.master.phase, MASTER_RUNNING);
    assert_int_equal(world.master.exit_status, 0);
    close_world(&world);
}

static void a_stop_drains_the_fronts_first_and_then_retires_the_workers(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    phase_stop(&world.master);
    assert_int_equal(world.master.phase, MASTER_DRAINING);
    assert_true(world.pool.draining);
    assert_int_equal(seen.releases, 1);
    assert_int_equal(seen.drains, 1);
    assert_int_equal(seen.abandoned, 1);
    assert_int_equal(seen.stops, 0);
    seen.fronts = 0;
    phase_front_gone(&world.master);
    assert_int_equal(world.master.phase, MASTER_RETIRING);
    assert_int_equal(seen.stops, 1);
    assert_int_equal(seen.grace_ms, RETIRE_GRACE_MS);
    world.pool.told_empty = true;
    phase_pool_gone(&world.master);
    assert_int_equal(world.master.phase, MASTER_ENDED);
    close_world(&world);
}

static void a_stop_with_a_delay_goes_on_accepting_meanwhile(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    world.config.timeouts.drain_delay_ms = 20;
    phase_stop(&world.master);
    assert_int_equal(world.master.phase, MASTER_DELAY);
    assert_int_equal(seen.leaves, 1);
    assert_int_equal(seen.releases, 0);
    assert_false(phase_is_ready(&world.master));
    (void)loop_step(world.master.loop, 1000);
    assert_int_equal(world.master.phase, MASTER_DRAINING);
    assert_int_equal(seen.releases, 1);
    close_world(&world);
}

static void a_second_stop_does_not_wait_and_counts_what_it_cuts(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    hold_request(&world);
    phase_stop(&world.master);
    phase_stop(&world.master);
    assert_int_equal(world.master.cut, 1);
    assert_int_equal(seen.front_kills, 1);
    assert_int_equal(seen.kills, 1);
    phase_stop(&world.master);
    assert_int_equal(seen.kills, 1);
    close_world(&world);
}

static void quit_cuts_requests_as_a_success(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    hold_request(&world);
    phase_stop_now(&world.master, true);
    assert_int_equal(world.master.cut, 0);
    assert_int_equal(seen.kills, 1);
    close_world(&world);
}

static void a_front_that_does_not_drain_is_killed_with_its_requests(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    hold_request(&world);
    phase_stop(&world.master);
    on_stop_due(&world.master.stop_timer);
    assert_int_equal(world.master.cut, 1);
    assert_int_equal(seen.front_kills, 1);
    assert_int_equal(seen.grace_ms, CUT_GRACE_MS);
    /* Whoever is still there after that is killed, and in the end left alone. */
    on_stop_due(&world.master.stop_timer);
    assert_int_equal(seen.kills, 1);
    on_stop_due(&world.master.stop_timer);
    assert_int_equal(world.master.phase, MASTER_ENDED);
    close_world(&world);
}

static void a_stop_while_it_starts_waits_for_nobody(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    world.master.phase = MASTER_STARTING;
    phase_stop(&world.master);
    assert_false(seen.told_ok);
    assert_int_equal(seen.kills, 1);
    assert_int_equal(world.master.exit_status, 0);
    close_world(&world);
}

static void a_pool_on_demand_is_ready_without_workers(void **state)
{
    struct world world;

    (void)state;
    open_running(&world);
    assert_true(phase_is_ready(&world.master));
    world.pool.state = POOL_CRASHING;
    assert_false(phase_is_ready(&world.master));
    world.pool.state = POOL_DOWN;
    assert_true(phase_is_ready(&world.master));
    seen.accept = false;
    assert_false(phase_is_ready(&world.master));
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_ready_when_every_pool_has_come_to_something_and_a_front_accepts),
        cmocka_unit_test(it_fails_with_the_reason_of_its_only_pool),
        cmocka_unit_test(with_two_pools_a_broken_one_does_not_keep_the_other_from_serving),
        cmocka_unit_test(a_stop_drains_the_fronts_first_and_then_retires_the_workers),
        cmocka_unit_test(a_stop_with_a_delay_goes_on_accepting_meanwhile),
        cmocka_unit_test(a_second_stop_does_not_wait_and_counts_what_it_cuts),
        cmocka_unit_test(quit_cuts_requests_as_a_success),
        cmocka_unit_test(a_front_that_does_not_drain_is_killed_with_its_requests),
        cmocka_unit_test(a_stop_while_it_starts_waits_for_nobody),
        cmocka_unit_test(a_pool_on_demand_is_ready_without_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

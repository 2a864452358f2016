/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/capacity.c"

#include <ftw.h>
#include <sys/stat.h>

#define MB (UINT64_C(1) << 20)

/* A tree of files that looks like the system's. */
static char root[64];

static int make_root(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/capacity-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
    char full[256];
    FILE *file;

    (void)snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static struct capacity read_with(uint32_t affinity)
{
    struct capacity capacity;

    capacity_read(root, affinity, &capacity);
    return capacity;
}

static void without_any_file_affinity_counts_and_memory_has_no_bound(void **state)
{
    struct capacity capacity = read_with(3);

    (void)state;
    assert_int_equal(capacity.cpus, 3);
    assert_int_equal(capacity.memory_limit, 0);
    assert_true(capacity.memory_headroom == UINT64_MAX);
}

static void a_quota_of_version_two_is_rounded_up(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/app\n");
    put("/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
    assert_int_equal(read_with(8).cpus, 2);
    put("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
    assert_int_equal(read_with(8).cpus, 8);
    put("/sys/fs/cgroup/app/cpu.max", "50000 100000\n");
    assert_int_equal(read_with(8).cpus, 1);
}

static void the_tightest_limit_on_the_way_to_the_top_counts(void **state)
{
    struct capacity capacity;

    (void)state;
    put("/proc/self/cgroup", "0::/outer/inner\n");
    put("/sys/fs/cgroup/outer/memory.max", "104857600\n");
    put("/sys/fs/cgroup/outer/memory.current", "41943040\n");
    put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    put("/sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/outer/cpu.max", "200000 100000\n");
    capacity = read_with(8);
    assert_int_equal(capacity.memory_limit, 100 * MB);
    assert_int_equal(capacity.memory_headroom, 60 * MB);
    assert_int_equal(capacity.cpus, 2);
}

static void version_one_has_quota_and_limit_in_its_own_trees(void **state)
{
    struct capacity capacity;

    (void)state;
    put("/proc/self/cgroup", "4:cpu,cpuacct:/box\n3:memory:/box\n0::/\n");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "209715200\n");
    put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "104857600\n");
    put("/sys/fs/cgroup/memory/box/memory.stat", "cache 5\ntotal_inactive_file 52428800\n");
    capacity = read_with(8);
    assert_int_equal(capacity.cpus, 3);
    assert_int_equal(capacity.memory_limit, 200 * MB);
    assert_int_equal(capacity.memory_headroom, 150 * MB);
}

static void version_one_says_no_limit_by_minus_one_and_by_a_huge_number(void **state)
{
    struct capacity capacity;

    (void)state;
    put("/proc/self/cgroup", "4:cpu:/\n3:memory:/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    capacity = read_with(4);
    assert_int_equal(capacity.cpus, 4);
    assert_int_equal(capacity.memory_limit, 0);
}

static void a_container_sees_its_limits_at_the_top(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "3:memory:/docker/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
    assert_int_equal(read_with(1).memory_limit, 100 * MB);
}

static void memory_that_the_machine_has_not_bounds_it_too(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:  1 kB\nMemAvailable:      2048 kB\n");
    assert_int_equal(read_with(1).memory_headroom, 2 * MB);
}

static void workers_fit_beside_64_mb_and_at_least_one(void **state)
{
    (void)state;
    assert_int_equal(capacity_fits(564 * MB, 100 * MB), 5);
    assert_int_equal(capacity_fits(100 * MB, 100 * MB), 1);
    assert_int_equal(capacity_fits(10 * MB, 100 * MB), 1);
    assert_true(capacity_fits(564 * MB, 0) == UINT32_MAX);
    assert_true(capacity_fits(UINT64_MAX, MB) == UINT32_MAX);
}

static void kills_for_want_of_memory_are_read_from_vmstat(void **state)
{
    (void)state;
    assert_int_equal(capacity_oom_kills(root), 0);
    put("/proc/vmstat", "nr_free_pages 7\noom_kill 12\n");
    assert_int_equal(capacity_oom_kills(root), 12);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_any_file_affinity_counts_and_memory_has_no_bound),
        TEST(a_quota_of_version_two_is_rounded_up),
        TEST(the_tightest_limit_on_the_way_to_the_top_counts),
        TEST(version_one_has_quota_and_limit_in_its_own_trees),
        TEST(version_one_says_no_limit_by_minus_one_and_by_a_huge_number),
        TEST(a_container_sees_its_limits_at_the_top),
        TEST(memory_that_the_machine_has_not_bounds_it_too),
        TEST(workers_fit_beside_64_mb_and_at_least_one),
        TEST(kills_for_want_of_memory_are_read_from_vmstat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/type.c"

static struct arena arena;

static const struct type_context context = {.arena = &arena, .folder = "/srv/app"};

static const struct directive *row(enum section section, const char *name)
{
    const struct directive *found = directive_find(section, span_of(name));

    assert_non_null(found);
    return found;
}

static const char *read_path_of(const char *text)
{
    return type_path(&context, span_of(text));
}

static void paths_become_absolute_and_keep_their_parents(void **state)
{
    (void)state;

    assert_string_equal(read_path_of("log/x.log"), "/srv/app/log/x.log");
    assert_string_equal(read_path_of("./a//b/./c/"), "/srv/app/a/b/c");
    assert_string_equal(read_path_of("/x/../y"), "/x/../y");
    assert_string_equal(read_path_of("."), "/srv/app");
    assert_string_equal(read_path_of("/"), "/");
    arena_done(&arena);
}

static void off_no_and_false_are_one(void **state)
{
    const char *const words[] = {"off", "no", "false", "OFF"};
    const char *text = "x";
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        text = "x";
        assert_null(type_read(&context, row(SECTION_SERVER, "log"), span_of(words[i]), &text));
        assert_null(text);
    }
    assert_false(type_is_off(span_of("offline")));
    arena_done(&arena);
}

static void numbers_respect_their_bounds_and_units(void **state)
{
    uint64_t value = 7;
    (void)state;

    assert_null(type_read(&context, row(SECTION_LIMITS, "body"), span_of("20m"), &value));
    assert_int_equal(value, 20 << 20);
    assert_null(type_read(&context, row(SECTION_LIMITS, "body"), span_of("off"), &value));
    assert_int_equal(value, 0);
    assert_string_equal(type_read(&context, row(SECTION_LIMITS, "headers"), span_of("off"), &value),
                        "must be from 1 to 10000");
    assert_string_equal(type_read(&context, row(SECTION_LIMITS, "header"), span_of("2g"), &value),
                        "must be from 256 to 1m");
    assert_string_equal(
        type_read(&context, row(SECTION_TIMEOUTS, "header"), span_of("5 s"), &value),
        "expected a time such as 250ms, 30s, 5m or 1h, not \"5 s\"");
    assert_int_equal(value, 0);
    arena_done(&arena);
}

static void workers_are_a_number_a_range_or_auto(void **state)
{
    const struct directive *workers = row(SECTION_POOL, "workers");
    struct config_pool pool = {0};
    (void)state;

    assert_null(type_read(&context, workers, span_of("3"), &pool.workers_min));
    assert_int_equal(pool.workers_max, 3);
    assert_null(type_read(&context, workers, span_of("0..6"), &pool.workers_min));
    assert_int_equal(pool.workers_min, 0);
    assert_int_equal(pool.workers_max, 6);
    assert_string_equal(type_format(&arena, workers, &pool.workers_min), "0..6");
    assert_null(type_read(&context, workers, span_of("auto"), &pool.workers_min));
    assert_int_equal(pool.workers_min, CONFIG_AUTO);
    assert_string_equal(type_read(&context, workers, span_of("two"), &pool.workers_min),
                        "expected N, MIN..MAX or auto, not \"two\"");
    assert_non_null(type_read(&context, workers, span_of("0"), &pool.workers_min));
    assert_non_null(type_read(&context, workers, span_of("6..2"), &pool.workers_min));
    assert_non_null(type_read(&context, workers, span_of("2..5000"), &pool.workers_min));
    assert_int_equal(pool.workers_min, CONFIG_AUTO);
    arena_done(&arena);
}

static void proxies_are_words_addresses_or_networks(void **state)
{
    const struct directive *proxies = row(SECTION_SERVER, "trusted_proxies");
    const char *const good[] = {"unix",       "loopback", "private", "203.0.113.7",
                                "10.0.0.0/8", "::1",      "fd00::/8"};
    const char *const bad[] = {"10.0.0.0/33", "fd00::/129", "example.com", "10.0.0", ""};
    struct config_strings list = {0};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_null(type_read_item(&context, proxies, span_of(good[i]), &list));
    assert_int_equal(list.size, ARRAY_LEN(good));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_non_null(type_read_item(&context, proxies, span_of(bad[i]), &list));
    assert_int_equal(list.size, ARRAY_LEN(good));
    arena_done(&arena);
}

static void hosts_are_lowered_and_may_be_wild(void **state)
{
    const struct directive *hosts = row(SECTION_SITE, "host");
    struct config_strings list = {0};
    (void)state;

    assert_null(type_read_item(&context, hosts, span_of("Shop.Example.COM."), &list));
    assert_string_equal(list.items[0], "shop.example.com");
    assert_null(type_read_item(&context, hosts, span_of("*.Example.com"), &list));
    assert_string_equal(list.items[1], "*.example.com");
    assert_string_equal(type_read_item(&context, hosts, span_of("a:80"), &list),
                        "a host is given without a port");
    assert_non_null(type_read_item(&context, hosts, span_of("a.*.b"), &list));
    assert_non_null(type_read_item(&context, hosts, span_of("http://a"), &list));
    arena_done(&arena);
}

static void every_default_reads_and_is_written_the_same_way(void **state)
{
    size_t size;
    const struct directive *table = directives(&size);
    union {
        struct config_pool pool;
        struct config config;
        struct config_strings list;
    } space;
    (void)state;

    for (size_t i = 0; i < size; i++) {
        void *member = table[i].type == TYPE_WORKERS ? (void *)&space.pool.workers_min : &space;

        memset(&space, 0, sizeof(space));
        if (!table[i].fallback || type_is_part(table[i].type) || type_is_list(table[i].type))
            continue;
        assert_null(type_read(&context, &table[i], span_of(table[i].fallback), member));
        const char *once = type_format(&arena, &table[i], member);
        assert_null(type_read(&context, &table[i], span_of(once), member));
        assert_string_equal(type_format(&arena, &table[i], member), once);
    }
    arena_done(&arena);
}

static void numbers_are_written_in_their_largest_whole_unit(void **state)
{
    (void)state;

    assert_string_equal(type_format_number(&arena, TYPE_SIZE, 65536), "64k");
    assert_string_equal(type_format_number(&arena, TYPE_SIZE, 1 << 30), "1g");
    assert_string_equal(type_format_number(&arena, TYPE_SIZE, 500), "500");
    assert_string_equal(type_format_number(&arena, TYPE_TIME, 90000), "90s");
    assert_string_equal(type_format_number(&arena, TYPE_TIME, 250), "250ms");
    assert_string_equal(type_format_number(&arena, TYPE_TIME, 300000), "5m");
    arena_done(&arena);
}

static void an_admin_address_is_numeric_and_has_a_port(void **state)
{
    const struct directive *admin = row(SECTION_SERVER, "admin");
    const char *address = NULL;
    (void)state;

    assert_null(type_read(&context, admin, span_of("9191"), &address));
    assert_string_equal(address, "127.0.0.1:9191");
    assert_null(type_read(&context, admin, span_of("localhost:1234"), &address));
    assert_string_equal(address, "127.0.0.1:1234");
    assert_null(type_read(&context, admin, span_of("unix:tmp/a.sock"), &address));
    assert_string_equal(address, "unix:/srv/app/tmp/a.sock");
    assert_non_null(type_read(&context, admin, span_of("no-such-host.invalid:1"), &address));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_become_absolute_and_keep_their_parents),
        cmocka_unit_test(off_no_and_false_are_one),
        cmocka_unit_test(numbers_respect_their_bounds_and_units),
        cmocka_unit_test(workers_are_a_number_a_range_or_auto),
        cmocka_unit_test(proxies_are_words_addresses_or_networks),
        cmocka_unit_test(hosts_are_lowered_and_may_be_wild),
        cmocka_unit_test(every_default_reads_and_is_written_the_same_way),
        cmocka_unit_test(numbers_are_written_in_their_largest_whole_unit),
        cmocka_unit_test(an_admin_address_is_numeric_and_has_a_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

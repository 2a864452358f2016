/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/bind.c"

#include "world.h"

/* Every directive of the table, but those with an inside, set to something that is no default. */
static const char everything[] =
    "listen: [{address: 20500, mode: 0660, backlog: 5, proxy_protocol: true}]\n"
    "environment: staging\n"
    "user: root\n"
    "group: root\n"
    "pid: tmp/a.pid\n"
    "control: tmp/a.sock\n"
    "log: log/a.log\n"
    "access_log: {file: log/access.log, format: json}\n"
    "spool: /tmp\n"
    "loops: 3\n"
    "admin: 127.0.0.1:9191\n"
    "trusted_proxies: [loopback, 10.0.0.0/8]\n"
    "limits: {target: 1k, field: 2k, header: 3k, headers: 10, response_header: 4k, body: 5m,\n"
    "         spool: 6m, connections: 7}\n"
    "timeouts: {header: 1s, body_rate: 2, write_rate: 3, keepalive: 4s, drain: 5s,\n"
    "           drain_delay: 6s, stream_drain: 7s}\n"
    "underscore_fields: pass\n"
    "pulse: /up\n"
    "compress: off\n"
    "memory_total: 1g\n"
    "pool_defaults: {threads: 9}\n"
    "pools:\n"
    "  shop:\n"
    "    app: .\n"
    "    rackup: other.ru\n"
    "    ruby: ruby\n"
    "    workers: 2..6\n"
    "    preload: false\n"
    "    idle: 1m\n"
    "    max_requests: 100\n"
    "    memory: 512m\n"
    "    memory_total: 2g\n"
    "    timeout: 61s\n"
    "    start_timeout: 62s\n"
    "    queue: {length: 11, timeout: 12s}\n"
    "    env: {A: b}\n"
    "    malloc: {allocator: default, arenas: 2}\n"
    "    env_file: the.env\n"
    "    log: log/shop.log\n"
    "    user: root\n"
    "    group: root\n"
    "    umask: 022\n"
    "sites:\n"
    "- host: [A.example.com, '*.b.example.com']\n"
    "  root: pages\n"
    "  pool: shop\n"
    "  pulse: /pulse\n"
    "  limits: {body: 20m}\n"
    "  links: [/srv/shared]\n"
    "  serve: [.rb]\n"
    "  internal: {/protected: files, /more/: /srv}\n"
    "  compress: on\n"
    "  page_cache_query: true\n"
    "  routes: [{path: /blog/, pool: shop, root: pages, links: [/srv], serve: [.rb]}]\n"
    "- host: old.example.com\n"
    "  redirect: {to: 'https://example.com', status: 301}\n";

static void open_everything(struct world *world)
{
    world_open_app(world, everything);
    world_write(world, "other.ru", "");
    world_write(world, "the.env", "");
    world_write(world, "pages/", "");
    world_write(world, "files/", "");
    assert_non_null(world_load(world));
}

static void the_server_gets_every_value(void **state)
{
    struct world world;
    const struct config *config;
    (void)state;

    open_everything(&world);
    config = world.config;
    assert_string_equal(config->environment, "staging");
    assert_string_equal(config->user, "root");
    assert_string_equal(config->group, "root");
    assert_string_equal(config->pid + strlen(world.folder), "/tmp/a.pid");
    assert_string_equal(config->control + strlen(world.folder), "/tmp/a.sock");
    assert_string_equal(config->log + strlen(world.folder), "/log/a.log");
    assert_string_equal(config->access_log.file + strlen(world.folder), "/log/access.log");
    assert_int_equal(config->access_log.format, CONFIG_LOG_JSON);
    assert_string_equal(config->spool, "/tmp");
    assert_int_equal(config->loops, 3);
    assert_string_equal(config->admin, "127.0.0.1:9191");
    assert_int_equal(config->trusted_proxies.size, 2);
    assert_string_equal(config->trusted_proxies.items[1], "10.0.0.0/8");
    assert_true(config->pass_underscore);
    assert_string_equal(config->pulse, "/up");
    assert_int_equal(config->memory_total, 1 << 30);
    world_close(&world);
}

static void listeners_limits_and_timeouts_get_every_value(void **state)
{
    struct world world;
    const struct config *config;
    (void)state;

    open_everything(&world);
    config = world.config;
    assert_int_equal(config->listeners[0].mode, 0660);
    assert_int_equal(config->listeners[0].backlog, 5);
    assert_true(config->listeners[0].proxy_protocol);
    assert_int_equal(config->limits.target, 1 << 10);
    assert_int_equal(config->limits.field, 2 << 10);
    assert_int_equal(config->limits.header, 3 << 10);
    assert_int_equal(config->limits.headers, 10);
    assert_int_equal(config->limits.response_header, 4 << 10);
    assert_int_equal(config->limits.body, 5 << 20);
    assert_int_equal(config->limits.spool, 6 << 20);
    assert_int_equal(config->limits.connections, 7);
    assert_int_equal(config->timeouts.header_ms, 1000);
    assert_int_equal(config->timeouts.body_rate, 2);
    assert_int_equal(config->timeouts.write_rate, 3);
    assert_int_equal(config->timeouts.keepalive_ms, 4000);
    assert_int_equal(config->timeouts.drain_ms, 5000);
    assert_int_equal(config->timeouts.drain_delay_ms, 6000);
    assert_int_equal(config->timeouts.stream_drain_ms, 7000);
    world_close(&world);
}

static void the_pool_gets_every_value(void **state)
{
    struct world world;
    const struct config_pool *pool;
    (void)state;

    open_everything(&world);
    assert_int_equal(world.config->pool_size, 1);
    pool = world.config->pools[0];
    assert_string_equal(pool->name, "shop");
    assert_string_equal(pool->app, world.folder);
    assert_string_equal(pool->rackup, "other.ru");
    assert_string_equal(pool->ruby, "ruby");
    assert_int_equal(pool->workers_min, 2);
    assert_int_equal(pool->workers_max, 6);
    assert_int_equal(pool->threads, 9);
    assert_int_equal(pool->preload, CONFIG_PRELOAD_FALSE);
    assert_int_equal(pool->idle_ms, 60000);
    assert_int_equal(pool->max_requests, 100);
    assert_int_equal(pool->memory, 512 << 20);
    assert_int_equal(pool->memory_total, 2ull << 30);
    assert_int_equal(pool->timeout_ms, 61000);
    assert_int_equal(pool->start_timeout_ms, 62000);
    assert_int_equal(pool->queue_length, 11);
    assert_int_equal(pool->queue_timeout_ms, 12000);
    assert_int_equal(pool->env_size, 1);
    assert_string_equal(pool->env[0].name, "A");
    assert_string_equal(pool->env[0].value, "b");
    assert_int_equal(pool->malloc.allocator, CONFIG_ALLOCATOR_DEFAULT);
    assert_int_equal(pool->malloc.arenas, 2);
    assert_string_equal(pool->env_file + strlen(world.folder), "/the.env");
    assert_string_equal(pool->log + strlen(world.folder), "/log/shop.log");
    assert_string_equal(pool->user, "root");
    assert_string_equal(pool->group, "root");
    assert_int_equal(pool->umask, 022);
    world_close(&world);
}

static void the_site_gets_every_value(void **state)
{
    struct world world;
    const struct config_site *site;
    (void)state;

    open_everything(&world);
    assert_int_equal(world.config->site_size, 2);
    site = &world.config->sites[0];
    assert_int_equal(site->hosts.size, 2);
    assert_string_equal(site->hosts.items[0], "a.example.com");
    assert_string_equal(site->root + strlen(world.folder), "/pages");
    assert_ptr_equal(site->pool, world.config->pools[0]);
    assert_string_equal(site->pulse, "/pulse");
    assert_int_equal(site->limits.body, 20 << 20);
    assert_int_equal(site->limits.target, 1 << 10);
    assert_string_equal(site->links.items[0], "/srv/shared");
    assert_string_equal(site->serve.items[0], ".rb");
    assert_int_equal(site->internal_size, 2);
    assert_string_equal(site->internal[0].prefix, "/protected/");
    assert_string_equal(site->internal[0].folder + strlen(world.folder), "/files");
    assert_string_equal(site->internal[1].prefix, "/more/");
    assert_string_equal(site->internal[1].folder, "/srv");
    assert_true(site->compress);
    assert_true(site->page_cache_query);
    world_close(&world);
}

/* A new directive without a line in `everything` fails here. */
static void no_directive_is_left_out_above(void **state)
{
    size_t size;
    const struct directive *table = directives(&size);
    (void)state;

    for (size_t i = 0; i < size; i++) {
        char key[64];

        (void)snprintf(key, sizeof(key), "%s:", table[i].name);
        if (table[i].type != TYPE_LATER && !strstr(everything, key))
            fail_msg("%s is in no test", table[i].name);
    }
}

static void what_is_not_there_yet_says_so(void **state)
{
    const char *const later[] = {
        "listen: {address: 443, tls: {certificate: a}}",
        "pools: {a: {fastcgi: unix:/x}}",
        "pools: {a: {http: [127.0.0.1:1]}}",
        "sites: [{host: a, root: /, routes: [{path: /b, root: /, strip: true}]}]",
        "sites: [{host: a, apps: /srv}]",
        "max_connections: 3",
        "health: {path: /up}",
        "scripts: .php",
        "fallback: index.php",
        "dir: /srv",
    };
    struct world world;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(later); i++) {
        world_open_app(&world, later[i]);
        assert_null(world_load(&world));
        assert_int_equal(world.faults.size, 1);
        assert_non_null(strstr(world_fault(&world, 0), ": not yet"));
        world_close(&world);
    }
}

static void expect_fault(const char *yaml, const char *fault)
{
    struct world world;

    world_open_app(&world, yaml);
    assert_null(world_load(&world));
    assert_string_equal(world_fault(&world, 0), fault);
    assert_int_equal(world.faults.size, 1);
    world_close(&world);
}

static void an_unknown_key_names_the_nearest(void **state)
{
    (void)state;

    expect_fault("lissten: 80", "leat.yml:1:1: lissten: unknown key; the nearest known one is "
                                "\"listen\"");
    expect_fault("a: 1", "leat.yml:1:1: a: unknown key; the nearest known one is \"app\"");
    expect_fault("timeouts: {keep_alive: 3s}", "leat.yml:1:12: timeouts.keep_alive: unknown key; "
                                               "the nearest known one is \"keepalive\"");
    expect_fault("sites: [{hots: a, root: /tmp}]",
                 "leat.yml:1:10: sites[0].hots: unknown key; the nearest known one is \"host\"");
}

static void a_key_in_the_wrong_place_is_told_its_own(void **state)
{
    (void)state;

    expect_fault("keepalive: 3s",
                 "leat.yml:1:1: keepalive: unknown key here; it is a key of timeouts");
    expect_fault("pools: {a: {}}\nworkers: 3",
                 "leat.yml:2:1: workers: unknown key here; it is a key of a pool");
}

static void a_value_of_the_wrong_kind_says_what_was_expected(void **state)
{
    (void)state;

    expect_fault("workers: two",
                 "leat.yml:1:10: workers: expected N, MIN..MAX or auto, not \"two\"");
    expect_fault("workers: [1]", "leat.yml:1:10: workers: expected N, MIN..MAX or auto");
    expect_fault("limits: 3", "leat.yml:1:9: limits: expected a map");
    expect_fault("queue: off", "leat.yml:1:8: queue: expected a map");
    expect_fault("pools: [a]", "leat.yml:1:8: pools: expected a map of pools");
    expect_fault("sites: [a]", "leat.yml:1:9: sites[0]: expected a map");
    expect_fault("env: [A]", "leat.yml:1:6: env: expected a map of names and values");
    expect_fault("env: {A: [b]}", "leat.yml:1:10: env.A: expected a text");
    expect_fault("env: {'A=B': c}", "leat.yml:1:7: env.A=B: this cannot be the name of a variable");
    expect_fault("listen: {mode: 0600}", "leat.yml:1:9: listen: expected an address");
    expect_fault("listen: [80, x:y]", "leat.yml:1:14: listen[1]: a port must be from 1 to 65535, "
                                      "not \"x:y\"");
    expect_fault("trusted_proxies: [unix, foo]",
                 "leat.yml:1:25: trusted_proxies: expected unix, loopback, private, an address, or "
                 "a network such as 10.0.0.0/8, not \"foo\"");
    expect_fault("serve: [{a: b}]", "leat.yml:1:9: serve: expected an extension such as .rb");
    expect_fault("pools: {'a b': {}}",
                 "leat.yml:1:9: pools.a b: a pool's name has letters, digits, and - _ . only");
    expect_fault("- a\n- b\n", "leat.yml:1:1: expected a map of keys and values");
}

static void a_pool_that_is_not_there_names_the_nearest(void **state)
{
    (void)state;

    expect_fault(
        "sites: [{pool: shpo}]\npools: {shop: {}}\n",
        "leat.yml:1:16: sites[0].pool: there is no pool \"shpo\"; the nearest is \"shop\"");
    expect_fault(
        "sites: [{root: ., pool: shop}]\n",
        "leat.yml:1:25: sites[0].pool: no pool has a name here; name them below \"pools\"");
}

static void all_faults_of_a_file_are_told_at_once(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "workers: two\nthreads: 0\nlissten: x\nlog: ${NONE}\nadmin: '?'\n");
    assert_null(world_load(&world));
    assert_int_equal(world.faults.size, 5);
    assert_true(world_has_fault(&world, "leat.yml:2:10: threads: must be from 1 to 1024"));
    world_close(&world);
}

static void a_single_value_stands_for_a_list_and_off_for_none(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "trusted_proxies: off\nlinks: /srv\nlisten: 20501\naccess_log: a.log\n");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->trusted_proxies.size, 0);
    assert_int_equal(world.config->sites[0].links.size, 1);
    assert_string_equal(world.config->listeners[0].address, "127.0.0.1:20501");
    assert_int_equal(world.config->access_log.format, CONFIG_LOG_COMBINED);
    world_close(&world);
}

static void an_allocator_is_named_alone_or_in_a_map(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "malloc: default\n");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->malloc.allocator, CONFIG_ALLOCATOR_DEFAULT);
    assert_int_equal(world.config->pools[0]->malloc.arenas, 0);
    world_close(&world);
    world_open_app(&world, "malloc: tcmalloc\n");
    assert_null(world_load(&world));
    assert_true(world_has_fault(
        &world, "leat.yml:1:9: malloc.allocator: expected default or jemalloc, not \"tcmalloc\""));
    world_close(&world);
    world_open_app(&world, "malloc: {arena: 2}\n");
    assert_null(world_load(&world));
    assert_non_null(strstr(world_fault(&world, 0), "leat.yml:1:10: malloc.arena: "));
    assert_non_null(strstr(world_fault(&world, 0), "\"arenas\""));
    world_close(&world);
}

static void a_key_without_a_value_keeps_its_default(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "threads:\nworkers: ~\nlimits:\npools:\nlog: \"${NONE:-}\"\n");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->threads, 3);
    assert_string_equal(world.config->log, "stderr");
    world_close(&world);
}

static void pool_defaults_hold_until_the_pool_says_otherwise(void **state)
{
    struct world world;
    (void)state;

    world_open_app(&world, "pools: {a: {threads: 2}}\npool_defaults: {threads: 7, workers: 3}\n");
    assert_non_null(world_load(&world));
    assert_int_equal(world.config->pools[0]->threads, 2);
    assert_int_equal(world.config->pools[0]->workers_max, 3);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_gets_every_value),
        cmocka_unit_test(listeners_limits_and_timeouts_get_every_value),
        cmocka_unit_test(the_pool_gets_every_value),
        cmocka_unit_test(the_site_gets_every_value),
        cmocka_unit_test(no_directive_is_left_out_above),
        cmocka_unit_test(what_is_not_there_yet_says_so),
        cmocka_unit_test(an_unknown_key_names_the_nearest),
        cmocka_unit_test(a_key_in_the_wrong_place_is_told_its_own),
        cmocka_unit_test(a_value_of_the_wrong_kind_says_what_was_expected),
        cmocka_unit_test(a_pool_that_is_not_there_names_the_nearest),
        cmocka_unit_test(all_faults_of_a_file_are_told_at_once),
        cmocka_unit_test(a_single_value_stands_for_a_list_and_off_for_none),
        cmocka_unit_test(an_allocator_is_named_alone_or_in_a_map),
        cmocka_unit_test(a_key_without_a_value_keeps_its_default),
        cmocka_unit_test(pool_defaults_hold_until_the_pool_says_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

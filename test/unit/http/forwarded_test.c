/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/forwarded.c"

static void assert_span(struct span span, const char *text)
{
    if (!span_is(span, text))
        print_error("%.*s is not %s\n", SPAN_ARG(span), text);
    assert_true(span_is(span, text));
}

struct world {
    struct arena arena;
    struct forwarded_trust trust;
    struct request request;
    struct address peer;
    struct address local;
    struct client client;
};

static struct world *world_of(const char *trust, const char *peer)
{
    static struct world world;
    struct span words = span_of(trust);

    memset(&world, 0, sizeof(world));
    while (words.size)
        assert_true(forwarded_trust_add(&world.trust, span_split(&words, ' ')));
    assert_true(address_parse(span_of(peer), &world.peer));
    assert_true(address_parse(span_of("127.0.0.1:8080"), &world.local));
    fields_init(&world.request.fields, &world.arena);
    world.client.peer = &world.peer;
    world.client.local = &world.local;
    return &world;
}

static void field(struct world *world, const char *name, const char *value)
{
    assert_int_equal(fields_add(&world->request.fields, span_of(name), span_of(value)), 0);
}

static void expect_client(struct world *world, const char *address, unsigned port, bool secure)
{
    assert_int_equal(forwarded_read(&world->trust, &world->request, &world->arena, &world->client),
                     0);
    assert_span(world->client.address, address);
    assert_int_equal(world->client.port, port);
    assert_int_equal(world->client.secure, secure);
    arena_done(&world->arena);
}

static void without_trust_the_socket_alone_counts(void **state)
{
    struct world *world = world_of("unix", "127.0.0.1:5");
    (void)state;

    field(world, "X-Forwarded-For", "6.6.6.6");
    field(world, "X-Real-IP", "6.6.6.6");
    field(world, "Forwarded", "for=6.6.6.6;proto=https");
    field(world, "X-Forwarded-Proto", "https");
    field(world, "X-Forwarded-Port", "443");
    expect_client(world, "127.0.0.1", 8080, false);
    assert_false(world->client.trusted);
    assert_false(world->client.foreign);
}

static void a_unix_peer_is_the_local_host_or_whom_it_names(void **state)
{
    struct world *world = world_of("unix 192.0.2.0/24", "unix:/run/x.sock");
    (void)state;

    expect_client(world, "127.0.0.1", 8080, false);
    world = world_of("unix 192.0.2.0/24", "unix:/run/x.sock");
    field(world, "X-Forwarded-For", "203.0.113.9, 192.0.2.5");
    expect_client(world, "203.0.113.9", 8080, false);
}

static void the_walk_ends_at_the_first_hop_that_is_not_trusted(void **state)
{
    struct world *world = world_of("loopback private", "10.0.0.1:5");
    (void)state;

    field(world, "X-Forwarded-For", "6.6.6.6, 198.51.100.7");
    field(world, "X-Forwarded-For", "192.168.1.1:4711, \"[fd00::1]:80\"");
    expect_client(world, "198.51.100.7", 8080, false);
}

static void a_hop_that_cannot_be_read_ends_the_walk_before_it(void **state)
{
    struct world *world = world_of("loopback private", "10.0.0.1:5");
    (void)state;

    field(world, "X-Forwarded-For", "6.6.6.6, unknown, 192.168.1.1");
    expect_client(world, "192.168.1.1", 8080, false);
    world = world_of("loopback private", "10.0.0.1:5");
    field(world, "X-Forwarded-For", "_hidden");
    expect_client(world, "10.0.0.1", 8080, false);
}

static void forwarded_and_real_ip_are_read_when_there_is_no_list(void **state)
{
    struct world *world = world_of("loopback", "127.0.0.1:5");
    (void)state;

    field(world, "Forwarded",
          "for=\"[2001:DB8::1]:99\";proto=https;host=shop.example, for=127.0.0.1");
    expect_client(world, "2001:db8::1", 8080, true);
    world = world_of("loopback", "127.0.0.1:5");
    field(world, "X-Real-IP", "::ffff:198.51.100.1");
    expect_client(world, "198.51.100.1", 8080, false);
}

static void scheme_and_port_come_from_the_first_element(void **state)
{
    struct world *world = world_of("loopback", "127.0.0.1:5");
    (void)state;

    field(world, "X-Forwarded-Proto", "https, http");
    world->request.host = span_of("a");
    expect_client(world, "127.0.0.1", 443, true);
    world = world_of("loopback", "127.0.0.1:5");
    field(world, "X-Forwarded-Host", "a:8443, b:1");
    expect_client(world, "127.0.0.1", 8443, false);
    world = world_of("loopback", "127.0.0.1:5");
    field(world, "X-Forwarded-Port", "70000");
    field(world, "X-Forwarded-Ssl", "on");
    world->request.port = 81;
    expect_client(world, "127.0.0.1", 81, true);
}

static bool passes(const char *peer, const char *name)
{
    struct world *world = world_of("203.0.113.7", peer);
    struct field field = {.name = span_of(name), .id = http_field_id(span_of(name))};

    assert_int_equal(forwarded_read(&world->trust, &world->request, &world->arena, &world->client),
                     0);
    arena_done(&world->arena);
    return forwarded_passes(&world->client, &field);
}

static void claims_of_public_strangers_are_removed_and_dangerous_fields_always(void **state)
{
    (void)state;
    assert_true(passes("192.168.0.9:1", "X-Forwarded-Proto"));
    assert_true(passes("203.0.113.7:1", "X-Forwarded-Proto"));
    assert_false(passes("[2001:db8::5]:1", "X-Forwarded-Proto"));
    assert_false(passes("[2001:db8::5]:1", "x_forwarded_host"));
    assert_false(passes("[2001:db8::5]:1", "Client-IP"));
    assert_true(passes("[2001:db8::5]:1", "X-Forwarded-For"));
    assert_true(passes("[2001:db8::5]:1", "X-Other"));
    assert_false(passes("192.168.0.9:1", "Proxy"));
    assert_false(passes("203.0.113.7:1", "X_SENDFILE_TYPE"));
    assert_false(passes("192.168.0.9:1", "X-Accel-Mapping"));
}

static bool is_unheard(const char *peer, const char *name)
{
    struct world *world = world_of("unix 192.0.2.0/24", peer);
    bool unheard;

    field(world, name, "192.0.2.1");
    assert_int_equal(forwarded_read(&world->trust, &world->request, &world->arena, &world->client),
                     0);
    unheard = forwarded_is_unheard(&world->client, &world->request);
    arena_done(&world->arena);
    return unheard;
}

static void claims_of_peers_without_trust_are_noticed(void **state)
{
    (void)state;
    assert_true(is_unheard("127.0.0.1:5", "X-Forwarded-For"));
    assert_true(is_unheard("203.0.113.1:5", "Forwarded"));
    assert_true(is_unheard("[2001:db8::1]:5", "X-Real-IP"));
    assert_false(is_unheard("127.0.0.1:5", "X-Request-Id"));
    assert_false(is_unheard("192.0.2.9:5", "X-Forwarded-For"));
    assert_false(is_unheard("unix:/run/x.sock", "X-Forwarded-For"));
}

static void trust_takes_words_addresses_and_networks_only(void **state)
{
    static const char *bad[] = {"",         "lo",      "1.2.3",    "1.2.3.4/33",
                                "1.2.3.4/", "::1/129", "a.example"};
    struct forwarded_trust trust = {0};
    struct address peer;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(forwarded_trust_add(&trust, span_of(bad[i])));
    assert_int_equal(trust.count, 0);
    assert_true(forwarded_trust_add(&trust, span_of("192.0.2.128/25")));
    assert_true(address_parse(span_of("192.0.2.129:1"), &peer));
    assert_true(forwarded_is_trusted(&trust, &peer));
    assert_true(address_parse(span_of("[::ffff:192.0.2.200]:1"), &peer));
    assert_true(forwarded_is_trusted(&trust, &peer));
    assert_true(address_parse(span_of("192.0.2.127:1"), &peer));
    assert_false(forwarded_is_trusted(&trust, &peer));
    assert_true(forwarded_is_public(&peer));
    assert_true(address_parse(span_of("172.31.0.1:1"), &peer));
    assert_false(forwarded_is_public(&peer));
    assert_true(address_parse(span_of("unix:/x"), &peer));
    assert_false(forwarded_is_trusted(&trust, &peer));
    assert_false(forwarded_is_public(&peer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_trust_the_socket_alone_counts),
        cmocka_unit_test(a_unix_peer_is_the_local_host_or_whom_it_names),
        cmocka_unit_test(the_walk_ends_at_the_first_hop_that_is_not_trusted),
        cmocka_unit_test(a_hop_that_cannot_be_read_ends_the_walk_before_it),
        cmocka_unit_test(forwarded_and_real_ip_are_read_when_there_is_no_list),
        cmocka_unit_test(scheme_and_port_come_from_the_first_element),
        cmocka_unit_test(claims_of_public_strangers_are_removed_and_dangerous_fields_always),
        cmocka_unit_test(claims_of_peers_without_trust_are_noticed),
        cmocka_unit_test(trust_takes_words_addresses_and_networks_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

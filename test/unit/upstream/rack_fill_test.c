/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "upstream/rack_fill.c"

#include "rack_world.h"

/* Claims and fills a slot. */
static uint32_t fill(const struct exchange *exchange)
{
    uint32_t turn;
    int64_t slot = slot_claim(&world.board, 0, &turn);

    assert_true(slot >= 0);
    assert_true(rack_fill(world.rack, (uint32_t)slot, exchange));
    return (uint32_t)slot;
}

static bool part_is(uint32_t slot, struct slot_span part, const char *text)
{
    return span_is(slot_text(&world.board, slot, part), text);
}

/* The value of a field in the slot; an empty span without data when it has none. */
static struct span value_of(uint32_t slot, const char *name)
{
    struct slot_request *request = slot_request(&world.board, slot);
    struct slot_field *fields = (struct slot_field *)((char *)request + request->field_offset);
    struct span found = {0};

    for (uint32_t i = 0; i < request->field_count; i++)
        if (part_is(slot, fields[i].name, name)) {
            assert_null(found.data);
            found = slot_text(&world.board, slot, fields[i].value);
        }
    return found;
}

static void a_slot_says_what_the_request_says(void **state)
{
    struct exchange *exchange;
    struct slot_request *request;
    uint32_t slot;
    (void)state;

    world_open(0, 0);
    exchange = world_request("GET", "/a%2Fb?x=1&y");
    exchange->client.secure = true;
    slot = fill(exchange);
    request = slot_request(&world.board, slot);
    assert_true(part_is(slot, request->method, "GET"));
    assert_true(part_is(slot, request->target, "/a%2Fb?x=1&y"));
    assert_true(part_is(slot, request->path, "/a%2Fb"));
    assert_true(part_is(slot, request->query, "x=1&y"));
    assert_true(part_is(slot, request->protocol, "HTTP/1.1"));
    assert_true(part_is(slot, request->server_name, "example.com"));
    assert_true(part_is(slot, request->server_port, "8080"));
    assert_true(part_is(slot, request->remote_address, "192.0.2.7"));
    assert_true(part_is(slot, request->request_id, "id-1"));
    assert_true(part_is(slot, request->script_name, ""));
    assert_true(span_is(value_of(slot, "host"), "example.com:8080"));
    assert_null(value_of(slot, "content-length").data);
    assert_int_equal(request->flags, SLOT_FLAG_HTTPS);
    assert_int_equal(request->body_kind, SLOT_BODY_NONE);
    world_end(exchange);
    world_close();
}

static void repeated_fields_are_joined_and_cookies_differently(void **state)
{
    struct exchange *exchange;
    uint32_t slot;
    (void)state;

    world_open(0, 0);
    exchange = world_request("GET", "/");
    world_field(exchange, "X-Forwarded-For", "192.0.2.1");
    world_field(exchange, "Cookie", "a=1");
    world_field(exchange, "X-Own", "1");
    world_field(exchange, "x-forwarded-for", "198.51.100.2");
    world_field(exchange, "cookie", "b=2");
    world_field(exchange, "X-OWN", "2");
    world_field(exchange, "x-own", "3");
    slot = fill(exchange);
    assert_true(span_is(value_of(slot, "x-forwarded-for"), "192.0.2.1, 198.51.100.2"));
    assert_true(span_is(value_of(slot, "cookie"), "a=1; b=2"));
    assert_true(span_is(value_of(slot, "x-own"), "1, 2, 3"));
    world_end(exchange);
    world_close();
}

static void what_is_not_for_applications_stays_out(void **state)
{
    static const char *const names[] = {"Connection",   "Keep-Alive",        "TE",
                                        "Upgrade",      "Transfer-Encoding", "Expect",
                                        "Proxy",        "X-Sendfile-Type",   "X-Accel-Mapping",
                                        "X-Request-Id", "X_Forwarded_Proto", "X-User_Id"};
    struct exchange *exchange;
    uint32_t slot;
    (void)state;

    world_open(0, 0);
    exchange = world_request("GET", "/");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        world_field(exchange, names[i], "1");
    world_field(exchange, "Version", "HTTP/1.1");
    slot = fill(exchange);
    assert_int_equal(slot_request(&world.board, slot)->field_count, 2);
    assert_true(span_is(value_of(slot, "version"), "HTTP/1.1"));
    assert_int_equal(world.underscores, 2);
    world_end(exchange);
    world_close();
}

static int no_tunnel(struct exchange *exchange, int fd)
{
    (void)exchange;
    fd_close(&fd);
    return -ENOMEM;
}

/* The flags of a request whose Connection says that, over a carrier with or without tunnels. */
static uint32_t flags_with(const char *connection, unsigned minor, bool has_tunnel,
                           bool *ret_is_shown)
{
    const struct conn carrier = {.update = world_update, .tunnel = has_tunnel ? no_tunnel : NULL};
    struct exchange *exchange;
    uint32_t slot, flags;

    world_open(0, 0);
    exchange = world_request("GET", "/");
    exchange->conn = &carrier;
    exchange->request.minor = minor;
    world_field(exchange, "Connection", connection);
    world_field(exchange, "Upgrade", "websocket");
    slot = fill(exchange);
    flags = slot_request(&world.board, slot)->flags;
    *ret_is_shown = span_is(value_of(slot, "upgrade"), "websocket") &&
                    span_is(value_of(slot, "connection"), connection);
    assert_true(*ret_is_shown || !value_of(slot, "connection").data);
    world_end(exchange);
    world_close();
    return flags;
}

static void an_upgrade_is_shown_where_the_connection_can_be_given_away(void **state)
{
    bool is_shown;
    (void)state;

    assert_int_equal(flags_with("keep-alive, Upgrade", 1, true, &is_shown),
                     SLOT_FLAG_TUNNEL | SLOT_FLAG_UPGRADE);
    assert_true(is_shown);
    assert_int_equal(flags_with("keep-alive", 1, true, &is_shown), SLOT_FLAG_TUNNEL);
    assert_false(is_shown);
    assert_int_equal(flags_with("upgrade", 0, true, &is_shown),
                     SLOT_FLAG_TUNNEL | SLOT_FLAG_HTTP10);
    assert_false(is_shown);
    assert_int_equal(flags_with("upgrade", 1, false, &is_shown), 0);
    assert_false(is_shown);
}

static void underscores_pass_when_configured_unless_a_twin_exists(void **state)
{
    struct exchange *exchange;
    uint32_t slot;
    (void)state;

    world_open(0, 0);
    world.rack->options.pass_underscore = true;
    exchange = world_request("GET", "/");
    world_field(exchange, "x_alone", "1");
    world_field(exchange, "x_twin", "2");
    world_field(exchange, "X-Twin", "3");
    slot = fill(exchange);
    assert_true(span_is(value_of(slot, "x_alone"), "1"));
    assert_null(value_of(slot, "x_twin").data);
    assert_true(span_is(value_of(slot, "x-twin"), "3"));
    world_end(exchange);
    world_close();
}

static void a_small_body_travels_in_the_slot_with_its_length(void **state)
{
    struct exchange *exchange;
    struct slot_request *request;
    struct slot_span part;
    uint32_t slot;
    (void)state;

    world_open(0, 0);
    exchange = world_request("POST", "/");
    exchange->request.has_body = true;
    exchange->request.length = -1; /* chunked */
    buf_append(&exchange->request.body.memory, span_of("hello"));
    exchange->request.body.size = 5;
    slot = fill(exchange);
    request = slot_request(&world.board, slot);
    part = (struct slot_span){request->body_offset, (uint32_t)request->body_bytes};
    assert_int_equal(request->body_kind, SLOT_BODY_INLINE);
    assert_true(part_is(slot, part, "hello"));
    assert_true(span_is(value_of(slot, "content-length"), "5"));
    world_end(exchange);
    world_close();
}

static void a_large_body_stays_in_its_file(void **state)
{
    struct exchange *exchange;
    uint32_t slot;
    (void)state;

    world_open(0, 0);
    exchange = world_request("POST", "/");
    exchange->request.has_body = true;
    exchange->request.length = 1000000;
    exchange->request.body.size = 1000000;
    exchange->request.body.fd = fd_temporary("/tmp");
    slot = fill(exchange);
    assert_int_equal(slot_request(&world.board, slot)->body_kind, SLOT_BODY_FILE);
    assert_int_equal(slot_request(&world.board, slot)->body_bytes, 1000000);
    world_end(exchange);
    world_close();
}

static void a_head_that_does_not_fit_is_refused(void **state)
{
    static char large[130 * 1024];
    struct exchange *exchange;
    (void)state;

    world_open(0, 0);
    memset(large, 'x', sizeof(large) - 1);
    exchange = world_request("GET", "/");
    world_field(exchange, "x-large", large);
    rack_start(world.rack, exchange);
    assert_int_equal(exchange->response.status, 431);
    assert_int_equal(rack_held(world.rack), 0);
    world_end(exchange);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_says_what_the_request_says),
        cmocka_unit_test(repeated_fields_are_joined_and_cookies_differently),
        cmocka_unit_test(what_is_not_for_applications_stays_out),
        cmocka_unit_test(an_upgrade_is_shown_where_the_connection_can_be_given_away),
        cmocka_unit_test(underscores_pass_when_configured_unless_a_twin_exists),
        cmocka_unit_test(a_small_body_travels_in_the_slot_with_its_length),
        cmocka_unit_test(a_large_body_stays_in_its_file),
        cmocka_unit_test(a_head_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

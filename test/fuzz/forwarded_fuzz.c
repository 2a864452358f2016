/* SPDX-License-Identifier: MIT */
/*
 * Fields of proxies, one a line of the input in the order below: however they are spelled, a trusted peer's
 * name a numeric address and a port; a stranger's change nothing.
 */
#include "base/base.h"
#include "http/forwarded.h"

static const enum field_id ids[] = {FIELD_ID_X_FORWARDED_FOR,   FIELD_ID_FORWARDED,
                                    FIELD_ID_X_REAL_IP,         FIELD_ID_X_FORWARDED_HOST,
                                    FIELD_ID_X_FORWARDED_PROTO, FIELD_ID_X_FORWARDED_PORT};

static void check_client(const struct client *client, struct arena *arena)
{
    bool is_ip6 = span_find(client->address, ':') < client->address.size;
    struct span text =
        arena_printf(arena, is_ip6 ? "[%.*s]:1" : "%.*s:1", SPAN_ARG(client->address));
    struct address address;

    CHECK(client->port >= 1 && client->port <= 65535);
    CHECK(client->address.size && address_parse(text, &address));
}

static void check_peer(struct span lines, const char *trusted, bool is_trusted)
{
    struct arena arena = {0};
    struct forwarded_trust trust = {0};
    struct address peer;
    struct client client = {.peer = &peer, .local = &peer};
    struct request request = {.host = SPAN("a")};

    CHECK(address_parse(span_of("203.0.113.9:80"), &peer));
    CHECK(forwarded_trust_add(&trust, span_of(trusted)));
    fields_init(&request.fields, &arena);
    for (size_t i = 0; i < ARRAY_LEN(ids) && lines.size; i++)
        CHECK(fields_add_id(&request.fields, ids[i], span_trim(span_split(&lines, '\n'))) == 0);
    CHECK(forwarded_read(&trust, &request, &arena, &client) == 0);
    check_client(&client, &arena);
    CHECK(client.trusted == is_trusted);
    CHECK(is_trusted || (span_is(client.address, "203.0.113.9") && client.port == 80));
    fields_for_each (field, &request.fields)
        CHECK(forwarded_passes(&client, field) ==
              (is_trusted || field->id == FIELD_ID_X_FORWARDED_FOR));
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span lines = span_make((const char *)data, size);

    check_peer(lines, "203.0.113.0/24", true);
    check_peer(lines, "loopback", false);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "http/forwarded.h"

#include "base/ascii.h"
#include "base/num.h"
#include "http/target.h"

#include <arpa/inet.h>
#include <errno.h>

enum { IP4_OFFSET = 96, ADDRESS_BITS = 128 };

/* An address as 16 bytes, IPv4 mapped (RFC 4291 2.5.5.2). */
struct ip {
    uint8_t bytes[16];
};

enum kind { LOOPBACK, PRIVATE, LOCAL };

#define IP4(a, b, c, d)               \
    {                                 \
        [10] = 0xff, 0xff, a, b, c, d \
    }

/* What is not public. LOCAL networks are no "private" ones of `trusted_proxies`. */
static const struct {
    enum kind kind;
    struct forwarded_network network;
} inner[] = {
    {LOOPBACK, {IP4(127, 0, 0, 0), IP4_OFFSET + 8}},
    {LOOPBACK, {{[15] = 1}, ADDRESS_BITS}},
    {PRIVATE, {IP4(10, 0, 0, 0), IP4_OFFSET + 8}},
    {PRIVATE, {IP4(172, 16, 0, 0), IP4_OFFSET + 12}},
    {PRIVATE, {IP4(192, 168, 0, 0), IP4_OFFSET + 16}},
    {PRIVATE, {{0xfc}, 7}},
    {LOCAL, {IP4(169, 254, 0, 0), IP4_OFFSET + 16}},
    {LOCAL, {{0xfe, 0x80}, 10}},
    {LOCAL, {IP4(100, 64, 0, 0), IP4_OFFSET + 10}},
};

static void map_ip4(const void *ip4, struct ip *ret_ip)
{
    memset(ret_ip, 0, sizeof(*ret_ip));
    ret_ip->bytes[10] = ret_ip->bytes[11] = 0xff;
    memcpy(ret_ip->bytes + 12, ip4, 4);
}

static bool is_ip4(const struct ip *ip)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(ip->bytes, mapped, sizeof(mapped)) == 0;
}

static bool parse_ip(struct span text, struct ip *ret_ip)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr ip4;

    if (!text.size || text.size >= sizeof(copy))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    if (inet_pton(AF_INET, copy, &ip4) == 1) {
        map_ip4(&ip4, ret_ip);
        return true;
    }
    return inet_pton(AF_INET6, copy, ret_ip->bytes) == 1;
}

/* An address of a list: bare, in brackets, quoted, with or without a port (RFC 7239 6). */
static bool parse_hop(struct span text, struct ip *ret_ip)
{
    size_t colon;

    text = span_trim(text);
    if (text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"')
        text = span_make(text.data + 1, text.size - 2);
    if (text.size && text.data[0] == '[')
        return parse_ip(span_skip(span_first(text, span_find(text, ']')), 1), ret_ip);
    colon = span_find(text, ':');
    if (colon < text.size && colon == span_find_last(text, ':'))
        text = span_first(text, colon);
    return parse_ip(text, ret_ip);
}

static bool parse_network(struct span text, struct forwarded_network *ret_network)
{
    size_t slash = span_find(text, '/');
    struct ip ip;
    unsigned offset;
    uint64_t bits;

    if (!parse_ip(span_first(text, slash), &ip))
        return false;
    offset = is_ip4(&ip) && span_find(text, ':') == text.size ? IP4_OFFSET : 0;
    bits = ADDRESS_BITS - offset;
    if (slash < text.size && (!num_decimal(span_skip(text, slash + 1), &bits) ||
                              bits > ADDRESS_BITS - offset || slash + 1 == text.size))
        return false;
    memcpy(ret_network->bytes, ip.bytes, sizeof(ip.bytes));
    ret_network->bits = (unsigned)bits + offset;
    return true;
}

static bool is_inside(const struct ip *ip, const struct forwarded_network *network)
{
    unsigned bytes = network->bits / 8, bits = network->bits % 8;
    unsigned mask = 0xff00u >> bits & 0xff;

    if (memcmp(ip->bytes, network->bytes, bytes) != 0)
        return false;
    return !bits || ((ip->bytes[bytes] ^ network->bytes[bytes]) & mask) == 0;
}

static bool is_trusted_ip(const struct forwarded_trust *trust, const struct ip *ip)
{
    for (unsigned i = 0; i < trust->count; i++) {
        if (is_inside(ip, &trust->networks[i]))
            return true;
    }
    return false;
}

static bool add_network(struct forwarded_trust *trust, const struct forwarded_network *network)
{
    if (trust->count == FORWARDED_NETWORKS)
        return false;
    trust->networks[trust->count++] = *network;
    return true;
}

static bool add_kind(struct forwarded_trust *trust, enum kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(inner); i++) {
        if (inner[i].kind == kind && !add_network(trust, &inner[i].network))
            return false;
    }
    return true;
}

bool forwarded_trust_add(struct forwarded_trust *trust, struct span word)
{
    struct forwarded_network network;

    if (span_is(word, "unix") || span_is(word, "unix:")) {
        trust->unix_peers = true;
        return true;
    }
    if (span_is(word, "loopback"))
        return add_kind(trust, LOOPBACK);
    if (span_is(word, "private"))
        return add_kind(trust, PRIVATE);
    return parse_network(word, &network) && add_network(trust, &network);
}

static bool read_address(const struct address *address, struct ip *ret_ip)
{
    if (address->socket.any.sa_family == AF_INET) {
        map_ip4(&address->socket.ip4.sin_addr, ret_ip);
        return true;
    }
    if (address->socket.any.sa_family != AF_INET6)
        return false;
    memcpy(ret_ip->bytes, &address->socket.ip6.sin6_addr, sizeof(ret_ip->bytes));
    return true;
}

bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct address *peer)
{
    struct ip ip;

    if (!read_address(peer, &ip))
        return trust->unix_peers;
    return is_trusted_ip(trust, &ip);
}

bool forwarded_is_public(const struct address *peer)
{
    struct ip ip;

    if (!read_address(peer, &ip))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(inner); i++) {
        if (is_inside(&ip, &inner[i].network))
            return false;
    }
    return true;
}

static struct span last_part(struct span *list, char separator)
{
    size_t at = span_find_last(*list, separator);
    struct span part = at < list->size ? span_skip(*list, at + 1) : *list;

    *list = at < list->size ? span_first(*list, at) : (struct span){NULL, 0};
    return part;
}

/* The value of one parameter of a Forwarded element (RFC 7239 4), or an empty span. */
static struct span parameter(struct span element, struct span name)
{
    while (element.data) {
        struct span pair = span_trim(span_split(&element, ';'));
        size_t equals = span_find(pair, '=');
        struct span value = span_skip(pair, equals + 1);

        if (equals == pair.size || !ascii_equal_fold(span_first(pair, equals), name))
            continue;
        if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"')
            value = span_make(value.data + 1, value.size - 2);
        return value;
    }
    return (struct span){NULL, 0};
}

/* Walks all fields of one id from the right, past hops that are trusted. Each hop vouches for the one
 * to its left, so the first that is not trusted is the client; a hop that cannot be read ends the
 * walk at the one that named it. Returns whether *ret_ip was set. */
static bool walk(const struct forwarded_trust *trust, const struct fields *fields, enum field_id id,
                 struct ip *ret_ip)
{
    static const struct span for_name = SPAN("for");
    bool found = false;

    for (uint32_t i = fields->size; i-- > 0;) {
        struct span list = fields->items[i].value;

        if (fields->items[i].id != id)
            continue;
        while (list.data) {
            struct span hop = last_part(&list, ',');
            struct ip ip;

            if (id == FIELD_ID_FORWARDED)
                hop = parameter(hop, for_name);
            if (!parse_hop(hop, &ip))
                return found;
            *ret_ip = ip;
            found = true;
            if (!is_trusted_ip(trust, &ip))
                return true;
        }
    }
    return found;
}

static bool find_client(const struct forwarded_trust *trust, const struct fields *fields,
                        struct ip *ret_ip)
{
    return walk(trust, fields, FIELD_ID_X_FORWARDED_FOR, ret_ip) ||
           walk(trust, fields, FIELD_ID_FORWARDED, ret_ip) ||
           parse_hop(fields_value(fields, FIELD_ID_X_REAL_IP), ret_ip);
}

static struct span format_ip(const struct ip *ip, struct arena *arena)
{
    char text[INET6_ADDRSTRLEN];
    bool ip4 = is_ip4(ip);

    if (!inet_ntop(ip4 ? AF_INET : AF_INET6, ip4 ? ip->bytes + 12 : ip->bytes, text, sizeof(text)))
        return (struct span){NULL, 0};
    return arena_copy(arena, span_of(text));
}

/* The first element counts: it is what the proxy nearest to the client saw. */
static struct span first_of(const struct fields *fields, enum field_id id)
{
    struct span list = fields_value(fields, id);

    return span_trim(span_split(&list, ','));
}

static struct span first_forwarded(const struct fields *fields, const char *name)
{
    return parameter(first_of(fields, FIELD_ID_FORWARDED), span_of(name));
}

static bool read_secure(const struct fields *fields, bool secure)
{
    static const struct span https = SPAN("https"), on = SPAN("on");
    struct span proto = first_of(fields, FIELD_ID_X_FORWARDED_PROTO);

    if (!proto.size)
        proto = first_forwarded(fields, "proto");
    if (!proto.size)
        proto = first_of(fields, FIELD_ID_X_FORWARDED_SCHEME);
    if (proto.size)
        return ascii_equal_fold(proto, https);
    if (fields_find(fields, FIELD_ID_X_FORWARDED_SSL))
        return ascii_equal_fold(first_of(fields, FIELD_ID_X_FORWARDED_SSL), on);
    return secure;
}

/* The port that the proxies' client used, 0 when no field says so. */
static unsigned read_port(const struct fields *fields, struct arena *arena)
{
    struct span text = first_of(fields, FIELD_ID_X_FORWARDED_PORT);
    uint64_t number;
    struct span host;
    unsigned port = 0;

    if (num_decimal(text, &number) && number > 0 && number <= 65535)
        return (unsigned)number;
    text = first_of(fields, FIELD_ID_X_FORWARDED_HOST);
    if (!text.size)
        text = first_forwarded(fields, "host");
    if (!text.size || !target_parse_authority(text, arena, &host, &port))
        return 0;
    return port;
}

/* A Host without port means the scheme's own (RFC 9110 4.2); without Host the listener is all that
 * is known. */
static unsigned default_port(const struct request *request, const struct client *client)
{
    unsigned listener = address_port(client->local);

    if (request->port)
        return request->port;
    if (request->host.size || !listener)
        return client->secure ? 443 : 80;
    return listener;
}

static struct span format_peer(const struct address *peer, struct arena *arena)
{
    char text[INET6_ADDRSTRLEN + 32];
    size_t size = address_format_host(peer, text, sizeof(text));

    return arena_copy(arena, span_make(text, size));
}

int forwarded_read(const struct forwarded_trust *trust, const struct request *request,
                   struct arena *arena, struct client *client)
{
    struct ip ip;

    client->trusted = forwarded_is_trusted(trust, client->peer);
    client->foreign = !client->trusted && forwarded_is_public(client->peer);
    client->port = 0;
    if (client->trusted) {
        client->secure = read_secure(&request->fields, client->secure);
        client->port = read_port(&request->fields, arena);
    }
    if (client->trusted && find_client(trust, &request->fields, &ip))
        client->address = format_ip(&ip, arena);
    else
        client->address = format_peer(client->peer, arena);
    if (!client->port)
        client->port = default_port(request, client);
    return client->address.data ? 0 : -ENOMEM;
}

/* A name with '_' becomes the same environment key as its twin with '-', so it is that field. */
static enum field_id twin(struct span name)
{
    char copy[32];

    if (name.size > sizeof(copy) || span_find(name, '_') == name.size)
        return FIELD_OTHER;
    for (size_t i = 0; i < name.size; i++)
        copy[i] = name.data[i] == '_' ? '-' : name.data[i];
    return http_field_id(span_make(copy, name.size));
}

static bool is_claim(enum field_id id)
{
    switch (id) {
    case FIELD_ID_X_FORWARDED_PROTO:
    case FIELD_ID_X_FORWARDED_SSL:
    case FIELD_ID_X_FORWARDED_SCHEME:
    case FIELD_ID_X_FORWARDED_HOST:
    case FIELD_ID_X_FORWARDED_PORT:
    case FIELD_ID_FORWARDED:
    case FIELD_ID_X_REAL_IP:
    case FIELD_ID_CLIENT_IP:
        return true;
    default:
        return false;
    }
}

bool forwarded_is_unheard(const struct client *client, const struct request *request)
{
    const struct fields *fields = &request->fields;

    if (client->trusted)
        return false;
    for (uint32_t i = 0; i < fields->size; i++) {
        enum field_id id = fields->items[i].id;

        if (id == FIELD_ID_X_FORWARDED_FOR || is_claim(id))
            return true;
    }
    return false;
}

bool forwarded_passes(const struct client *client, const struct field *field)
{
    enum field_id id = field->id == FIELD_OTHER ? twin(field->name) : field->id;

    if (http_field_flags(id) & FIELD_DROP)
        return false;
    return !client->foreign || !is_claim(id);
}

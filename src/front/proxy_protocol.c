/* SPDX-License-Identifier: MIT */
#include "front/proxy_protocol.h"

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    LINE_BYTES = 107, /* the longest line of version 1, its end included */
    FIXED_BYTES = 16, /* of version 2, ahead of the addresses */
    PATH_BYTES = 108
};

enum { COMMAND_LOCAL, COMMAND_PROXY };

static const struct span line_start = SPAN("PROXY ");
static const struct span signature = SPAN("\r\n\r\n\0\r\nQUIT\n");

/* Whether bytes are the text, or begin it as far as they go. */
static bool may_start_with(struct span bytes, struct span text)
{
    size_t size = bytes.size < text.size ? bytes.size : text.size;

    return memcmp(bytes.data, text.data, size) == 0;
}

/* ---- Version 1 ---- */

/* Writes host and port as address_parse reads them; no part can pretend to be another one, as a colon
 * or a bracket in it leaves no number behind the last of them. */
static bool parse_side(const char *format, struct span host, struct span port,
                       struct address *ret_address)
{
    char text[LINE_BYTES + 8];
    int size = snprintf(text, sizeof(text), format, SPAN_ARG(host), SPAN_ARG(port));

    return span_find(host, '\0') == host.size &&
           address_parse(span_make(text, (size_t)size), ret_address);
}

/* "SOURCE DESTINATION PORT PORT" */
static bool parse_sides(const char *format, struct span text, struct proxy_protocol *header)
{
    struct span peer = span_split(&text, ' ');
    struct span local = span_split(&text, ' ');
    struct span peer_port = span_split(&text, ' ');

    header->named = true;
    return parse_side(format, peer, peer_port, &header->peer) &&
           parse_side(format, local, text, &header->local);
}

static bool parse_line(struct span line, struct proxy_protocol *header)
{
    struct span text = span_skip(line, line_start.size);
    struct span family = span_split(&text, ' ');

    /* What follows UNKNOWN means nothing to anybody. */
    if (span_is(family, "UNKNOWN"))
        return true;
    if (span_is(family, "TCP4"))
        return parse_sides("%.*s:%.*s", text, header);
    return span_is(family, "TCP6") && parse_sides("[%.*s]:%.*s", text, header);
}

static enum proxy_protocol_verdict read_line(struct span seen, struct proxy_protocol *ret_header)
{
    struct proxy_protocol header = {0};
    size_t end = span_find(span_first(seen, LINE_BYTES), '\n');

    if (end >= LINE_BYTES)
        return PROXY_PROTOCOL_REFUSED;
    if (end == seen.size)
        return PROXY_PROTOCOL_MORE;
    if (end < line_start.size || seen.data[end - 1] != '\r' ||
        !parse_line(span_first(seen, end - 1), &header))
        return PROXY_PROTOCOL_REFUSED;
    header.size = end + 1;
    *ret_header = header;
    return PROXY_PROTOCOL_DONE;
}

/* ---- Version 2 ---- */

static void set_ip4(struct address *address, const char *host, const char *port)
{
    struct sockaddr_in *ip4 = &address->socket.ip4;

    ip4->sin_family = AF_INET;
    memcpy(&ip4->sin_addr, host, sizeof(ip4->sin_addr));
    memcpy(&ip4->sin_port, port, sizeof(ip4->sin_port));
    address->size = sizeof(*ip4);
}

static void set_ip6(struct address *address, const char *host, const char *port)
{
    struct sockaddr_in6 *ip6 = &address->socket.ip6;

    ip6->sin6_family = AF_INET6;
    memcpy(&ip6->sin6_addr, host, sizeof(ip6->sin6_addr));
    memcpy(&ip6->sin6_port, port, sizeof(ip6->sin6_port));
    address->size = sizeof(*ip6);
}

/* A path need not end; one in the abstract namespace, or none, counts as no path. */
static void set_unix(struct address *address, const char *path)
{
    struct sockaddr_un *local = &address->socket.local;

    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, PATH_BYTES);
    memcpy(address->path, path, strnlen(path, PATH_BYTES));
    address->size = sizeof(*local);
}

static void read_ip4(const char *at, struct proxy_protocol *header)
{
    set_ip4(&header->peer, at, at + 8);
    set_ip4(&header->local, at + 4, at + 10);
}

static void read_ip6(const char *at, struct proxy_protocol *header)
{
    set_ip6(&header->peer, at, at + 32);
    set_ip6(&header->local, at + 16, at + 34);
}

static void read_unix(const char *at, struct proxy_protocol *header)
{
    set_unix(&header->peer, at);
    set_unix(&header->local, at + PATH_BYTES);
}

/* Families that a header may name. What is no stream is valid and says nothing about ours. */
struct family {
    uint8_t code;
    uint8_t bytes; /* of both addresses */
    void (*read)(const char *at, struct proxy_protocol *header);
};

static const struct family families[] = {
    {0x00, 0, NULL},        /* unspecified */
    {0x11, 12, read_ip4},   /* TCP over IPv4 */
    {0x12, 12, NULL},       /* UDP over IPv4 */
    {0x21, 36, read_ip6},   /* TCP over IPv6 */
    {0x22, 36, NULL},       /* UDP over IPv6 */
    {0x31, 216, read_unix}, /* Unix stream */
    {0x32, 216, NULL},      /* Unix datagram */
};

static const struct family *find_family(uint8_t code)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (families[i].code == code)
            return &families[i];
    return NULL;
}

static enum proxy_protocol_verdict read_binary(struct span seen, struct proxy_protocol *ret_header)
{
    const uint8_t *bytes = (const uint8_t *)seen.data;
    struct proxy_protocol header = {0};
    const struct family *family;
    size_t length;

    if (seen.size < FIXED_BYTES)
        return PROXY_PROTOCOL_MORE;
    length = (size_t)bytes[14] << 8 | bytes[15];
    header.size = FIXED_BYTES + length;
    if (bytes[12] == (0x20 | COMMAND_LOCAL)) {
        *ret_header = header;
        return PROXY_PROTOCOL_DONE;
    }
    family = find_family(bytes[13]);
    if (bytes[12] != (0x20 | COMMAND_PROXY) || !family || length < family->bytes)
        return PROXY_PROTOCOL_REFUSED;
    if (seen.size < FIXED_BYTES + (size_t)family->bytes)
        return PROXY_PROTOCOL_MORE;
    header.named = family->read;
    if (family->read)
        family->read(seen.data + FIXED_BYTES, &header);
    *ret_header = header;
    return PROXY_PROTOCOL_DONE;
}

enum proxy_protocol_verdict proxy_protocol_read(struct span seen, struct proxy_protocol *ret_header)
{
    if (!seen.size)
        return PROXY_PROTOCOL_MORE;
    if (may_start_with(seen, line_start))
        return read_line(seen, ret_header);
    if (may_start_with(seen, signature))
        return read_binary(seen, ret_header);
    return PROXY_PROTOCOL_REFUSED;
}

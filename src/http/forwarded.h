/* SPDX-License-Identifier: MIT */
/*
 * Forwarded fields: who the client is when the peer is a trusted proxy, and which claims of a peer may
 * reach an application (docs/deploy.md). Pure, over a set of trusted peers that its owner keeps
 * unchanged while connections use it. Any thread.
 */
#pragma once

#include "base/arena.h"
#include "http/exchange.h"

/* A network: the first `bits` of `bytes`. IPv4 is kept as mapped into IPv6, so that one address
 * matches in either form. */
struct forwarded_network {
    uint8_t bytes[16];
    unsigned bits;
};

enum { FORWARDED_NETWORKS = 64 };

/* The trusted peers; zeros trust nobody. */
struct forwarded_trust {
    bool unix_peers; /* whoever may connect to a Unix socket */
    struct forwarded_network networks[FORWARDED_NETWORKS];
    unsigned count;
};

/* Adds one word of `trusted_proxies`: "unix", "loopback", "private", an address or a network such as
 * "203.0.113.0/24". False when it is none of them or the set is full. */
bool forwarded_trust_add(struct forwarded_trust *trust, struct span word);

/* Whether an address (or its socket) is in the set; whether it is neither loopback, private nor
 * link-local. */
bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct address *peer);
bool forwarded_is_public(const struct address *peer);

/* Fills in who the client is, from peer and local address and `secure` (of the stream itself), which
 * the connection has set in client, and from the request's fields and authority. 0 or -ENOMEM. */
int forwarded_read(const struct forwarded_trust *trust, const struct request *request,
                   struct arena *arena, struct client *client);

/* Whether the request says something of the client that its peer is not trusted to say. */
bool forwarded_is_unheard(const struct client *client, const struct request *request);

/* Whether a field of the request may reach the application. Hop-by-hop fields are the reader's own
 * business (http_field_flags). */
bool forwarded_passes(const struct client *client, const struct field *field);

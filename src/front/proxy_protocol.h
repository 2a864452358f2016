/* SPDX-License-Identifier: MIT */
/*
 * The PROXY header: what a load balancer sends ahead of a connection's first byte to name the client and
 * the address that it asked (the PROXY protocol, versions 1 and 2). Pure.
 *
 *   1   PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n      at most 107 bytes
 *   2   | signature 12 | version, command 1 | family 1 | length 2 | addresses, then anything |
 *
 * Invariant: while the verdict is MORE, every byte seen belongs to the header, so that a reader never
 * takes what comes behind it.
 */
#pragma once

#include "loop/address.h"

enum {
    PROXY_PROTOCOL_ROOM = 16 + 216 /* with so many bytes seen, the verdict is not MORE */
};

enum proxy_protocol_verdict {
    PROXY_PROTOCOL_MORE,
    PROXY_PROTOCOL_DONE,
    PROXY_PROTOCOL_REFUSED /* whatever follows, it is no header */
};

struct proxy_protocol {
    size_t size;          /* of the whole header; version 2 may be longer than what was seen */
    bool named;           /* peer and local are set; else the connection's own count */
    struct address peer;  /* the client */
    struct address local; /* what the client connected to */
};

/* Reads a header from the first bytes of a connection; *ret_header is set when it is DONE. */
enum proxy_protocol_verdict proxy_protocol_read(struct span seen,
                                                struct proxy_protocol *ret_header);

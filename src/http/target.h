/* SPDX-License-Identifier: MIT */
/*
 * The request target and the Host field: which path, query and authority a request names (RFC 9112
 * 3.2), and the decoded path of a file. Pure; the only memory is the arena it is given. Any thread.
 */
#pragma once

#include "base/arena.h"
#include "http/http.h"

/* What a target says. Spans point into the target, or into the arena where case was folded. */
struct target {
    struct span path; /* undecoded; "/" when an absolute target has none; "*" only for OPTIONS */
    struct span query;
    bool has_query;
    struct span authority; /* of the absolute form, as written; data NULL for the other forms */
};

/* Splits a target that the grammar let through. REFUSAL_METHOD for CONNECT (we are no tunnel),
 * REFUSAL_MALFORMED for a form that the method may not use, REFUSAL_HOST for a bad authority. */
enum refusal target_parse(enum method method, struct span text, struct target *ret_target);

/* Splits an authority or Host value into a lower-case host (brackets of an IPv6 address kept) and a
 * port, 0 when it names none. False when it is not a valid one; an empty host is not. */
bool target_parse_authority(struct span text, struct arena *arena, struct span *ret_host,
                            unsigned *ret_port);

/* The path of a file below some root: percent-decoded once, dot segments and empty segments removed
 * (RFC 3986 5.2.4), without a leading slash, with a NUL behind it that the span does not count. The
 * trailing slash of a folder is kept. False for what can name no file: a bad escape, an encoded slash
 * or NUL, and a path that climbs above its root. */
bool target_decode(struct span path, struct arena *arena, struct span *ret_name);

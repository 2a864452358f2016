/* SPDX-License-Identifier: MIT */
/*
 * Decides what the fields of a request mean for its connection: whether and how a body follows, and
 * whether the connection stays. The only place that decides this; where two readers could disagree,
 * the request is refused (RFC 9112 6, 9.3, 11.2). Pure.
 */
#pragma once

#include "http/fields.h"

enum h1_body { H1_BODY_NONE, H1_BODY_LENGTH, H1_BODY_CHUNKED };

struct h1_framing {
    enum h1_body body;
    int64_t length; /* of the body; -1 when chunked, 0 when there is none */
    bool keep_alive;
    bool expects_continue;
};

/* The framing of a request of HTTP/1.minor, or the reason to refuse it (ret_framing is untouched). */
enum refusal h1_framing_decide(const struct fields *fields, unsigned minor,
                               struct h1_framing *ret_framing);

/* How an answer is framed. */
struct h1_answer {
    unsigned status;
    unsigned minor;  /* of the request */
    bool no_body;    /* HEAD, or a status without body */
    bool is_head;    /* the request was HEAD */
    int64_t length;  /* of the body, -1 when unknown */
    bool keep_alive; /* what the request and the connection allow */
};

struct h1_answer_framing {
    bool chunked;
    int64_t length;  /* for Content-Length, or -1: none */
    bool keep_alive; /* false also where only the end of the connection ends the body */
};

/* The framing of an answer (RFC 9112 6.3). */
struct h1_answer_framing h1_framing_answer(const struct h1_answer *answer);

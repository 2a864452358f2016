/* SPDX-License-Identifier: MIT */
/*
 * The enumerations of HTTP, made from the .def lists beside this file, and their words. Pure.
 */
#pragma once

#include "base/span.h"

enum method {
    METHOD_OTHER, /* a token that is none of the list: passed on as it is */
#define ROW(constant, text, safe) METHOD_##constant,
#include "http/method.def"
#undef ROW
};

/* Why a request or connection ended early; REFUSAL_NONE when it did not. */
enum refusal {
    REFUSAL_NONE,
#define ROW(constant, word, status, words) REFUSAL_##constant,
#include "http/refusal.def"
#undef ROW
    REFUSAL_COUNT
};

enum field_flag { FIELD_HOP = 1, FIELD_ONE = 2, FIELD_DROP = 4 };

enum field_id {
    FIELD_OTHER, /* a name that the server does not know */
#define ROW(constant, name, flags) FIELD_ID_##constant,
#include "http/field.def"
#undef ROW
    FIELD_ID_COUNT
};

/* Methods are case-sensitive (RFC 9110 9.1). */
enum method http_method(struct span text);

/* Whether a request of this method may run again when no byte of an answer was sent. */
bool http_method_is_safe(enum method method);

/* The word for logs and metrics, the status (0: nothing is answered), and a sentence for people. */
const char *http_refusal_word(enum refusal refusal);
unsigned http_refusal_status(enum refusal refusal);
const char *http_refusal_text(enum refusal refusal);

/* The reason phrase of a status code, "" when it has none. */
const char *http_status_phrase(unsigned status);

/* Whether an answer with this status never has a body (1xx, 204, 304; RFC 9112 6.3). */
bool http_status_has_no_body(unsigned status);

/* The id of a field name in any case, and name and flags of an id. */
enum field_id http_field_id(struct span name);
struct span http_field_name(enum field_id id);
unsigned http_field_flags(enum field_id id);

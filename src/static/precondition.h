/* SPDX-License-Identifier: MIT */
/*
 * Conditional requests (RFC 9110 13): whether a file that has these validators is sent, is unchanged, or
 * must not be sent. Pure; any thread.
 */
#pragma once

#include "http/fields.h"

#include <time.h>

/* What tells one version of a file from another. */
struct validators {
    struct span etag; /* with its quotes, and W/ when it is a weak one; empty when there is none */
    time_t modified;  /* seconds since 1970 */
    bool date_is_shared; /* another version was served with the same second: only the etag counts */
};

enum precondition_answer {
    PRECONDITION_PASS,
    PRECONDITION_NOT_MODIFIED, /* 304 */
    PRECONDITION_FAILED        /* 412 */
};

/* Evaluates the If-* fields of a GET or HEAD in the order of RFC 9110 13.2.2, If-Range excepted. */
enum precondition_answer precondition_check(const struct fields *request,
                                            const struct validators *validators);

/* Whether the Range field counts: there is no If-Range, or it names exactly this version (RFC 9110
 * 13.1.5). */
bool precondition_range_counts(const struct fields *request, const struct validators *validators);

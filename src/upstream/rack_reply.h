/* SPDX-License-Identifier: MIT */
/*
 * What a worker writes as its answer, read without trust: the order of records, and the form of a head.
 * Pure; the bytes have been copied out of the board before.
 */
#pragma once

#include "board/page.h"

/* What the next record means, or that it cannot stand there. */
enum reply_step {
    REPLY_BROKEN,
    REPLY_INTERIM,
    REPLY_HEAD_PART, /* more of the head follows in the next record */
    REPLY_HEAD,      /* the head is complete with this record */
    REPLY_DATA,
    REPLY_FILE,
    REPLY_TUNNEL,
    REPLY_TRAILERS,
    REPLY_END
};

enum reply_state {
    REPLY_AT_START,
    REPLY_IN_HEAD,
    REPLY_AT_TUNNEL,
    REPLY_IN_BODY,
    REPLY_IN_TRAILERS,
    REPLY_OVER
};

/* Where an answer stands; zeros are its start. */
struct reply {
    enum reply_state state;
};

/* Judges one record by the order that board/page.h fixes and moves on; a broken answer stays broken. */
enum reply_step reply_step(struct reply *reply, const struct page_record *record);

struct reply_head {
    unsigned status;
    unsigned field_count;
    struct span fields; /* for reply_field */
};

/* Reads the start of a head and checks every field's form and that their number and bytes agree. The
 * status is 200..599 or 101, or 103 for an interim one. False when it is none. */
bool reply_head_read(struct span payload, bool interim, struct reply_head *ret_head);

/* The same for fields without a start (trailers). */
bool reply_fields_are_valid(struct span fields, unsigned *ret_count);

/* Cuts the next field off fields that were checked; false at their end. */
bool reply_field(struct span *fields, struct span *ret_name, struct span *ret_value);

/* The file range of a FILE record; false when the payload is none. */
bool reply_file_read(struct span payload, struct page_file *ret_file);

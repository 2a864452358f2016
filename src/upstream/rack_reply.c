/* SPDX-License-Identifier: MIT */
#include "upstream/rack_reply.h"

#include "base/ascii.h"
#include "base/base.h"

enum { FIELD_PREFIX = 8 }; /* u16 name size, u16 0, u32 value size */

/* Which state follows a record; absent pairs (REPLY_BROKEN) are those that no worker writes. */
struct transition {
    enum reply_step step;
    enum reply_state next;
};

static const struct transition transitions[][PAGE_END + 1] =
    {
        [REPLY_AT_START] =
            {
                [PAGE_INTERIM] = {REPLY_INTERIM, REPLY_AT_START},
                [PAGE_HEAD] = {REPLY_HEAD, REPLY_IN_BODY},
                [PAGE_TUNNEL] = {REPLY_TUNNEL, REPLY_OVER},
                [PAGE_END] = {REPLY_END, REPLY_OVER},
            },
        [REPLY_IN_HEAD] =
            {
                [PAGE_HEAD] = {REPLY_HEAD, REPLY_IN_BODY},
                [PAGE_END] = {REPLY_END, REPLY_OVER},
            },
        [REPLY_AT_TUNNEL] =
            {
                [PAGE_TUNNEL] = {REPLY_TUNNEL, REPLY_OVER},
                [PAGE_END] = {REPLY_END, REPLY_OVER},
            },
        [REPLY_IN_BODY] =
            {
                [PAGE_DATA] = {REPLY_DATA, REPLY_IN_BODY},
                [PAGE_FILE] = {REPLY_FILE, REPLY_IN_BODY},
                [PAGE_TRAILERS] = {REPLY_TRAILERS, REPLY_IN_TRAILERS},
                [PAGE_END] = {REPLY_END, REPLY_OVER},
            },
        [REPLY_IN_TRAILERS] =
            {
                [PAGE_END] = {REPLY_END, REPLY_OVER},
            },
        [REPLY_OVER] = {{0}},
};

/* Before a complete answer was begun, an end can only be a cut one. */
static bool is_possible(const struct reply *reply, const struct page_record *record)
{
    if (record->type != PAGE_END || reply->state >= REPLY_IN_BODY)
        return true;
    return record->flags & PAGE_CUT;
}

enum reply_step reply_step(struct reply *reply, const struct page_record *record)
{
    struct transition transition = {REPLY_BROKEN, REPLY_OVER};

    if (record->type <= PAGE_END && is_possible(reply, record))
        transition = transitions[reply->state][record->type];
    if (transition.step == REPLY_BROKEN) {
        reply->state = REPLY_OVER;
        return REPLY_BROKEN;
    }
    if (transition.step == REPLY_HEAD && (record->flags & PAGE_MORE)) {
        reply->state = REPLY_IN_HEAD;
        return REPLY_HEAD_PART;
    }
    reply->state = transition.next;
    if (transition.step == REPLY_HEAD && (record->flags & PAGE_RAW))
        reply->state = REPLY_AT_TUNNEL;
    return transition.step;
}

bool reply_field(struct span *fields, struct span *ret_name, struct span *ret_value)
{
    uint16_t name_size;
    uint32_t value_size;

    if (fields->size < FIELD_PREFIX)
        return false;
    memcpy(&name_size, fields->data, sizeof(name_size));
    memcpy(&value_size, fields->data + 4, sizeof(value_size));
    if (fields->size - FIELD_PREFIX < name_size ||
        fields->size - FIELD_PREFIX - name_size < value_size)
        return false;
    *ret_name = span_make(fields->data + FIELD_PREFIX, name_size);
    *ret_value = span_make(fields->data + FIELD_PREFIX + name_size, value_size);
    *fields = span_skip(*fields, FIELD_PREFIX + (size_t)name_size + value_size);
    return true;
}

/* CR, LF and NUL are what would let a value become a second field or a second answer. */
static bool is_safe_value(struct span value)
{
    return !memchr(value.data, '\r', value.size) && !memchr(value.data, '\n', value.size) &&
           !memchr(value.data, '\0', value.size);
}

bool reply_fields_are_valid(struct span fields, unsigned *ret_count)
{
    struct span name, value;
    unsigned count = 0;

    while (reply_field(&fields, &name, &value)) {
        if (!ascii_all(name, ASCII_TOKEN) || !is_safe_value(value))
            return false;
        count++;
    }
    if (fields.size)
        return false;
    *ret_count = count;
    return true;
}

static bool is_possible_status(unsigned status, bool interim)
{
    return interim ? status == 103 : status == 101 || (status >= 200 && status <= 599);
}

bool reply_head_read(struct span payload, bool interim, struct reply_head *ret_head)
{
    struct page_head head;
    struct span fields;
    unsigned count;

    if (payload.size < sizeof(head))
        return false;
    memcpy(&head, payload.data, sizeof(head));
    fields = span_skip(payload, sizeof(head));
    if (!is_possible_status(head.status, interim))
        return false;
    if (!reply_fields_are_valid(fields, &count) || count != head.field_count)
        return false;
    *ret_head = (struct reply_head){head.status, count, fields};
    return true;
}

bool reply_file_read(struct span payload, struct page_file *ret_file)
{
    struct page_file file;

    if (payload.size != sizeof(file))
        return false;
    memcpy(&file, payload.data, sizeof(file));
    if (file.offset > INT64_MAX || file.size > INT64_MAX - file.offset)
        return false;
    *ret_file = file;
    return true;
}

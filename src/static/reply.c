/* SPDX-License-Identifier: MIT */
#include "static/reply.h"

#include "base/clock.h"
#include "base/map.h"
#include "static/precondition.h"
#include "static/transfer.h"

#include <inttypes.h>

/* One answer in the making. */
struct reply {
    struct exchange *exchange;
    struct offload *offload;
    struct post *post;
    struct open_file *file;
    const struct form *form;
    struct span type;
    struct range parts[RANGE_MAX];
    unsigned count;
};

static void add_missing(struct exchange *exchange, enum field_id id, struct span value)
{
    if (!fields_find(&exchange->response.fields, id))
        exchange_add_own(exchange, id, value);
}

/* No date behind our own clock is sent (RFC 9110 8.8.2.1). */
static struct span modified_text(const struct reply *reply)
{
    const struct open_file *file = reply->file;

    if (file->identity.modified.tv_sec > (time_t)(clock_wall_ms() / 1000))
        return arena_copy(&reply->exchange->arena, clock_http_now());
    return span_make(file->modified, sizeof(file->modified));
}

/* Which form is sent depends on what the client accepts (RFC 9110 12.5.5). */
static void add_vary(struct reply *reply)
{
    if (reply->form->varies)
        exchange_add_own(reply->exchange, FIELD_ID_VARY, http_field_name(FIELD_ID_ACCEPT_ENCODING));
}

/* Behind the decisions: an answer without these bytes says nothing of them. */
static void add_content(struct reply *reply)
{
    struct exchange *exchange = reply->exchange;

    add_missing(exchange, FIELD_ID_CONTENT_TYPE, reply->type);
    if (reply->form->coding != CODING_IDENTITY)
        exchange_add_own(exchange, FIELD_ID_CONTENT_ENCODING, coding_name(reply->form->coding));
}

static void add_validators(struct reply *reply)
{
    struct exchange *exchange = reply->exchange;
    const struct open_file *file = reply->file;

    add_missing(exchange, FIELD_ID_ETAG, span_make(file->etag, file->etag_size));
    add_missing(exchange, FIELD_ID_LAST_MODIFIED, modified_text(reply));
    if (reply->form->immutable)
        add_missing(exchange, FIELD_ID_CACHE_CONTROL,
                    (struct span)SPAN("public, max-age=31536000, immutable"));
}

/* An application's own validators stand for its file as well. */
static struct validators validators_of(const struct reply *reply)
{
    const struct open_file *file = reply->file;
    const struct fields *fields = &reply->exchange->response.fields;
    struct span etag = fields_value(fields, FIELD_ID_ETAG);
    struct span modified = fields_value(fields, FIELD_ID_LAST_MODIFIED);
    struct validators validators = {
        .etag = etag.data ? etag : span_make(file->etag, file->etag_size),
        .modified = file->identity.modified.tv_sec,
        .date_is_shared = file->date_is_shared,
    };

    if (modified.data)
        (void)clock_parse_http_date(modified, &validators.modified);
    return validators;
}

/* ---- Bodies ---- */

static void send_body(struct reply *reply, const struct span *leads, struct span trail)
{
    struct transfer_plan plan = {.file = reply->file, .leads = leads, .trail = trail};
    struct range *parts = arena_take(&reply->exchange->arena, sizeof(reply->parts));

    if (!parts) {
        exchange_end(reply->exchange, true);
        return;
    }
    memcpy(parts, reply->parts, reply->count * sizeof(*parts));
    plan.parts = parts;
    plan.count = reply->count;
    transfer_start(reply->exchange, reply->offload, reply->post, &plan);
}

static void send_empty(struct reply *reply, unsigned status)
{
    fields_remove(&reply->exchange->response.fields, FIELD_ID_CONTENT_TYPE);
    fields_remove(&reply->exchange->response.fields, FIELD_ID_CONTENT_ENCODING);
    exchange_head(reply->exchange, status, 0);
    exchange_end(reply->exchange, false);
}

static void send_whole(struct reply *reply, unsigned status)
{
    struct exchange *exchange = reply->exchange;
    uint64_t size = reply->file->identity.size;

    add_content(reply);
    exchange_head(exchange, status, (int64_t)size);
    if (exchange->response.no_body || !size) {
        exchange_end(exchange, false);
        return;
    }
    reply->parts[0] = (struct range){.first = 0, .size = size};
    reply->count = 1;
    send_body(reply, NULL, (struct span){0});
}

/* RFC 9110 14.4 */
static struct span content_range(const struct reply *reply, const struct range *part)
{
    return arena_printf(&reply->exchange->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                        part->first, part->first + part->size - 1, reply->file->identity.size);
}

static void send_part(struct reply *reply)
{
    struct exchange *exchange = reply->exchange;

    add_content(reply);
    exchange_add_own(exchange, FIELD_ID_CONTENT_RANGE, content_range(reply, reply->parts));
    exchange_head(exchange, 206, (int64_t)reply->parts[0].size);
    send_body(reply, NULL, (struct span){0});
}

/* RFC 9110 14.6: each part has a head of its own. The boundary comes from a seeded hash, so that no
 * file can be written to hold it. */
static bool make_leads(struct reply *reply, uint64_t boundary, struct span *leads,
                       uint64_t *ret_length)
{
    struct arena *arena = &reply->exchange->arena;

    for (unsigned i = 0; i < reply->count; i++) {
        struct span range = content_range(reply, &reply->parts[i]);

        leads[i] = arena_printf(
            arena, "\r\n--leat-%016" PRIx64 "\r\nContent-Type: %.*s\r\nContent-Range: %.*s\r\n\r\n",
            boundary, SPAN_ARG(reply->type), SPAN_ARG(range));
        if (!range.data || !leads[i].data)
            return false;
        *ret_length += leads[i].size + reply->parts[i].size;
    }
    return true;
}

static void send_parts(struct reply *reply)
{
    struct exchange *exchange = reply->exchange;
    struct arena *arena = &exchange->arena;
    uint64_t now_us = clock_us(), length = 0;
    uint64_t boundary = map_hash(span_make((const char *)&now_us, sizeof(now_us)));
    struct span *leads = arena_take(arena, reply->count * sizeof(*leads));
    struct span trail = arena_printf(arena, "\r\n--leat-%016" PRIx64 "--\r\n", boundary);
    const struct field *given = fields_find(&exchange->response.fields, FIELD_ID_CONTENT_TYPE);

    if (given)
        reply->type = given->value;
    if (!leads || !trail.data || !make_leads(reply, boundary, leads, &length)) {
        exchange_refuse(exchange, REFUSAL_INTERNAL);
        return;
    }
    fields_remove(&exchange->response.fields, FIELD_ID_CONTENT_TYPE);
    exchange_add_own(
        exchange, FIELD_ID_CONTENT_TYPE,
        arena_printf(arena, "multipart/byteranges; boundary=leat-%016" PRIx64, boundary));
    exchange_head(exchange, 206, (int64_t)(length + trail.size));
    send_body(reply, leads, trail);
}

static void send_unsatisfied(struct reply *reply)
{
    struct exchange *exchange = reply->exchange;

    exchange_add_own(
        exchange, FIELD_ID_CONTENT_RANGE,
        arena_printf(&exchange->arena, "bytes */%" PRIu64, reply->file->identity.size));
    send_empty(reply, 416);
}

/* ---- Decisions ---- */

/* RFC 9110 14.2: GET only, and only one field. */
static enum range_answer find_ranges(struct reply *reply, const struct validators *validators)
{
    const struct request *request = &reply->exchange->request;

    if (request->method != METHOD_GET || fields_count(&request->fields, FIELD_ID_RANGE) != 1 ||
        !precondition_range_counts(&request->fields, validators))
        return RANGE_WHOLE;
    return range_parse(fields_value(&request->fields, FIELD_ID_RANGE), reply->file->identity.size,
                       reply->parts, &reply->count);
}

static void send_asked(struct reply *reply, const struct validators *validators)
{
    add_missing(reply->exchange, FIELD_ID_ACCEPT_RANGES, (struct span)SPAN("bytes"));
    switch (find_ranges(reply, validators)) {
    case RANGE_WHOLE:
        send_whole(reply, 200);
        break;
    case RANGE_NONE:
        send_unsatisfied(reply);
        break;
    case RANGE_PARTS:
        if (reply->count == 1)
            send_part(reply);
        else if (reply->form->coding == CODING_IDENTITY)
            send_parts(reply);
        else /* nothing says whether the coding is that of the parts or of the whole */
            send_whole(reply, 200);
        break;
    }
}

static void send_conditional(struct reply *reply)
{
    struct validators validators = validators_of(reply);

    add_vary(reply);
    add_validators(reply);
    switch (precondition_check(&reply->exchange->request.fields, &validators)) {
    case PRECONDITION_PASS:
        send_asked(reply, &validators);
        break;
    case PRECONDITION_NOT_MODIFIED:
        send_empty(reply, 304);
        break;
    case PRECONDITION_FAILED:
        send_empty(reply, 412);
        break;
    }
}

static void unref(void *file)
{
    open_file_unref(file);
}

void reply_send(struct exchange *exchange, struct offload *offload, struct post *post,
                const struct form *form, unsigned status, bool full)
{
    struct reply reply = {.exchange = exchange,
                          .offload = offload,
                          .post = post,
                          .file = form->file,
                          .form = form,
                          .type = form->type};

    /* Fields and pieces point into the file. */
    if (arena_defer(&exchange->arena, unref, open_file_ref(form->file))) {
        open_file_unref(form->file);
        exchange_refuse(exchange, REFUSAL_INTERNAL);
        return;
    }
    /* What the application said of the length is about its own bytes. */
    fields_remove(&exchange->response.fields, FIELD_ID_CONTENT_LENGTH);
    if (full)
        send_conditional(&reply);
    else
        send_whole(&reply, status);
}

/* A path that begins with two slashes would name another host (RFC 3986 4.2). */
static struct span one_slash(struct span path)
{
    while (path.size > 1 && path.data[0] == '/' && path.data[1] == '/')
        path = span_skip(path, 1);
    return path;
}

void reply_redirect(struct exchange *exchange)
{
    const struct request *request = &exchange->request;
    struct span path = one_slash(request->path);

    exchange_add_own(exchange, FIELD_ID_LOCATION,
                     arena_printf(&exchange->arena, "%.*s/%s%.*s", SPAN_ARG(path),
                                  request->has_query ? "?" : "", SPAN_ARG(request->query)));
    exchange_head(exchange, 301, 0);
    exchange_end(exchange, false);
}

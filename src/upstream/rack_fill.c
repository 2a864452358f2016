/* SPDX-License-Identifier: MIT */
/*
 * From request to slot: what a worker finds is what the front parsed, with names in lower case, repeated
 * fields joined, and without what may not reach an application.
 */
#include "base/ascii.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "http/forwarded.h"
#include "upstream/rack_table.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { UNDERSCORE_LOG_S = 3600 };

/* Set bits are ids; those of field.def fit into one word. */
_Static_assert(FIELD_ID_COUNT <= 64, "the set of known fields needs a wider word");

struct filling {
    struct rack *rack;
    const struct board *board;
    uint32_t slot;
    const struct exchange *exchange;
    struct slot_request *out;
    struct slot_field *table;
    uint32_t count;    /* of fields in the table */
    uint64_t repeated; /* known ids that occur more than once */
    uint64_t written;  /* known ids that are in the table */
    bool failed;       /* something did not fit */
};

static void put(struct filling *filling, struct span bytes, struct slot_span *ret_part)
{
    if (!slot_append(filling->board, filling->slot, bytes, ret_part))
        filling->failed = true;
}

/* A part of the target is not written twice. */
static void put_part(struct filling *filling, struct span bytes, struct slot_span *ret_part)
{
    struct span target = filling->exchange->request.target;

    if (bytes.size && bytes.data >= target.data &&
        bytes.data + bytes.size <= target.data + target.size)
        *ret_part =
            (struct slot_span){filling->out->target.offset + (uint32_t)(bytes.data - target.data),
                               (uint32_t)bytes.size};
    else
        put(filling, bytes, ret_part);
}

static void put_number(struct filling *filling, uint64_t number, struct slot_span *ret_part)
{
    char digits[20];

    put(filling, span_make(digits, num_format(number, digits)), ret_part);
}

/* Names of fields as an application sees them are in lower case. */
static void put_name(struct filling *filling, const struct field *field, struct slot_span *ret_part)
{
    char *bytes;

    if (field->id != FIELD_OTHER) {
        put(filling, http_field_name(field->id), ret_part);
        return;
    }
    put(filling, field->name, ret_part);
    if (filling->failed)
        return;
    bytes = (char *)filling->out + ret_part->offset;
    for (size_t i = 0; i < field->name.size; i++)
        bytes[i] = ascii_lower(field->name.data[i]);
}

static bool is_same_name(const struct field *a, const struct field *b)
{
    return a->id == b->id && (a->id != FIELD_OTHER || ascii_equal_fold(a->name, b->name));
}

/* Repeated fields are one value: "; " between pieces of a cookie (RFC 9113 8.2.3), ", " between others
 * (RFC 9110 5.3). The list has room for it, as the request's head held all of it. */
static struct span join(struct arena *arena, const struct fields *fields, const struct field *first)
{
    struct span separator = span_of(first->id == FIELD_ID_COOKIE ? "; " : ", ");
    size_t room = first->value.size;
    char *text, *out;

    for (const struct field *next = first + 1; next < fields->items + fields->size; next++)
        if (is_same_name(first, next))
            room += separator.size + next->value.size;
    text = out = arena_take(arena, room + 1);
    if (!text)
        return (struct span){0};
    out = mempcpy(out, first->value.data, first->value.size);
    for (const struct field *next = first + 1; next < fields->items + fields->size; next++)
        if (is_same_name(first, next)) {
            out = mempcpy(out, separator.data, separator.size);
            out = mempcpy(out, next->value.data, next->value.size);
        }
    return span_make(text, room);
}

static bool is_repeated(const struct filling *filling, const struct field *field)
{
    const struct fields *fields = &filling->exchange->request.fields;

    if (field->id != FIELD_OTHER)
        return filling->repeated >> field->id & 1;
    for (const struct field *next = field + 1; next < fields->items + fields->size; next++)
        if (next->id == FIELD_OTHER && next->name.size == field->name.size &&
            ascii_equal_fold(next->name, field->name))
            return true;
    return false;
}

/* Whether the table holds the field already, joined. */
static bool is_written(const struct filling *filling, const struct field *field)
{
    const struct fields *fields = &filling->exchange->request.fields;

    if (field->id != FIELD_OTHER)
        return filling->written >> field->id & 1;
    for (const struct field *before = fields->items; before < field; before++)
        if (before->id == FIELD_OTHER && before->name.size == field->name.size &&
            ascii_equal_fold(before->name, field->name))
            return true;
    return false;
}

static void put_field(struct filling *filling, const struct field *field, struct span value)
{
    struct slot_field *out = &filling->table[filling->count];

    if (filling->failed)
        return;
    put_name(filling, field, &out->name);
    put(filling, value, &out->value);
    filling->count++;
    if (field->id != FIELD_OTHER)
        filling->written |= 1ull << field->id;
}

static bool has_underscore(struct span name)
{
    return memchr(name.data, '_', name.size);
}

/* Whether another field has the same name with '-' in place of '_': in the application's eyes, both are
 * one, and the client could put its own value in a proxy's place. */
static bool has_twin(const struct fields *fields, struct span name)
{
    fields_for_each (field, fields) {
        bool same = field->name.size == name.size && !has_underscore(field->name);

        for (size_t i = 0; same && i < name.size; i++)
            same = (name.data[i] == '_' ? '-' : ascii_lower(name.data[i])) ==
                   ascii_lower(field->name.data[i]);
        if (same)
            return true;
    }
    return false;
}

static void report_underscore(struct rack *rack, struct span name)
{
    rack_count(rack->options.counters.underscores);
    if (log_allow(name, UNDERSCORE_LOG_S, NULL))
        log_warn("pool=%s field %.*s has '_' in its name and is dropped, see underscore_fields",
                 rack->options.pool, SPAN_ARG(name));
}

static bool passes_underscore(struct filling *filling, const struct field *field)
{
    struct rack *rack = filling->rack;

    if (!has_underscore(field->name))
        return true;
    if (rack->options.pass_underscore && !has_twin(&filling->exchange->request.fields, field->name))
        return true;
    report_underscore(rack, field->name);
    return false;
}

/* Host and the length are written from what was parsed, the request id from what was kept or made. */
static bool is_written_apart(enum field_id id)
{
    return id == FIELD_ID_HOST || id == FIELD_ID_CONTENT_LENGTH || id == FIELD_ID_X_REQUEST_ID;
}

/* What WebSocket libraries look for in a request that asks for another protocol. */
static bool is_upgrade(const struct filling *filling, enum field_id id)
{
    return (id == FIELD_ID_UPGRADE || id == FIELD_ID_CONNECTION) &&
           (filling->out->flags & SLOT_FLAG_UPGRADE);
}

static bool passes(struct filling *filling, const struct field *field)
{
    if (http_field_flags(field->id) & (FIELD_HOP | FIELD_DROP))
        return is_upgrade(filling, field->id) && !is_written(filling, field);
    if (is_written_apart(field->id) || is_written(filling, field))
        return false;
    if (!forwarded_passes(&filling->exchange->client, field))
        return false;
    return field->id != FIELD_OTHER || passes_underscore(filling, field);
}

static void put_own_fields(struct filling *filling)
{
    const struct request *request = &filling->exchange->request;
    struct field host = {.id = FIELD_ID_HOST}, length = {.id = FIELD_ID_CONTENT_LENGTH};
    char digits[20];

    if (request->authority.size)
        put_field(filling, &host, request->authority);
    /* A chunked body is complete by now, so that its length is known to the application as any other's. */
    if (fields_find(&request->fields, FIELD_ID_CONTENT_LENGTH) || request->has_body)
        put_field(filling, &length,
                  span_make(digits, num_format(request->length >= 0 ? (uint64_t)request->length
                                                                    : request->body.size,
                                               digits)));
}

static void find_repeated(struct filling *filling)
{
    uint64_t seen = 0;

    fields_for_each (field, &filling->exchange->request.fields) {
        uint64_t bit = field->id == FIELD_OTHER ? 0 : 1ull << field->id;

        filling->repeated |= seen & bit;
        seen |= bit;
    }
}

static void put_fields(struct filling *filling)
{
    const struct fields *fields = &filling->exchange->request.fields;

    /* Two more than received: Host may come from the target, a length from the decoded body. */
    filling->table = slot_fields(filling->board, filling->slot, fields->size + 2);
    if (!filling->table) {
        filling->failed = true;
        return;
    }
    find_repeated(filling);
    put_own_fields(filling);
    fields_for_each (field, fields) {
        struct span value = field->value;

        if (!passes(filling, field))
            continue;
        if (is_repeated(filling, field) && !(http_field_flags(field->id) & FIELD_ONE))
            value = join((struct arena *)&filling->exchange->arena, fields, field);
        put_field(filling, field, value);
    }
    filling->out->field_count = filling->count;
}

static const char *protocol_of(unsigned minor)
{
    static const char *const words[] = {"HTTP/1.0", "HTTP/1.1", "HTTP/2"};

    return words[minor < ARRAY_LEN(words) ? minor : 1];
}

/* RFC 9110 7.8: named in Connection too, and never by an HTTP/1.0 client. */
static bool asks_for_upgrade(const struct request *request)
{
    return request->minor == 1 && fields_value(&request->fields, FIELD_ID_UPGRADE).size > 0 &&
           fields_has_token(&request->fields, FIELD_ID_CONNECTION, span_of("upgrade"));
}

static uint32_t flags_of(const struct exchange *exchange)
{
    uint32_t flags = 0;

    if (exchange->client.secure)
        flags |= SLOT_FLAG_HTTPS;
    if (exchange->request.method == METHOD_HEAD)
        flags |= SLOT_FLAG_HEAD;
    if (exchange->request.minor == 0)
        flags |= SLOT_FLAG_HTTP10;
    if (exchange->conn && exchange->conn->tunnel)
        flags |= SLOT_FLAG_TUNNEL;
    if ((flags & SLOT_FLAG_TUNNEL) && asks_for_upgrade(&exchange->request))
        flags |= SLOT_FLAG_UPGRADE;
    return flags;
}

/* An HTTP/1.0 request may name no host: the address it came to stands for it. */
static struct span server_name(const struct exchange *exchange, char *room, size_t size)
{
    if (exchange->request.host.size)
        return exchange->request.host;
    if (!exchange->client.local)
        return span_of("localhost");
    return span_make(room, address_format_host(exchange->client.local, room, size));
}

static void put_strings(struct filling *filling)
{
    const struct exchange *exchange = filling->exchange;
    const struct request *request = &exchange->request;
    struct slot_request *out = filling->out;
    char host[128];

    put(filling, request->method_text, &out->method);
    put(filling, request->target, &out->target);
    put_part(filling, request_inner(request), &out->path);
    put_part(filling, request->query, &out->query);
    put(filling, span_of(protocol_of(request->minor)), &out->protocol);
    put(filling, server_name(exchange, host, sizeof(host)), &out->server_name);
    put_number(filling, exchange->client.port, &out->server_port);
    put(filling, exchange->client.address, &out->remote_address);
    put(filling, exchange->id, &out->request_id);
    put_part(filling, request->mount, &out->script_name);
    out->public_root = (struct slot_span){0};
}

static void put_body(struct filling *filling)
{
    const struct body *body = &filling->exchange->request.body;
    struct slot_request *out = filling->out;
    struct slot_span part = {0};

    out->body_bytes = body->size;
    out->body_kind = SLOT_BODY_NONE;
    if (!body->size)
        return;
    if (body->fd != -1) {
        out->body_kind = SLOT_BODY_FILE;
        return;
    }
    CHECK(body->memory.size == body->size && body->size <= BOARD_BODY_INLINE);
    put(filling, buf_span(&body->memory), &part);
    out->body_kind = SLOT_BODY_INLINE;
    out->body_offset = part.offset;
}

bool rack_fill(struct rack *rack, uint32_t slot, const struct exchange *exchange)
{
    const struct rack_options *options = &rack->options;
    struct filling filling = {
        .rack = rack,
        .board = options->board,
        .slot = slot,
        .exchange = exchange,
        .out = slot_request(options->board, slot),
    };

    slot_begin(options->board, slot, options->front, options->loop);
    filling.out->flags = flags_of(exchange);
    filling.out->wall_ms = clock_wall_ms();
    atomic_store_explicit(&filling.out->taken_us, 0, memory_order_relaxed);
    put_strings(&filling);
    put_fields(&filling);
    put_body(&filling);
    return !filling.failed;
}

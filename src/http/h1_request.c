/* SPDX-License-Identifier: MIT */
#include "http/h1_request.h"

#include "http/target.h"

static void read_request_line(struct request *request, const struct h1_parser *parser,
                              struct span head)
{
    request->method_text = h1_part_span(parser->method, head);
    request->method = http_method(request->method_text);
    request->target = h1_part_span(parser->target, head);
    request->minor = parser->minor;
}

static int read_fields(struct request *request, const struct h1_parser *parser, struct span head)
{
    for (unsigned i = 0; i < parser->line_count; i++) {
        const struct h1_line *line = &parser->lines[i];
        int error = fields_add(&request->fields, h1_part_span(line->name, head),
                               span_trim(h1_part_span(line->value, head)));

        if (error)
            return error;
    }
    return 0;
}

/* Framing has found all lengths equal; readers further on get one of them, as digits only. */
static int unite_lengths(struct request *request, struct arena *arena, int64_t length)
{
    struct field *first = fields_find(&request->fields, FIELD_ID_CONTENT_LENGTH);
    struct span text;

    if (!first || (fields_count(&request->fields, FIELD_ID_CONTENT_LENGTH) == 1 &&
                   span_find(first->value, ',') == first->value.size))
        return 0;
    text = arena_printf(arena, "%lld", (long long)length);
    if (!text.data)
        return -1;
    fields_remove(&request->fields, FIELD_ID_CONTENT_LENGTH);
    return fields_add_id(&request->fields, FIELD_ID_CONTENT_LENGTH, text);
}

static enum refusal read_target(struct request *request, struct target *ret_target)
{
    enum refusal refusal = target_parse(request->method, request->target, ret_target);

    if (refusal != REFUSAL_NONE)
        return refusal;
    request->path = ret_target->path;
    request->query = ret_target->query;
    request->has_query = ret_target->has_query;
    return REFUSAL_NONE;
}

/* RFC 9112 3.2: exactly one valid Host in HTTP/1.1 and never two; the authority of an absolute target
 * takes its place (3.2.2), but does not excuse it. */
static enum refusal read_host(struct request *request, struct arena *arena,
                              const struct target *target)
{
    unsigned count = fields_count(&request->fields, FIELD_ID_HOST);
    struct span host = fields_value(&request->fields, FIELD_ID_HOST);

    if (count > 1 || (count == 0 && request->minor > 0))
        return REFUSAL_HOST;
    if (count && !(request->minor == 0 && !host.size) &&
        !target_parse_authority(host, arena, &request->host, &request->port))
        return REFUSAL_HOST;
    request->authority = host;
    if (!target->authority.data)
        return REFUSAL_NONE;
    if (!target_parse_authority(target->authority, arena, &request->host, &request->port))
        return REFUSAL_HOST;
    request->authority = target->authority;
    return REFUSAL_NONE;
}

enum refusal h1_request_read(struct request *request, struct arena *arena,
                             const struct h1_parser *parser, struct span bytes,
                             struct h1_framing *ret_framing)
{
    struct span head = arena_copy(arena, span_first(bytes, parser->at));
    struct target target;
    enum refusal refusal;

    if (!head.data)
        return REFUSAL_INTERNAL;
    read_request_line(request, parser, head);
    if (read_fields(request, parser, head))
        return REFUSAL_INTERNAL;
    refusal = read_target(request, &target);
    if (refusal == REFUSAL_NONE)
        refusal = read_host(request, arena, &target);
    if (refusal == REFUSAL_NONE)
        refusal = h1_framing_decide(&request->fields, request->minor, ret_framing);
    if (refusal != REFUSAL_NONE)
        return refusal;
    request->has_body = ret_framing->body != H1_BODY_NONE;
    request->expects_continue = ret_framing->expects_continue;
    request->length = ret_framing->length;
    return unite_lengths(request, arena, request->length) ? REFUSAL_INTERNAL : REFUSAL_NONE;
}

void h1_request_read_refused(struct request *request, struct arena *arena,
                             const struct h1_parser *parser, struct span bytes)
{
    struct span head = arena_copy(arena, span_first(bytes, parser->at));

    if (head.data)
        read_request_line(request, parser, head);
    request->minor = 1; /* the answer is one of HTTP/1.1 whatever the client speaks */
}

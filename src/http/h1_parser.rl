/* SPDX-License-Identifier: MIT */
#include "http/h1_parser.h"

#include <errno.h>

enum { METHOD_BYTES = 32, FIRST_LINES = 24 };

%%{
    machine h1_parser;
    include h1_grammar "h1_grammar.rl";

    action refuse_long_method {
        if (fpc - base - parser->mark >= METHOD_BYTES)
            { parser->refusal = REFUSAL_METHOD; fbreak; }
    }
    action refuse_long_target {
        if ((size_t)(fpc - base) - parser->mark >= parser->limits->target_bytes)
            { parser->refusal = REFUSAL_TARGET_LONG; fbreak; }
    }
    action refuse_long_line {
        if ((size_t)(fpc - base) - parser->name.start >= parser->limits->field_bytes)
            { parser->refusal = REFUSAL_FIELDS_LARGE; fbreak; }
    }
    action mark {
        parser->mark = (uint32_t)(fpc - base);
    }
    action mark_next {
        parser->mark = (uint32_t)(fpc - base + 1);
    }
    action begin {
        parser->begun = true;
    }
    action end_method {
        parser->method = part(parser, fpc - base);
    }
    action end_target {
        parser->target = part(parser, fpc - base);
    }
    # RFC 9110 2.5: another major version is another language.
    action major {
        if (fc != '1')
            { parser->refusal = REFUSAL_VERSION; fbreak; }
    }
    action minor {
        parser->minor = fc != '0';
    }
    action begin_field {
        if (parser->line_count == parser->limits->field_count)
            { parser->refusal = REFUSAL_FIELDS_LARGE; fbreak; }
        parser->mark = parser->name.start = (uint32_t)(fpc - base);
    }
    action end_name {
        parser->name = part(parser, fpc - base);
    }
    action end_value {
        if (add_line(parser, part(parser, fpc - base)))
            { parser->refusal = REFUSAL_INTERNAL; fbreak; }
    }
    action done {
        done = true;
        fbreak;
    }

    request_line = (method >mark >begin $refuse_long_method %end_method) " "
                   (target >mark $refuse_long_target %end_target) " "
                   "HTTP/" (digit >major) "." (digit >minor) crlf;
    field_line = (field_name >begin_field $refuse_long_line %end_name) ":" @mark_next
                 (field_value $refuse_long_line %end_value) crlf;

    # RFC 9112 2.2: empty lines before a request line are skipped.
    main := crlf* request_line field_line* crlf @done;
}%%

%% write data noentry;

static struct h1_part part(const struct h1_parser *parser, ptrdiff_t end)
{
    return (struct h1_part){parser->mark, (uint32_t)end - parser->mark};
}

static int make_room(struct h1_parser *parser)
{
    unsigned room = parser->line_room ? parser->line_room * 2 : FIRST_LINES;
    struct h1_line *lines;

    if (parser->line_count < parser->line_room)
        return 0;
    lines = arena_take(parser->arena, room * sizeof(*lines));
    if (!lines)
        return -ENOMEM;
    if (parser->line_count)
        memcpy(lines, parser->lines, parser->line_count * sizeof(*lines));
    parser->lines = lines;
    parser->line_room = room;
    return 0;
}

static int add_line(struct h1_parser *parser, struct h1_part value)
{
    int error = make_room(parser);

    if (error)
        return error;
    parser->lines[parser->line_count++] = (struct h1_line){.name = parser->name, .value = value};
    return 0;
}

/* The machine itself; true when the head is complete. */
static bool run(struct h1_parser *parser, const char *bytes, size_t size)
{
    const unsigned char *base = (const unsigned char *)bytes;
    const unsigned char *p = base + parser->at;
    const unsigned char *pe = base + size;
    bool done = false;
    int cs = parser->state;

    %% write exec;

    parser->state = cs;
    parser->at = (uint32_t)(p - base);
    if (cs == h1_parser_error && parser->refusal == REFUSAL_NONE)
        parser->refusal = REFUSAL_MALFORMED;
    return done;
}

void h1_parser_init(struct h1_parser *parser, const struct h1_limits *limits, struct arena *arena)
{
    *parser = (struct h1_parser){.limits = limits, .arena = arena, .state = h1_parser_start};
}

enum h1_result h1_parser_read(struct h1_parser *parser, struct span bytes)
{
    size_t limit = parser->limits->header_bytes;
    bool done;

    if (parser->refusal != REFUSAL_NONE)
        return H1_REFUSED;
    done = bytes.size && run(parser, bytes.data, bytes.size < limit ? bytes.size : limit);
    if (parser->refusal != REFUSAL_NONE)
        return H1_REFUSED;
    if (done)
        return H1_DONE;
    if (bytes.size <= limit)
        return H1_MORE;
    parser->refusal = REFUSAL_FIELDS_LARGE;
    return H1_REFUSED;
}

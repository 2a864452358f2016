/* SPDX-License-Identifier: MIT */
#include "http/coding.h"

#include "base/ascii.h"
#include "base/base.h"

enum {
    WHOLE = 1000, /* quality 1 in thousandths */
    LEAST = 1,    /* of identity, where nobody mentions it: acceptable, behind every coding */
    UNSAID = UINT16_MAX
};

static const struct {
    struct span name, ending;
} codings[] = {
    [CODING_IDENTITY] = {SPAN("identity"), {"", 0}},
#define ROW(constant, name, ending) [CODING_##constant] = {SPAN(name), SPAN(ending)},
#include "http/coding.def"
#undef ROW
};

/* Types beside text/... and those that end in +json or +xml. */
static const struct span text_types[] = {
    SPAN("application/json"),         SPAN("application/javascript"),
    SPAN("application/x-javascript"), SPAN("application/ecmascript"),
    SPAN("application/xml"),          SPAN("application/x-ndjson"),
    SPAN("application/json-seq"),     SPAN("application/yaml"),
    SPAN("application/x-yaml"),       SPAN("application/toml"),
    SPAN("application/sql"),          SPAN("application/graphql"),
    SPAN("application/rtf"),
};

/* qvalue: up to three digits behind 0 or 1 (RFC 9110 12.4.2). 0 for what is none. */
static uint16_t read_quality(struct span text)
{
    unsigned value = 0, scale = WHOLE;

    if (!text.size || text.size > 5 || (text.size > 1 && text.data[1] != '.'))
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        if (i == 1)
            continue;
        if (!ascii_is(text.data[i], ASCII_DIGIT))
            return 0;
        value += (unsigned)(text.data[i] - '0') * scale;
        scale /= 10;
    }
    return value <= WHOLE ? (uint16_t)value : 0;
}

static uint16_t find_quality(struct span parameters)
{
    while (parameters.data) {
        struct span value = span_trim(span_split(&parameters, ';'));
        struct span name = span_trim(span_split(&value, '='));

        if (ascii_equal_fold(name, (struct span)SPAN("q")))
            return read_quality(span_trim(value));
    }
    return WHOLE;
}

/* CODING_COUNT stands for a name that we do not know. */
static enum coding find_coding(struct span name)
{
    for (size_t i = 0; i < CODING_COUNT; i++)
        if (ascii_equal_fold(name, codings[i].name))
            return (enum coding)i;
    /* RFC 9110 8.4.1.3 */
    return ascii_equal_fold(name, (struct span)SPAN("x-gzip")) ? CODING_GZIP : CODING_COUNT;
}

static void read_list(struct span list, struct coding_wish *wish, uint16_t *rest)
{
    while (list.data) {
        struct span element = span_split(&list, ',');
        struct span name = span_trim(span_split(&element, ';'));
        enum coding coding = find_coding(name);

        if (span_is(name, "*"))
            *rest = find_quality(element);
        else if (coding != CODING_COUNT)
            wish->quality[coding] = find_quality(element);
    }
}

struct coding_wish coding_read_wish(const struct fields *request)
{
    struct coding_wish wish;
    uint16_t rest = UNSAID;

    for (size_t i = 0; i < CODING_COUNT; i++)
        wish.quality[i] = UNSAID;
    fields_for_each (field, request) {
        if (field->id == FIELD_ID_ACCEPT_ENCODING)
            read_list(field->value, &wish, &rest);
    }
    for (size_t i = 0; i < CODING_COUNT; i++) {
        if (wish.quality[i] != UNSAID)
            continue;
        wish.quality[i] = rest != UNSAID ? rest : i == CODING_IDENTITY ? LEAST : 0;
    }
    return wish;
}

enum coding coding_choose(const struct coding_wish *wish, const enum coding *offered, size_t count)
{
    enum coding best = CODING_IDENTITY;

    for (size_t i = 0; i < count; i++) {
        uint16_t quality = wish->quality[offered[i]], so_far = wish->quality[best];

        if (quality > so_far || (quality && quality == so_far && best == CODING_IDENTITY))
            best = offered[i];
    }
    return best;
}

/* Events are tiny, and their streams stay open for hours: what a coder would hold for each of them is
 * more than it saves. */
static bool is_text(struct span type)
{
    static const struct span prefix = SPAN("text/");

    return ascii_equal_fold(span_first(type, prefix.size), prefix) &&
           !ascii_equal_fold(type, (struct span)SPAN("text/event-stream"));
}

static bool ends_in(struct span type, struct span suffix)
{
    return type.size > suffix.size &&
           ascii_equal_fold(span_skip(type, type.size - suffix.size), suffix);
}

bool coding_is_worthwhile(struct span content_type)
{
    struct span type = span_trim(span_first(content_type, span_find(content_type, ';')));

    if (is_text(type) || ends_in(type, (struct span)SPAN("+json")) ||
        ends_in(type, (struct span)SPAN("+xml")))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(text_types); i++)
        if (ascii_equal_fold(type, text_types[i]))
            return true;
    return false;
}

struct span coding_name(enum coding coding)
{
    CHECK(coding < CODING_COUNT);
    return codings[coding].name;
}

struct span coding_ending(enum coding coding)
{
    CHECK(coding < CODING_COUNT);
    return codings[coding].ending;
}

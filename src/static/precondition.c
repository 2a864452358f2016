/* SPDX-License-Identifier: MIT */
#include "static/precondition.h"

#include "base/ascii.h"
#include "base/clock.h"

/* An entity tag of a list: its opaque part with the quotes, and whether it is a weak one. */
struct tag {
    struct span opaque;
    bool weak;
};

/* etagc, RFC 9110 8.8.3 */
static bool is_tag_byte(char byte)
{
    unsigned char code = (unsigned char)byte;

    return code == 0x21 || (code >= 0x23 && code != 0x7f);
}

/* Takes a tag off the front of the text. */
static bool take_tag(struct span *text, struct tag *ret_tag)
{
    bool weak = span_starts_with(*text, (struct span)SPAN("W/")); /* case-sensitive */
    struct span rest = span_skip(*text, weak ? 2 : 0);
    size_t end = 1;

    if (!rest.size || rest.data[0] != '"')
        return false;
    while (end < rest.size && is_tag_byte(rest.data[end]))
        end++;
    if (end == rest.size || rest.data[end] != '"')
        return false;
    *ret_tag = (struct tag){.opaque = span_first(rest, end + 1), .weak = weak};
    *text = span_skip(rest, end + 1);
    return true;
}

/* Strong comparison wants two strong tags, weak comparison only the same opaque part (RFC 9110
 * 8.8.3.2). */
static bool is_same_tag(const struct tag *a, const struct tag *b, bool strong)
{
    if (strong && (a->weak || b->weak))
        return false;
    return span_equal(a->opaque, b->opaque);
}

/* Walks one field's list. An element that is no tag is passed over. */
static bool list_holds(struct span list, const struct tag *own, bool strong)
{
    while (list.data) {
        struct tag tag;
        bool is_tag;

        list = span_trim(list);
        is_tag = take_tag(&list, &tag);
        list = span_trim(list);
        /* A comma may stand within a tag, so that the list is split behind each. */
        if (is_tag && (!list.size || list.data[0] == ',') && is_same_tag(&tag, own, strong))
            return true;
        (void)span_split(&list, ',');
    }
    return false;
}

/* Whether a list of tags, perhaps over several fields, or "*" names this version. A file without a tag
 * still exists, so "*" matches it. */
static bool any_matches(const struct fields *request, enum field_id id,
                        const struct validators *validators, bool strong)
{
    struct span etag = validators->etag;
    struct tag own;
    bool has_tag = take_tag(&etag, &own);

    fields_for_each (field, request) {
        if (field->id != id)
            continue;
        if (span_is(span_trim(field->value), "*"))
            return true;
        if (has_tag && list_holds(field->value, &own, strong))
            return true;
    }
    return false;
}

/* The date of a field that stands there once and holds a valid one; others are ignored (RFC 9110
 * 13.1.3, 13.1.4). */
static bool find_date(const struct fields *request, enum field_id id, time_t *ret_date)
{
    return fields_count(request, id) == 1 &&
           clock_parse_http_date(fields_value(request, id), ret_date);
}

/* RFC 9110 13.2.2, steps 1 and 2. */
static bool is_expected_version(const struct fields *request, const struct validators *validators)
{
    time_t date;

    if (fields_find(request, FIELD_ID_IF_MATCH))
        return any_matches(request, FIELD_ID_IF_MATCH, validators, true);
    if (find_date(request, FIELD_ID_IF_UNMODIFIED_SINCE, &date))
        return validators->modified <= date;
    return true;
}

/* RFC 9110 13.2.2, steps 3 and 4. */
static bool is_known_version(const struct fields *request, const struct validators *validators)
{
    time_t date;

    if (fields_find(request, FIELD_ID_IF_NONE_MATCH))
        return any_matches(request, FIELD_ID_IF_NONE_MATCH, validators, false);
    if (find_date(request, FIELD_ID_IF_MODIFIED_SINCE, &date))
        return validators->modified < date ||
               (validators->modified == date && !validators->date_is_shared);
    return false;
}

enum precondition_answer precondition_check(const struct fields *request,
                                            const struct validators *validators)
{
    if (!is_expected_version(request, validators))
        return PRECONDITION_FAILED;
    if (is_known_version(request, validators))
        return PRECONDITION_NOT_MODIFIED;
    return PRECONDITION_PASS;
}

bool precondition_range_counts(const struct fields *request, const struct validators *validators)
{
    struct span value = fields_value(request, FIELD_ID_IF_RANGE), etag = validators->etag;
    struct tag asked, own;
    time_t date;

    if (!value.data)
        return true;
    if (fields_count(request, FIELD_ID_IF_RANGE) != 1)
        return false;
    if (take_tag(&value, &asked))
        return !value.size && take_tag(&etag, &own) && is_same_tag(&asked, &own, true);
    return clock_parse_http_date(value, &date) && date == validators->modified &&
           !validators->date_is_shared;
}

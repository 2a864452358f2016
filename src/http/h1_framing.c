/* SPDX-License-Identifier: MIT */
#include "http/h1_framing.h"

#include "base/ascii.h"
#include "base/num.h"

static const struct span chunked = SPAN("chunked");
static const struct span close_token = SPAN("close");
static const struct span keep_alive_token = SPAN("keep-alive");
static const struct span continue_token = SPAN("100-continue");

/* RFC 9112 6.1: `chunked` alone is what this server decodes. A list that is no list, or that has
 * `chunked` in it but not once and last, leaves the end of the body in doubt; anything else is a coding
 * that it does not know. */
static enum refusal check_codings(const struct fields *fields)
{
    unsigned codings = 0, chunks = 0;
    bool last_is_chunked = false;

    fields_for_each (field, fields) {
        struct span list = field->value;

        if (field->id != FIELD_ID_TRANSFER_ENCODING)
            continue;
        do {
            struct span coding = span_trim(span_split(&list, ','));

            if (!ascii_all(coding, ASCII_TOKEN))
                return REFUSAL_FRAMING;
            last_is_chunked = ascii_equal_fold(coding, chunked);
            chunks += last_is_chunked;
            codings++;
        } while (list.data);
    }
    if (chunks > 1 || (chunks == 1 && !last_is_chunked))
        return REFUSAL_FRAMING;
    return codings == 1 && chunks == 1 ? REFUSAL_NONE : REFUSAL_CODING;
}

static bool parse_length(struct span text, int64_t *ret_length)
{
    uint64_t length;

    if (!num_decimal(text, &length) || length > INT64_MAX)
        return false;
    *ret_length = (int64_t)length;
    return true;
}

/* RFC 9112 6.3: a repeated length, in lines or in one list, is taken when all say the same. */
static enum refusal read_lengths(const struct fields *fields, int64_t *ret_length)
{
    int64_t first = -1;

    fields_for_each (field, fields) {
        struct span list = field->value;

        if (field->id != FIELD_ID_CONTENT_LENGTH)
            continue;
        do {
            int64_t length;

            if (!parse_length(span_trim(span_split(&list, ',')), &length))
                return REFUSAL_FRAMING;
            if (first >= 0 && first != length)
                return REFUSAL_FRAMING;
            first = length;
        } while (list.data);
    }
    *ret_length = first;
    return REFUSAL_NONE;
}

static enum refusal decide_body(const struct fields *fields, unsigned minor,
                                struct h1_framing *framing)
{
    enum refusal refusal;
    int64_t length = -1;

    refusal = read_lengths(fields, &length);
    if (refusal != REFUSAL_NONE)
        return refusal;
    if (!fields_find(fields, FIELD_ID_TRANSFER_ENCODING)) {
        framing->body = length > 0 ? H1_BODY_LENGTH : H1_BODY_NONE;
        framing->length = length > 0 ? length : 0;
        return REFUSAL_NONE;
    }
    /* RFC 9112 6.1: both at once is what smuggling is made of, and HTTP/1.0 has no codings. */
    if (length >= 0 || minor == 0)
        return REFUSAL_FRAMING;
    framing->body = H1_BODY_CHUNKED;
    framing->length = -1;
    return check_codings(fields);
}

/* RFC 9112 9.3 */
static bool decide_keep_alive(const struct fields *fields, unsigned minor)
{
    if (fields_has_token(fields, FIELD_ID_CONNECTION, close_token))
        return false;
    return minor > 0 || fields_has_token(fields, FIELD_ID_CONNECTION, keep_alive_token);
}

/* RFC 9110 10.1.1; HTTP/1.0 clients cannot expect anything. */
static enum refusal decide_expectation(const struct fields *fields, unsigned minor,
                                       struct h1_framing *framing)
{
    fields_for_each (field, fields) {
        struct span list = field->value;

        if (field->id != FIELD_ID_EXPECT || minor == 0)
            continue;
        do {
            struct span expectation = span_trim(span_split(&list, ','));

            if (!expectation.size)
                continue;
            if (!ascii_equal_fold(expectation, continue_token))
                return REFUSAL_EXPECTATION;
            framing->expects_continue = framing->body != H1_BODY_NONE;
        } while (list.data);
    }
    return REFUSAL_NONE;
}

enum refusal h1_framing_decide(const struct fields *fields, unsigned minor,
                               struct h1_framing *ret_framing)
{
    struct h1_framing framing = {0};
    enum refusal refusal = decide_body(fields, minor, &framing);

    /* Two types of one body are as ambiguous as two lengths; Rack could only join them. */
    if (refusal == REFUSAL_NONE && fields_count(fields, FIELD_ID_CONTENT_TYPE) > 1)
        refusal = REFUSAL_MALFORMED;
    if (refusal == REFUSAL_NONE)
        refusal = decide_expectation(fields, minor, &framing);
    if (refusal != REFUSAL_NONE)
        return refusal;
    framing.keep_alive = decide_keep_alive(fields, minor);
    *ret_framing = framing;
    return REFUSAL_NONE;
}

/* RFC 9110 8.6: a length may stand in an answer to HEAD and in a 304, where it is that of the body
 * which would have been sent, and never in 1xx and 204. */
static int64_t length_without_body(const struct h1_answer *answer)
{
    if (answer->status == 304)
        return answer->length > 0 ? answer->length : -1;
    return answer->is_head && !http_status_has_no_body(answer->status) ? answer->length : -1;
}

struct h1_answer_framing h1_framing_answer(const struct h1_answer *answer)
{
    struct h1_answer_framing framing = {.length = -1, .keep_alive = answer->keep_alive};

    if (answer->no_body) {
        framing.length = length_without_body(answer);
        return framing;
    }
    if (answer->length >= 0) {
        framing.length = answer->length;
        return framing;
    }
    framing.chunked = answer->minor > 0;
    framing.keep_alive = answer->keep_alive && framing.chunked;
    return framing;
}

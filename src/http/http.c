/* SPDX-License-Identifier: MIT */
#include "http/http.h"

#include "base/ascii.h"
#include "base/base.h"

static const struct {
    const char *word;
    unsigned status;
    const char *text;
} refusals[] = {
    [REFUSAL_NONE] = {"none", 0, ""},
#define ROW(constant, word, status, words) [REFUSAL_##constant] = {word, status, words},
#include "http/refusal.def"
#undef ROW
};

static const struct {
    struct span name;
    unsigned flags;
} known_fields[] = {
    [FIELD_OTHER] = {{"", 0}, 0},
#define ROW(constant, name, flags) [FIELD_ID_##constant] = {SPAN(name), flags},
#include "http/field.def"
#undef ROW
};

static bool is_text(struct span text, const char *word, size_t size)
{
    return text.size == size && memcmp(text.data, word, size) == 0;
}

/* word is in lower case already; the first byte decides for nearly all names of the same length. */
static bool is_folded(struct span text, const char *word, size_t size)
{
    return text.size == size && ascii_lower(text.data[0]) == word[0] &&
           ascii_equal_fold(text, span_make(word, size));
}

enum method http_method(struct span text)
{
#define ROW(constant, word, safe)              \
    if (is_text(text, word, sizeof(word) - 1)) \
        return METHOD_##constant;
#include "http/method.def"
#undef ROW
    return METHOD_OTHER;
}

bool http_method_is_safe(enum method method)
{
    switch (method) {
#define ROW(constant, text, safe) \
    case METHOD_##constant:       \
        return safe;
#include "http/method.def"
#undef ROW
    case METHOD_OTHER:
        break;
    }
    return false;
}

const char *http_refusal_word(enum refusal refusal)
{
    CHECK(refusal < REFUSAL_COUNT);
    return refusals[refusal].word;
}

unsigned http_refusal_status(enum refusal refusal)
{
    CHECK(refusal < REFUSAL_COUNT);
    return refusals[refusal].status;
}

const char *http_refusal_text(enum refusal refusal)
{
    CHECK(refusal < REFUSAL_COUNT);
    return refusals[refusal].text;
}

const char *http_status_phrase(unsigned status)
{
    switch (status) {
#define ROW(code, phrase) \
    case code:            \
        return phrase;
#include "http/status.def"
#undef ROW
    }
    return "";
}

bool http_status_has_no_body(unsigned status)
{
    return status < 200 || status == 204 || status == 304;
}

/* The names of one length; with a constant size the others are not even compiled. */
static inline __attribute__((always_inline)) enum field_id find_among(struct span name, size_t size)
{
#define ROW(constant, word, flags)                               \
    if (sizeof(word) - 1 == size && is_folded(name, word, size)) \
        return FIELD_ID_##constant;
#include "http/field.def"
#undef ROW
    return FIELD_OTHER;
}

#define OF(size) \
    case size:   \
        return find_among(name, size);
#define OF_4(size) OF(size) OF(size + 1) OF(size + 2) OF(size + 3)

enum field_id http_field_id(struct span name)
{
    switch (name.size) {
        OF_4(1)
        OF_4(5) OF_4(9) OF_4(13) OF_4(17) OF_4(21) OF_4(25) OF_4(29) default : return FIELD_OTHER;
    }
}

#undef OF_4
#undef OF

struct span http_field_name(enum field_id id)
{
    CHECK(id < FIELD_ID_COUNT);
    return known_fields[id].name;
}

unsigned http_field_flags(enum field_id id)
{
    CHECK(id < FIELD_ID_COUNT);
    return known_fields[id].flags;
}

/* SPDX-License-Identifier: MIT */
/*
 * What a client may say about a file: ranges, conditions, dates and names. The input's first bytes choose
 * the file's length; the rest is one field value or name, read as each of them.
 */
#include "static/open_file.h"
#include "static/precondition.h"
#include "static/range.h"
#include "static/resolve.h"
#include "static/static.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parts lie in the file, are not empty and are no longer than it together. */
static void check_ranges(struct span value, uint64_t length)
{
    struct range parts[RANGE_MAX];
    unsigned count = 0;
    uint64_t left = length;

    if (range_parse(value, length, parts, &count) != RANGE_PARTS)
        return;
    CHECK(count >= 1 && count <= RANGE_MAX);
    for (unsigned i = 0; i < count; i++) {
        CHECK(parts[i].size >= 1 && parts[i].size <= left);
        CHECK(parts[i].first < length && parts[i].size <= length - parts[i].first);
        left -= parts[i].size;
    }
}

/* A version that is expected and known is unchanged; one that is not expected is refused. */
static void check_conditions(struct span value)
{
    static const enum field_id ids[] = {FIELD_ID_IF_MATCH, FIELD_ID_IF_NONE_MATCH,
                                        FIELD_ID_IF_MODIFIED_SINCE, FIELD_ID_IF_UNMODIFIED_SINCE,
                                        FIELD_ID_IF_RANGE};
    const struct validators validators = {.etag = SPAN("\"1-2-3\""), .modified = 784111777};

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct field item = {.id = ids[i], .value = value};
        struct fields fields = {.items = &item, .size = 1};

        (void)precondition_check(&fields, &validators);
        (void)precondition_range_counts(&fields, &validators);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct static_root root = {.folder = "/"};
    struct span value = span_make((const char *)data + 2, size < 2 ? 0 : size - 2);

    if (size < 2)
        return 0;
    check_ranges(value, (uint64_t)data[0] << (data[1] % 57));
    check_conditions(value);
    (void)resolve_is_refused(&root, value);
    (void)open_file_is_fingerprinted(value);
    return 0;
}

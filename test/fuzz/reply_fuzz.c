/* SPDX-License-Identifier: MIT */
/* What a worker may write into its reply pages: the input is a page's bytes. Walks the records as the front
 * does and reads every head, field and file range, which must lie inside the input. */
#include "base/base.h"
#include "upstream/rack_reply.h"

static void use_fields(struct span fields, unsigned count, struct span page)
{
    struct span name, value;
    unsigned seen = 0;

    while (reply_field(&fields, &name, &value)) {
        CHECK(name.size > 0);
        CHECK(name.data >= page.data && value.data + value.size <= page.data + page.size);
        CHECK(!memchr(value.data, '\n', value.size) && !memchr(value.data, '\r', value.size));
        seen++;
    }
    CHECK(seen == count);
}

static void use_payload(enum reply_step step, struct span payload, struct span page)
{
    struct reply_head head;
    struct page_file file;
    unsigned count;

    if ((step == REPLY_HEAD || step == REPLY_INTERIM) &&
        reply_head_read(payload, step == REPLY_INTERIM, &head)) {
        CHECK(step == REPLY_INTERIM
                  ? head.status == 103
                  : head.status == 101 || (head.status >= 200 && head.status <= 599));
        use_fields(head.fields, head.field_count, page);
    }
    if (step == REPLY_TRAILERS && reply_fields_are_valid(payload, &count))
        use_fields(payload, count, page);
    if (step == REPLY_FILE && reply_file_read(payload, &file))
        CHECK(file.offset + file.size >= file.offset && file.offset + file.size <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span page = span_make((const char *)data, size), rest = page, payload;
    struct page_record record;
    struct reply reply = {0};
    bool broken = false, over = false;

    while (page_next(&rest, &record, &payload, &broken)) {
        enum reply_step step = reply_step(&reply, &record);

        CHECK(!over || step == REPLY_BROKEN);
        over |= step == REPLY_END || step == REPLY_TUNNEL || step == REPLY_BROKEN;
        use_payload(step, payload, page);
    }
    return 0;
}

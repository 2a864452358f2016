/* SPDX-License-Identifier: MIT */
/*
 * The PROXY header: whatever a peer sends ahead of a connection, the verdict is the same once it is there,
 * and until then every byte is the header's.
 */
#include "base/base.h"
#include "front/proxy_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_end(struct span bytes, size_t at, const struct proxy_protocol *header)
{
    struct proxy_protocol whole;
    char text[64];

    CHECK(proxy_protocol_read(bytes, &whole) == PROXY_PROTOCOL_DONE);
    CHECK(whole.size == header->size && whole.named == header->named);
    CHECK(header->size >= at);
    if (!header->named)
        return;
    CHECK(address_equal(&whole.peer, &header->peer));
    CHECK(address_format(&header->peer, text, sizeof(text)) < sizeof(text));
    CHECK(address_format_host(&header->local, text, sizeof(text)) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_make((const char *)data, size);
    struct proxy_protocol header;

    for (size_t at = 0; at <= size; at++) {
        switch (proxy_protocol_read(span_first(bytes, at), &header)) {
        case PROXY_PROTOCOL_MORE:
            CHECK(at < PROXY_PROTOCOL_ROOM);
            break;
        case PROXY_PROTOCOL_DONE:
            check_end(bytes, at, &header);
            return 0;
        case PROXY_PROTOCOL_REFUSED:
            CHECK(proxy_protocol_read(bytes, &header) == PROXY_PROTOCOL_REFUSED);
            return 0;
        }
    }
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "control/text.h"

#include <string.h>

/* Bytes of the UTF-8 sequence at the start, 0 when there is none (RFC 3629 4). */
static size_t utf8_length(struct span text)
{
    unsigned char first = (unsigned char)text.data[0];
    unsigned char second = text.size > 1 ? (unsigned char)text.data[1] : 0;
    size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    if (first > 0xf4 || size > text.size)
        return 0;
    for (size_t i = 1; i < size; i++)
        if (((unsigned char)text.data[i] & 0xc0) != 0x80)
            return 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return 0;
    return size;
}

/* Characters that a terminal obeys (DEL, C1), and those that a reader of YAML refuses. */
static int add_unusual(struct buf *out, struct span text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text.data;

    if (size == 1)
        return buf_append(out, span_of("\\u007f"));
    if (size == 2)
        return buf_printf(out, "\\u00%02x", bytes[1]);
    return buf_printf(out, "\\u%04x",
                      (bytes[0] & 0xfu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu));
}

static bool is_unusual(struct span text, size_t size)
{
    static const char *const marks[] = {"\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf"};

    if (size == 1)
        return text.data[0] == 0x7f;
    if (size == 2)
        return text.data[0] == '\xc2' && (unsigned char)text.data[1] < 0xa0;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (size == 3 && memcmp(text.data, marks[i], 3) == 0)
            return true;
    return false;
}

static int add_escaped(struct buf *out, struct span text)
{
    size_t size = utf8_length(text);

    if (is_unusual(text, size))
        return add_unusual(out, text, size);
    if (size == 0)
        return buf_append(out, span_of("\xef\xbf\xbd"));
    if (size == 1 && (unsigned char)text.data[0] < 0x20)
        return buf_printf(out, "\\u%04x", (unsigned char)text.data[0]);
    if (size == 1 && (text.data[0] == '"' || text.data[0] == '\\'))
        return buf_printf(out, "\\%c", text.data[0]);
    return buf_append(out, span_first(text, size));
}

int text_add_json(struct buf *out, struct span text)
{
    int result = buf_append_byte(out, '"');

    while (text.size && result == 0) {
        size_t size = utf8_length(text);
        result = add_escaped(out, text);
        text = span_skip(text, size ? size : 1);
    }
    return result ? result : buf_append_byte(out, '"');
}

int text_add_plain(struct buf *out, struct span text)
{
    int result = 0;

    while (text.size && result == 0) {
        size_t size = utf8_length(text);
        bool shown = size > 0 && !is_unusual(text, size) && (size > 1 || text.data[0] >= ' ');
        result = shown ? buf_append(out, span_first(text, size)) : buf_append_byte(out, '?');
        text = span_skip(text, size ? size : 1);
    }
    return result;
}

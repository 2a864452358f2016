/* SPDX-License-Identifier: MIT */
#include "pool/protocol.h"

#include "base/num.h"

#include <errno.h>

int protocol_begin(struct buf *buf, const char *verb)
{
    buf_clear(buf);
    return buf_printf(buf, "%s\n", verb);
}

int protocol_add(struct buf *buf, const char *key, struct span value)
{
    if (buf_printf(buf, "%s=", key) != 0 || buf_append_escaped(buf, value) != 0)
        return -ENOMEM;
    return buf_append_byte(buf, '\n');
}

int protocol_add_number(struct buf *buf, const char *key, uint64_t value)
{
    char digits[24];

    return protocol_add(buf, key, span_make(digits, num_format(value, digits)));
}

/* Unescaping never lengthens, so it is done where the value stands. */
static struct span unescape(char *text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\' && i + 1 < size) {
            i++;
            text[used++] = text[i] == 'n' ? '\n' : text[i];
        } else {
            text[used++] = text[i];
        }
    }
    return span_make(text, used);
}

static bool parse_pair(char *line, size_t size, struct protocol_pair *ret_pair)
{
    size_t equals = span_find(span_make(line, size), '=');

    if (equals == 0 || equals == size)
        return false;
    ret_pair->key = span_make(line, equals);
    ret_pair->value = unescape(line + equals + 1, size - equals - 1);
    return true;
}

bool protocol_parse(char *bytes, size_t size, struct protocol_message *ret_message)
{
    struct protocol_message message = {.size = 0};
    size_t start = span_find(span_make(bytes, size), '\n');

    message.verb = span_make(bytes, start);
    if (start == 0)
        return false;
    for (start++; start < size;) {
        size_t length = span_find(span_make(bytes + start, size - start), '\n');
        if (message.size == PROTOCOL_PAIRS ||
            !parse_pair(bytes + start, length, &message.pairs[message.size]))
            return false;
        message.size++;
        start += length + 1;
    }
    *ret_message = message;
    return true;
}

struct span protocol_get(const struct protocol_message *message, const char *key)
{
    for (size_t i = 0; i < message->size; i++)
        if (span_is(message->pairs[i].key, key))
            return message->pairs[i].value;
    return span_make(NULL, 0);
}

bool protocol_get_number(const struct protocol_message *message, const char *key,
                         uint64_t *ret_value)
{
    return num_decimal(protocol_get(message, key), ret_value);
}

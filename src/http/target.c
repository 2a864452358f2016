/* SPDX-License-Identifier: MIT */
#include "http/target.h"

#include "base/ascii.h"
#include "base/num.h"

#include <arpa/inet.h>
#include <sys/types.h>

static bool skip_scheme(struct span *text, struct span scheme)
{
    if (!ascii_equal_fold(span_first(*text, scheme.size), scheme))
        return false;
    *text = span_skip(*text, scheme.size);
    return true;
}

static bool skip_known_scheme(struct span *text)
{
    static const struct span http = SPAN("http://"), https = SPAN("https://");

    return skip_scheme(text, http) || skip_scheme(text, https);
}

static struct span cut_authority(struct span *text)
{
    size_t end = 0;
    struct span authority;

    while (end < text->size && text->data[end] != '/' && text->data[end] != '?')
        end++;
    authority = span_first(*text, end);
    *text = span_skip(*text, end);
    return authority;
}

static void split_query(struct span text, struct target *ret_target)
{
    size_t mark = span_find(text, '?');

    ret_target->path = span_first(text, mark);
    ret_target->query = span_skip(text, mark + 1);
    ret_target->has_query = mark < text.size;
    if (!ret_target->path.size) /* RFC 9112 3.2.1: an empty path is sent as "/" */
        ret_target->path = (struct span)SPAN("/");
}

/* RFC 9112 3.2.2. Only the schemes that this server speaks are its own (RFC 9110 7.4). */
static enum refusal parse_absolute(struct span text, struct target *ret_target)
{
    struct span authority;

    if (!skip_known_scheme(&text))
        return REFUSAL_MALFORMED;
    authority = cut_authority(&text);
    if (!authority.size) /* RFC 9110 4.2.1 */
        return REFUSAL_HOST;
    *ret_target = (struct target){.authority = authority};
    split_query(text, ret_target);
    return REFUSAL_NONE;
}

enum refusal target_parse(enum method method, struct span text, struct target *ret_target)
{
    if (method == METHOD_CONNECT)
        return REFUSAL_METHOD;
    /* A fragment is never sent (RFC 9112 3.2); Rack forbids it in PATH_INFO. */
    if (!text.size || span_find(text, '#') < text.size)
        return REFUSAL_MALFORMED;
    if (text.data[0] == '/') {
        *ret_target = (struct target){0};
        split_query(text, ret_target);
        return REFUSAL_NONE;
    }
    if (span_is(text, "*")) {
        if (method != METHOD_OPTIONS) /* RFC 9112 3.2.4 */
            return REFUSAL_MALFORMED;
        *ret_target = (struct target){.path = text};
        return REFUSAL_NONE;
    }
    return parse_absolute(text, ret_target);
}

static bool is_ip6(struct span text)
{
    char copy[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (!text.size || text.size >= sizeof(copy))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    return strlen(copy) == text.size && inet_pton(AF_INET6, copy, &address) == 1;
}

/* Unreserved bytes and escapes of RFC 3986 3.2.2. Sub-delims are left out: no host has them, and a
 * comma would make two names of one. */
static bool is_name(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];

        if (ascii_is(byte, ASCII_ALPHA | ASCII_DIGIT) || (byte && strchr("-._~", byte)))
            continue;
        if (byte != '%' || i + 2 >= text.size || ascii_hex(text.data[i + 1]) < 0 ||
            ascii_hex(text.data[i + 2]) < 0)
            return false;
        i += 2;
    }
    return text.size;
}

static bool parse_port(struct span text, unsigned *ret_port)
{
    uint64_t port;

    if (!text.size) { /* "host:" is valid (RFC 3986 3.2.3) */
        *ret_port = 0;
        return true;
    }
    if (!num_decimal(text, &port) || port > 65535)
        return false;
    *ret_port = (unsigned)port;
    return true;
}

static bool fold(struct span text, struct arena *arena, struct span *ret_folded)
{
    size_t i = 0;
    char *copy;

    while (i < text.size && ascii_lower(text.data[i]) == text.data[i])
        i++;
    if (i == text.size) {
        *ret_folded = text;
        return true;
    }
    copy = arena_take(arena, text.size);
    if (!copy)
        return false;
    for (i = 0; i < text.size; i++)
        copy[i] = ascii_lower(text.data[i]);
    *ret_folded = span_make(copy, text.size);
    return true;
}

/* Where the host ends: behind the bracket of an IPv6 address, else at the colon. */
static size_t host_end(struct span text)
{
    size_t end;

    if (!text.size || text.data[0] != '[')
        return span_find(text, ':');
    end = span_find(text, ']');
    return end < text.size ? end + 1 : end;
}

bool target_parse_authority(struct span text, struct arena *arena, struct span *ret_host,
                            unsigned *ret_port)
{
    size_t end = host_end(text);
    struct span host = span_first(text, end), rest = span_skip(text, end);
    unsigned port = 0;

    if (!host.size)
        return false;
    if (host.data[0] == '[') {
        if (host.size < 3 || host.data[host.size - 1] != ']' ||
            !is_ip6(span_make(host.data + 1, host.size - 2)))
            return false;
    } else if (!is_name(host)) {
        return false;
    }
    if (rest.size && (rest.data[0] != ':' || !parse_port(span_skip(rest, 1), &port)))
        return false;
    if (!fold(host, arena, ret_host))
        return false;
    *ret_port = port;
    return true;
}

/* Decodes one segment to out and returns its size, or -1 when it cannot be part of a file's name. */
static ssize_t decode_segment(struct span segment, char *out)
{
    size_t size = 0;

    for (size_t i = 0; i < segment.size; i++) {
        char byte = segment.data[i];

        if (byte == '%') {
            int high, low;

            if (i + 2 >= segment.size)
                return -1;
            high = ascii_hex(segment.data[i + 1]);
            low = ascii_hex(segment.data[i + 2]);
            if (high < 0 || low < 0)
                return -1;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if (byte == '/' || byte == 0)
            return -1;
        out[size++] = byte;
    }
    return (ssize_t)size;
}

static size_t parent_end(const char *out, size_t size)
{
    if (size)
        size--; /* the slash */
    while (size && out[size - 1] != '/')
        size--;
    return size;
}

/* out ends with a slash or is empty before and after, save after the last segment. */
static bool decode_all(struct span path, char *out, size_t *ret_size)
{
    size_t size = 0;

    while (path.data) {
        struct span segment = span_split(&path, '/');
        ssize_t part = decode_segment(segment, out + size);

        if (part < 0)
            return false;
        if (part == 0 || (part == 1 && out[size] == '.'))
            continue;
        if (part == 2 && out[size] == '.' && out[size + 1] == '.') {
            if (!size)
                return false;
            size = parent_end(out, size);
            continue;
        }
        size += (size_t)part;
        if (path.data)
            out[size++] = '/';
    }
    *ret_size = size;
    return true;
}

bool target_decode(struct span path, struct arena *arena, struct span *ret_name)
{
    char *out = arena_take(arena, path.size + 1);
    size_t size = 0;

    if (!out || !decode_all(path, out, &size))
        return false;
    out[size] = 0;
    *ret_name = span_make(out, size);
    return true;
}

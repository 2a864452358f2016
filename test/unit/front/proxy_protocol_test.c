/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/proxy_protocol.c"

#define BYTES(literal) span_make(literal, sizeof(literal) - 1)
#define SIGNATURE      "\r\n\r\n\0\r\nQUIT\n"

static void assert_address(const struct address *address, const char *text)
{
    char shown[256];

    assert_int_equal(address_format(address, shown, sizeof(shown)), strlen(text));
    assert_string_equal(shown, text);
}

static struct proxy_protocol assert_done(struct span bytes, size_t size)
{
    struct proxy_protocol header = {0};

    assert_int_equal(proxy_protocol_read(bytes, &header), PROXY_PROTOCOL_DONE);
    assert_int_equal(header.size, size);
    return header;
}

static void assert_refused(struct span bytes)
{
    struct proxy_protocol header = {.size = 4711};

    if (proxy_protocol_read(bytes, &header) != PROXY_PROTOCOL_REFUSED)
        fail_msg("taken for a header: %.*s", SPAN_ARG(bytes));
    assert_int_equal(header.size, 4711);
}

/* At every cut the header is waited for, and none of the bytes behind it decides anything. */
static void assert_whole_only(struct span header, struct span behind)
{
    char bytes[512];
    struct proxy_protocol seen;

    memcpy(bytes, header.data, header.size);
    memcpy(bytes + header.size, behind.data, behind.size);
    for (size_t size = 0; size < header.size; size++)
        assert_int_equal(proxy_protocol_read(span_make(bytes, size), &seen), PROXY_PROTOCOL_MORE);
    for (size_t size = header.size; size <= header.size + behind.size; size++)
        (void)assert_done(span_make(bytes, size), header.size);
}

static void a_line_names_client_and_server(void **state)
{
    struct proxy_protocol header =
        assert_done(span_of("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\nGET"), 45);
    (void)state;

    assert_true(header.named);
    assert_address(&header.peer, "192.0.2.1:56324");
    assert_address(&header.local, "198.51.100.7:443");
    header = assert_done(span_of("PROXY TCP6 2001:db8::1 ::1 65535 80\r\n"), 37);
    assert_address(&header.peer, "[2001:db8::1]:65535");
    assert_address(&header.local, "[::1]:80");
}

static void unknown_names_nobody_whatever_follows(void **state)
{
    (void)state;
    assert_false(assert_done(span_of("PROXY UNKNOWN\r\n"), 15).named);
    assert_false(assert_done(span_of("PROXY UNKNOWN ffff::1 what ever\r\n"), 33).named);
}

static void a_header_is_whole_or_not_there(void **state)
{
    (void)state;
    assert_whole_only(span_of("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n"),
                      span_of("PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\nGET / HTTP/1.1\r\n\r\n"));
    assert_whole_only(span_of("PROXY UNKNOWN\r\n"), span_of("\r\n\r\n"));
    assert_whole_only(BYTES(SIGNATURE "\x21\x11\0\x0c\x01\x02\x03\x04\x05\x06\x07\x08\0\x50\0\x51"),
                      BYTES(SIGNATURE));
    assert_whole_only(BYTES(SIGNATURE "\x20\0\0\0"), span_of("GET"));
}

static void lines_that_are_almost_right_are_refused(void **state)
{
    static const char *const lines[] = {
        "GET / HTTP/1.1\r\n",
        "POST / HTTP/1.1\r\n",
        "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY\r\n",
        "PROXY \r\n",
        "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 \r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
        "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",
        "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1:9 192.0.2.2 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP6 ::1]:7 ::1 1 2\r\n",
        "PROXY TCP6 ::1 ::1 1 2 \r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\r\n",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        assert_refused(span_of(lines[i]));
    assert_refused(BYTES("PROXY TCP4 192.0.2.1\0 192.0.2.2 1 2\r\n"));
}

static void a_line_has_an_end_within_107_bytes(void **state)
{
    char line[LINE_BYTES + 1];
    struct proxy_protocol header;
    (void)state;

    memset(line, 'x', sizeof(line));
    memcpy(line, "PROXY UNKNOWN ", 14);
    assert_int_equal(proxy_protocol_read(span_make(line, LINE_BYTES - 1), &header),
                     PROXY_PROTOCOL_MORE);
    assert_refused(span_make(line, LINE_BYTES));
    memcpy(line + LINE_BYTES - 2, "\r\n", 2);
    (void)assert_done(span_make(line, LINE_BYTES), LINE_BYTES);
    memcpy(line + LINE_BYTES - 1, "\r\n", 2);
    assert_refused(span_make(line, LINE_BYTES + 1));
}

static void version_2_names_client_and_server(void **state)
{
    struct proxy_protocol header = assert_done(
        BYTES(SIGNATURE "\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x07\xdc\x04\x01\xbb"), 28);
    (void)state;

    assert_true(header.named);
    assert_address(&header.peer, "192.0.2.1:56324");
    assert_address(&header.local, "198.51.100.7:443");
    header = assert_done(BYTES(SIGNATURE "\x21\x21\0\x24"
                                         "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
                                         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x07\x1f\x90"),
                         52);
    assert_address(&header.peer, "[2001:db8::1]:7");
    assert_address(&header.local, "[::1]:8080");
}

static void version_2_names_unix_sockets(void **state)
{
    char bytes[FIXED_BYTES + 2 * PATH_BYTES] = SIGNATURE "\x21\x31\0\xd8";
    struct proxy_protocol header;
    (void)state;

    memset(bytes + FIXED_BYTES, 'p', PATH_BYTES);
    memcpy(bytes + FIXED_BYTES + PATH_BYTES, "/run/web.sock", 13);
    header = assert_done(span_make(bytes, sizeof(bytes)), PROXY_PROTOCOL_ROOM);
    assert_true(header.named && address_is_unix(&header.peer));
    assert_int_equal(strlen(header.peer.path), PATH_BYTES);
    assert_address(&header.local, "unix:/run/web.sock");
}

static void a_length_counts_what_is_not_read(void **state)
{
    (void)state;
    (void)assert_done(
        BYTES(SIGNATURE "\x21\x11\xff\xff\xc0\0\x02\x01\xc6\x33\x64\x07\xdc\x04\x01\xbb"), 65551);
    assert_false(assert_done(BYTES(SIGNATURE "\x20\xff\xff\xff"), 65551).named);
    assert_false(assert_done(BYTES(SIGNATURE "\x21\0\0\x03"), 19).named);
    assert_false(assert_done(BYTES(SIGNATURE "\x21\x12\0\x0c"
                                             "12345678abcd"),
                             28)
                     .named);
}

static void version_2_that_is_almost_right_is_refused(void **state)
{
    (void)state;
    assert_refused(BYTES("\r\n\r\nGET / HTTP/1.1\r\n"));
    assert_refused(BYTES(SIGNATURE "\x11\x11\0\x0c"));
    assert_refused(BYTES(SIGNATURE "\x31\x11\0\x0c"));
    assert_refused(BYTES(SIGNATURE "\x22\x11\0\x0c"));
    assert_refused(BYTES(SIGNATURE "\x21\x13\0\x0c"));
    assert_refused(BYTES(SIGNATURE "\x21\x41\0\x0c"));
    assert_refused(BYTES(SIGNATURE "\x21\x11\0\x0b"));
    assert_refused(BYTES(SIGNATURE "\x21\x21\0\x23"));
    assert_refused(BYTES(SIGNATURE "\x21\x31\0\xd7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_names_client_and_server),
        cmocka_unit_test(unknown_names_nobody_whatever_follows),
        cmocka_unit_test(a_header_is_whole_or_not_there),
        cmocka_unit_test(lines_that_are_almost_right_are_refused),
        cmocka_unit_test(a_line_has_an_end_within_107_bytes),
        cmocka_unit_test(version_2_names_client_and_server),
        cmocka_unit_test(version_2_names_unix_sockets),
        cmocka_unit_test(a_length_counts_what_is_not_read),
        cmocka_unit_test(version_2_that_is_almost_right_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "http/h1_framing.c"

/* Lines of "name: value", each ended by '\n'. */
static enum refusal decide(const char *lines, unsigned minor, struct h1_framing *framing)
{
    struct arena arena = {0};
    struct fields fields;
    struct span rest = span_of(lines);
    enum refusal refusal;

    fields_init(&fields, &arena);
    while (rest.size) {
        struct span line = span_split(&rest, '\n');
        size_t colon = span_find(line, ':');

        assert_int_equal(
            fields_add(&fields, span_first(line, colon), span_trim(span_skip(line, colon + 1))), 0);
    }
    refusal = h1_framing_decide(&fields, minor, framing);
    arena_done(&arena);
    return refusal;
}

static void bodies_are_framed_or_refused(void **state)
{
    static const struct {
        const char *lines;
        unsigned minor;
        enum refusal refusal;
        enum h1_body body;
        int64_t length;
    } cases[] = {
        {"", 1, REFUSAL_NONE, H1_BODY_NONE, 0},
        {"content-length: 0", 1, REFUSAL_NONE, H1_BODY_NONE, 0},
        {"content-length: 5", 0, REFUSAL_NONE, H1_BODY_LENGTH, 5},
        {"content-length: 5, 5", 1, REFUSAL_NONE, H1_BODY_LENGTH, 5},
        {"content-length: 5\ncontent-length: 5", 1, REFUSAL_NONE, H1_BODY_LENGTH, 5},
        {"content-length: 9223372036854775807", 1, REFUSAL_NONE, H1_BODY_LENGTH, INT64_MAX},
        {"content-length: 9223372036854775808", 1, REFUSAL_FRAMING, 0, 0},
        {"content-length: 0\ncontent-length: 5", 1, REFUSAL_FRAMING, 0, 0},
        {"content-length: 5,", 1, REFUSAL_FRAMING, 0, 0},
        {"content-length: ", 1, REFUSAL_FRAMING, 0, 0},
        {"content-length: -0", 1, REFUSAL_FRAMING, 0, 0},
        {"content-length: 0x5", 1, REFUSAL_FRAMING, 0, 0},
        {"transfer-encoding: Chunked", 1, REFUSAL_NONE, H1_BODY_CHUNKED, -1},
        {"transfer-encoding: chunked", 0, REFUSAL_FRAMING, 0, 0},
        {"transfer-encoding: chunked\ncontent-length: 0", 1, REFUSAL_FRAMING, 0, 0},
        {"transfer-encoding: chunked, chunked", 1, REFUSAL_FRAMING, 0, 0},
        {"transfer-encoding: chunked, gzip", 1, REFUSAL_FRAMING, 0, 0},
        {"transfer-encoding: chunked;a=b", 1, REFUSAL_FRAMING, 0, 0},
        {"transfer-encoding: ", 1, REFUSAL_FRAMING, 0, 0},
        {"transfer-encoding: gzip, chunked", 1, REFUSAL_CODING, 0, 0},
        {"transfer-encoding: identity", 1, REFUSAL_CODING, 0, 0},
        {"transfer-encoding: xchunked", 1, REFUSAL_CODING, 0, 0},
        {"content-type: a/b\ncontent-type: a/b", 1, REFUSAL_MALFORMED, 0, 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct h1_framing framing = {0};

        if (decide(cases[i].lines, cases[i].minor, &framing) != cases[i].refusal)
            fail_msg("'%s' was decided otherwise", cases[i].lines);
        assert_int_equal(framing.body, cases[i].body);
        assert_int_equal(framing.length, cases[i].length);
    }
}

static void connections_stay_by_version_and_connection_field(void **state)
{
    static const struct {
        const char *lines;
        unsigned minor;
        bool stays;
    } cases[] = {
        {"", 1, true},
        {"", 0, false},
        {"connection: Keep-Alive", 0, true},
        {"connection: close", 1, false},
        {"connection: keep-alive, CLOSE", 1, false},
        {"connection: close, keep-alive", 0, false},
        {"connection: keep-alive\nconnection: close", 1, false},
        {"connection: not-close, closed", 1, true},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct h1_framing framing;

        assert_int_equal(decide(cases[i].lines, cases[i].minor, &framing), REFUSAL_NONE);
        assert_int_equal(framing.keep_alive, cases[i].stays);
    }
}

static void only_a_body_can_be_asked_for(void **state)
{
    struct h1_framing framing;
    (void)state;

    assert_int_equal(decide("expect: 100-Continue\ncontent-length: 5", 1, &framing), 0);
    assert_true(framing.expects_continue);
    assert_int_equal(decide("expect: 100-continue", 1, &framing), 0);
    assert_false(framing.expects_continue);
    assert_int_equal(decide("expect: 100-continue\ncontent-length: 5", 0, &framing), 0);
    assert_false(framing.expects_continue);
    assert_int_equal(decide("expect: , 100-continue,100-CONTINUE", 1, &framing), 0);
    assert_int_equal(decide("expect: x", 1, &framing), REFUSAL_EXPECTATION);
    assert_int_equal(decide("expect: 100-continue, x", 1, &framing), REFUSAL_EXPECTATION);
    assert_int_equal(decide("expect: x", 0, &framing), REFUSAL_NONE);
}

static void answers_are_framed_by_length_chunks_or_the_end(void **state)
{
    static const struct {
        struct h1_answer answer;
        struct h1_answer_framing framing;
    } cases[] = {
        {{200, 1, false, false, 5, true}, {false, 5, true}},
        {{200, 1, false, false, -1, true}, {true, -1, true}},
        {{200, 0, false, false, -1, true}, {false, -1, false}},
        {{200, 0, false, false, 0, true}, {false, 0, true}},
        {{200, 1, true, true, 5, true}, {false, 5, true}},
        {{200, 1, true, true, -1, true}, {false, -1, true}},
        {{204, 1, true, false, 0, true}, {false, -1, true}},
        {{304, 1, true, false, 5, true}, {false, 5, true}},
        {{304, 1, true, true, 0, true}, {false, -1, true}},
        {{200, 1, false, false, 5, false}, {false, 5, false}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct h1_answer_framing framing = h1_framing_answer(&cases[i].answer);

        assert_int_equal(framing.chunked, cases[i].framing.chunked);
        assert_int_equal(framing.length, cases[i].framing.length);
        assert_int_equal(framing.keep_alive, cases[i].framing.keep_alive);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_framed_or_refused),
        cmocka_unit_test(connections_stay_by_version_and_connection_field),
        cmocka_unit_test(only_a_body_can_be_asked_for),
        cmocka_unit_test(answers_are_framed_by_length_chunks_or_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

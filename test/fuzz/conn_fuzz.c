/* SPDX-License-Identifier: MIT */
/* A whole connection: however its bytes are cut, the same requests are seen, and the answers are whole, as
 * many as the requests, and nothing besides. */
#include "conn_line.h"

/* What the service saw of the bytes, given and taken step at a time. */
static struct buf run(struct span bytes, size_t step)
{
    struct line line = {.stream.ops = &line_ops, .rest = bytes, .step = step};
    struct h1_options options = line_options(&line);
    struct address nobody = {.socket.any.sa_family = AF_UNIX};
    size_t rounds = 0;

    line.stream.loop = loop_new();
    CHECK(line.stream.loop);
    CHECK(h1_conn_open_stream(&options, &line.stream, &nobody, &nobody, NULL, NULL));
    for (; !line.closed; CHECK(rounds++ < 100 * bytes.size + 100))
        line_round(&line);
    check_answers(buf_span(&line.out), buf_span(&line.heads));
    loop_free(line.stream.loop);
    buf_done(&line.out), buf_done(&line.heads);
    return line.seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_make((const char *)data, size);
    struct buf whole = run(bytes, size + 100);

    for (size_t step = 1; step <= 8; step += 7) {
        struct buf cut = run(bytes, step);

        CHECK(span_equal(buf_span(&whole), buf_span(&cut)));
        buf_done(&cut);
    }
    buf_done(&whole);
    h1_conn_free_spares();
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "front/compress.h"

#include "base/ascii.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WORTH = 1024,         /* smaller bodies fit into one packet anyway */
    FILE_PART = 16 * 1024 /* read of a spooled answer at once */
};

/* Of what a client wants equally, the fastest for its size; measured as the levels in encoder.c were. */
static const enum coding offered[] = {CODING_ZSTD, CODING_BR, CODING_GZIP};

/* Bytes that wait to be coded because older ones lie in a file. */
struct waiting {
    struct list link;
    int fd; /* -1: the bytes follow the struct */
    bool owns_fd;
    uint64_t offset, size; /* still to code */
};

struct compress {
    struct exchange *exchange;
    struct encoder_store *store;
    struct encoder *encoder; /* NULL: undecided */
    enum coding coding;      /* the client's choice */
    struct list queue;
    int64_t length; /* of the uncoded body, or -1 */
    uint64_t taken; /* bytes of it given so far */
    bool failed;    /* coding has: what comes is dropped */
    bool ending;    /* the handler has ended */
    bool cut;       /* and what it gave was not all, or too much */
    size_t held_size;
    char held[WORTH]; /* the body's beginning, while undecided */
};

static struct compress *compress_of(const struct exchange *exchange)
{
    return exchange->filter_data;
}

/* ---- What is coded ---- */

/* A digest of the bytes would be wrong for others. */
static bool has_digest(const struct fields *fields)
{
    return fields_find_name(fields, span_of("content-digest")) ||
           fields_find_name(fields, span_of("repr-digest")) ||
           fields_find_name(fields, span_of("digest")) ||
           fields_find_name(fields, span_of("content-md5"));
}

/* RFC 9110 7.7 */
static bool forbids_change(const struct fields *fields)
{
    return fields_has_token(fields, FIELD_ID_CACHE_CONTROL, (struct span)SPAN("no-transform"));
}

static bool is_whole(unsigned status)
{
    return !http_status_has_no_body(status) && status != 206;
}

/* Whether there are two forms of this answer, of which clients get one or the other. */
static bool is_candidate(const struct exchange *exchange, bool identity_will_do)
{
    const struct response *response = &exchange->response;
    const struct fields *fields = &response->fields;

    if (identity_will_do && response->length >= 0 && response->length < WORTH)
        return false;
    if (!response->length || !is_whole(response->status) || response->raw)
        return false;
    if (!coding_is_worthwhile(fields_value(fields, FIELD_ID_CONTENT_TYPE)))
        return false;
    return !fields_find(fields, FIELD_ID_CONTENT_ENCODING) &&
           !fields_find_name(fields, span_of("content-range")) && !forbids_change(fields) &&
           !forbids_change(&exchange->request.fields) && !has_digest(fields);
}

static void add_vary(struct exchange *exchange)
{
    static const struct span name = SPAN("accept-encoding");
    struct fields *fields = &exchange->response.fields;
    struct field *vary = fields_find(fields, FIELD_ID_VARY);

    if (fields_has_token(fields, FIELD_ID_VARY, name) ||
        fields_has_token(fields, FIELD_ID_VARY, (struct span)SPAN("*")))
        return;
    if (vary && vary->value.size)
        vary->value =
            arena_printf(&exchange->arena, "%.*s, %.*s", SPAN_ARG(vary->value), SPAN_ARG(name));
    else
        exchange_add_field(exchange, http_field_name(FIELD_ID_VARY), name);
}

/* Other bytes under the same strong tag would be mixed up by clients that ask for ranges of them (RFC 9110
 * 8.8.3.3), so it becomes a weak one, and ranges are not offered. */
static void weaken(struct exchange *exchange)
{
    struct fields *fields = &exchange->response.fields;
    struct field *etag = fields_find(fields, FIELD_ID_ETAG);
    struct field *ranges = fields_find_name(fields, span_of("accept-ranges"));

    if (etag && span_starts_with(etag->value, (struct span)SPAN("\"")))
        etag->value = arena_printf(&exchange->arena, "W/%.*s", SPAN_ARG(etag->value));
    if (ranges)
        ranges->value = span_of("none");
}

/* ---- Coding ---- */

static void stand_aside(struct compress *compress)
{
    compress->exchange->filter = NULL;
}

static void put(void *data, struct span bytes)
{
    struct compress *compress = data;

    exchange_put(compress->exchange, bytes);
}

static void give_encoder(struct compress *compress)
{
    encoder_give(compress->store, compress->encoder);
    compress->encoder = NULL;
}

static void drop_waiting(struct waiting *waiting)
{
    list_remove(&waiting->link);
    if (waiting->owns_fd)
        fd_close(&waiting->fd);
    free(waiting);
}

static void drop_queue(struct compress *compress)
{
    list_for_each_safe (link, &compress->queue)
        drop_waiting(CONTAINER_OF(link, struct waiting, link));
}

static void clean(void *object)
{
    give_encoder(object);
    drop_queue(object);
}

static void give_up(struct compress *compress)
{
    clean(compress);
    compress->failed = compress->cut = true;
}

static void code(struct compress *compress, struct span bytes, enum encoder_step step)
{
    if (!compress->failed && !encoder_run(compress->encoder, bytes, step, put, compress))
        give_up(compress);
}

static void code_held(struct compress *compress)
{
    struct span held = span_make(compress->held, compress->held_size);

    compress->held_size = 0;
    if (held.size)
        code(compress, held, ENCODER_MORE);
}

/* No encoder to be had: the answer goes out as it is. */
static void leave_plain(struct compress *compress)
{
    struct exchange *exchange = compress->exchange;

    exchange->response.length = compress->length;
    stand_aside(compress);
    if (compress->held_size)
        exchange_put(exchange, span_make(compress->held, compress->held_size));
}

static bool take_encoder(struct compress *compress)
{
    compress->encoder = encoder_take(compress->store, compress->coding);
    if (!compress->encoder)
        return false;
    if (!arena_defer(&compress->exchange->arena, clean, compress))
        return true;
    give_encoder(compress);
    return false;
}

static void say_coded(struct compress *compress)
{
    struct exchange *exchange = compress->exchange;

    exchange_add_field(exchange, http_field_name(FIELD_ID_CONTENT_ENCODING),
                       coding_name(compress->coding));
    exchange->response.length = -1;
    weaken(exchange);
}

/* The decision for coding. False when it is not possible: then the filter is out of the way. */
static bool start_coding(struct compress *compress)
{
    if (!take_encoder(compress)) {
        leave_plain(compress);
        return false;
    }
    say_coded(compress);
    code_held(compress);
    return true;
}

/* ---- The queue: answers that were spooled ---- */

/* Bytes of memory that wait count as output, so that the handler is held back. */
static bool enqueue(struct compress *compress, const struct waiting *what, struct span bytes)
{
    struct waiting *waiting = malloc(sizeof(*waiting) + bytes.size);

    if (!waiting)
        return false;
    *waiting = *what;
    list_init(&waiting->link);
    if (bytes.size)
        memcpy(waiting + 1, bytes.data, bytes.size);
    list_push_back(&compress->queue, &waiting->link);
    compress->exchange->response.memory += bytes.size;
    return true;
}

static ssize_t read_waiting(const struct waiting *waiting, char *out, size_t room)
{
    size_t size = waiting->size < room ? (size_t)waiting->size : room;
    ssize_t got;

    if (waiting->fd == -1) {
        memcpy(out, (const char *)(waiting + 1) + waiting->offset, size);
        return (ssize_t)size;
    }
    do
        got = pread(waiting->fd, out, size, (off_t)waiting->offset);
    while (got == -1 && errno == EINTR);
    return got;
}

static void code_next(struct compress *compress)
{
    struct waiting *waiting = CONTAINER_OF(compress->queue.next, struct waiting, link);
    char part[FILE_PART];
    ssize_t got = read_waiting(waiting, part, sizeof(part));

    if (got <= 0) {
        give_up(compress);
        return;
    }
    if (waiting->fd == -1)
        compress->exchange->response.memory -= (uint64_t)got;
    waiting->offset += (uint64_t)got;
    waiting->size -= (uint64_t)got;
    if (!waiting->size)
        drop_waiting(waiting);
    code(compress, span_make(part, (size_t)got), ENCODER_MORE);
}

/* ---- The end ---- */

static bool is_short(const struct compress *compress)
{
    return compress->length >= 0 && compress->taken < (uint64_t)compress->length;
}

/* A cut answer shows what there was, and lacks the coding's own end as well. */
static void finish(struct compress *compress)
{
    struct exchange *exchange = compress->exchange;

    compress->cut |= is_short(compress);
    code(compress, (struct span){0}, compress->cut ? ENCODER_FLUSH : ENCODER_END);
    give_encoder(compress);
    stand_aside(compress);
    exchange_finish(exchange, compress->cut);
}

/* Codes from the queue until the client has enough to take, but no more than EXCHANGE_LOW at a time, with
 * something to show for it: nobody would ask again before the client has taken it. */
static void advance(struct compress *compress)
{
    uint64_t pending = compress->exchange->response.pending;

    for (unsigned i = 0; i < EXCHANGE_LOW / FILE_PART && !list_is_empty(&compress->queue); i++)
        code_next(compress);
    if (!list_is_empty(&compress->queue) && compress->exchange->response.pending == pending)
        code(compress, (struct span){0}, ENCODER_FLUSH);
    if (list_is_empty(&compress->queue) && compress->ending)
        finish(compress);
}

/* ---- The filter ---- */

static bool is_undecided(const struct compress *compress)
{
    return !compress->encoder && !compress->failed;
}

static void on_settle(struct exchange *exchange)
{
    struct compress *compress = compress_of(exchange);

    /* What is here may have been flushed while it was held. */
    if (is_undecided(compress) && start_coding(compress))
        code(compress, (struct span){0}, ENCODER_FLUSH);
}

/* How much of size more bytes belong to the body; the rest is dropped, and the answer was wrong. */
static uint64_t admit(struct compress *compress, uint64_t size)
{
    uint64_t left =
        compress->length < 0 ? UINT64_MAX : (uint64_t)compress->length - compress->taken;

    compress->cut |= size > left;
    size = size < left ? size : left;
    compress->taken += size;
    return compress->failed ? 0 : size;
}

static bool try_hold(struct compress *compress, struct span bytes)
{
    if (!is_undecided(compress) || compress->held_size + bytes.size > sizeof(compress->held))
        return false;
    memcpy(compress->held + compress->held_size, bytes.data, bytes.size);
    compress->held_size += bytes.size;
    return true;
}

static void on_write(struct exchange *exchange, struct span bytes)
{
    struct compress *compress = compress_of(exchange);
    struct waiting waiting = {.fd = -1};

    bytes = span_first(bytes, admit(compress, bytes.size));
    if (!bytes.size || try_hold(compress, bytes))
        return;
    if (is_undecided(compress) && !start_coding(compress)) {
        exchange_put(exchange, bytes);
        return;
    }
    waiting.size = bytes.size;
    if (list_is_empty(&compress->queue))
        code(compress, bytes, ENCODER_MORE);
    else if (!enqueue(compress, &waiting, bytes))
        give_up(compress);
}

static void on_write_file(struct exchange *exchange, int fd, bool owns_fd, uint64_t offset,
                          uint64_t size)
{
    struct compress *compress = compress_of(exchange);
    struct waiting waiting = {.fd = fd, .owns_fd = owns_fd, .offset = offset};

    if (is_undecided(compress) && !start_coding(compress)) {
        exchange_write_file(exchange, fd, owns_fd, offset, size);
        return;
    }
    waiting.size = admit(compress, size);
    if (!waiting.size || !enqueue(compress, &waiting, (struct span){0})) {
        if (owns_fd)
            fd_close(&fd);
        if (waiting.size)
            give_up(compress);
        return;
    }
    if (exchange->response.pending < EXCHANGE_LOW)
        advance(compress);
}

static void on_flush(struct exchange *exchange)
{
    struct compress *compress = compress_of(exchange);

    if (compress->encoder && list_is_empty(&compress->queue))
        code(compress, (struct span){0}, ENCODER_FLUSH);
}

static void on_end(struct exchange *exchange, bool cut)
{
    struct compress *compress = compress_of(exchange);

    compress->cut |= cut;
    compress->ending = true;
    if (is_undecided(compress)) {
        leave_plain(compress);
        exchange_finish(exchange, cut);
    } else if (list_is_empty(&compress->queue)) {
        finish(compress);
    } else {
        exchange->handler = NULL; /* it has done its part */
        exchange->handler_data = NULL;
    }
}

static bool on_pull(struct exchange *exchange)
{
    struct compress *compress = compress_of(exchange);

    if (!list_is_empty(&compress->queue))
        advance(compress);
    return list_is_empty(&compress->queue) && !compress->ending;
}

static const struct filter coding_filter = {
    .settle = on_settle,
    .write = on_write,
    .write_file = on_write_file,
    .flush = on_flush,
    .end = on_end,
    .pull = on_pull,
};

/* ---- The offer, until there is a head ---- */

/* HEAD: what depends on a length that nobody knows is left out (RFC 9110 9.3.2). */
static void answer_head(struct compress *compress)
{
    if (compress->length >= 0)
        say_coded(compress);
    else
        weaken(compress->exchange);
    stand_aside(compress);
}

static void begin(struct exchange *exchange, enum coding coding, bool at_once)
{
    struct encoder_store *store = exchange->filter_data;
    struct compress *compress = arena_take(&exchange->arena, sizeof(*compress));

    exchange->filter = NULL;
    if (!compress)
        return;
    *compress = (struct compress){.exchange = exchange,
                                  .store = store,
                                  .coding = coding,
                                  .length = exchange->response.length};
    list_init(&compress->queue);
    exchange->filter = &coding_filter;
    exchange->filter_data = compress;
    if (exchange->response.no_body)
        answer_head(compress);
    else if (compress->length >= 0 || at_once)
        (void)start_coding(compress);
}

static void on_head(struct exchange *exchange)
{
    struct coding_wish wish;
    enum coding coding;
    bool identity_will_do;

    wish = coding_read_wish(&exchange->request.fields);
    identity_will_do = wish.quality[CODING_IDENTITY] != 0;
    coding = coding_choose(&wish, offered, ARRAY_LEN(offered));
    if (!is_candidate(exchange, identity_will_do)) {
        exchange->filter = NULL;
        return;
    }
    add_vary(exchange);
    if (coding == CODING_IDENTITY)
        exchange->filter = NULL;
    else
        begin(exchange, coding, !identity_will_do);
}

static bool on_early_pull(struct exchange *exchange)
{
    (void)exchange;
    return true;
}

/* Without a head there is nothing to write, flush or end. */
static const struct filter offer = {.head = on_head, .pull = on_early_pull};

void compress_start(struct exchange *exchange, struct encoder_store *store)
{
    exchange->filter = &offer;
    exchange->filter_data = store;
}

/* SPDX-License-Identifier: MIT */
#include "http/h1_write.h"

#include "base/ascii.h"
#include "base/clock.h"
#include "base/num.h"
#include "http/h1_framing.h"

#include <errno.h>

enum {
    PARTS = 24,
    FILE_INLINE = 32 * 1024, /* smaller parts of files go out together with the head */
    FILE_PART = 1024 * 1024, /* at most this much of a file in one call */
    FILE_COPY = 64 * 1024,   /* at most this much where a file must be copied */
    STATUS_ROOM = 64,        /* "HTTP/1.1 511 Network Authentication Required\r\n" fits */
    FRAMING_ROOM = 160,      /* length or coding, connection, date, empty line */
    CHUNK_LINE_ROOM = 16 + 2
};

static const struct span line_end = SPAN("\r\n");
static const struct span line_end_and_last_chunk = SPAN("\r\n0\r\n\r\n");
static const struct span last_chunk = SPAN("0\r\n\r\n");

void h1_writer_init(struct h1_writer *writer)
{
    struct buf lead = writer->lead;

    buf_clear(&lead);
    *writer = (struct h1_writer){.lead = lead};
}

void h1_writer_done(struct h1_writer *writer)
{
    buf_done(&writer->lead);
}

static char *put(char *out, struct span bytes)
{
    memcpy(out, bytes.data, bytes.size);
    return out + bytes.size;
}

static char *put_text(char *out, const char *text)
{
    return put(out, span_of(text));
}

static char *put_field(char *out, struct span name, struct span value)
{
    out = put(out, name);
    *out++ = ':';
    *out++ = ' ';
    if (value.size)
        out = put(out, value);
    return put(out, line_end);
}

static char *put_status_line(char *out, unsigned status)
{
    out = put_text(out, "HTTP/1.1 ");
    out += num_format(status, out);
    *out++ = ' '; /* stands there even without a phrase (RFC 9112 4) */
    out = put_text(out, http_status_phrase(status));
    return put(out, line_end);
}

static size_t fields_bytes(const struct fields *fields)
{
    size_t size = 0;

    fields_for_each (field, fields)
        size += field->name.size + field->value.size + 4;
    return size;
}

int h1_writer_interim(struct h1_writer *writer, unsigned status, const struct fields *fields)
{
    size_t room = STATUS_ROOM + (fields ? fields_bytes(fields) : 0) + line_end.size;
    char *start = buf_reserve(&writer->lead, room), *out = start;

    if (!start)
        return -ENOMEM;
    out = put_status_line(out, status);
    if (fields) {
        fields_for_each (field, fields)
            out = put_field(out, field->name, field->value);
    }
    out = put(out, line_end);
    buf_grow(&writer->lead, (size_t)(out - start));
    return 0;
}

/* Framing is the connection's own; hop-by-hop fields of an application end here (RFC 9110 7.6.1),
 * save those that announce the other protocol of a 101. */
static bool is_sent(const struct field *field, unsigned status)
{
    if (field->id == FIELD_ID_CONTENT_LENGTH)
        return false;
    if (field->id == FIELD_ID_CONTENT_TYPE)
        return !http_status_has_no_body(status);
    if (!(http_field_flags(field->id) & FIELD_HOP))
        return true;
    return status == 101 && field->id == FIELD_ID_UPGRADE;
}

static char *put_fields(char *out, const struct response *response)
{
    fields_for_each (field, &response->fields) {
        if (is_sent(field, response->status))
            out = put_field(out, field->name, field->value);
    }
    return out;
}

static char *put_length(char *out, int64_t length)
{
    out = put_text(out, "content-length: ");
    out += num_format((uint64_t)length, out);
    return put(out, line_end);
}

/* Without the optional blank behind the colon (RFC 9112 5): with it the smallest answers would be one
 * byte over the hundred that their head may take. */
static char *put_date(char *out)
{
    out = put_text(out, "date:");
    out = put(out, clock_http_now());
    return put(out, line_end);
}

/* HTTP/1.0 clients must be told that the connection stays, others that it ends (RFC 9112 9.3). */
static char *put_connection(char *out, const struct exchange *exchange, bool keep_alive)
{
    if (exchange->response.status == 101)
        return put_text(out, "connection: upgrade\r\n");
    if (!keep_alive)
        return put_text(out, "connection: close\r\n");
    if (exchange->request.minor == 0)
        return put_text(out, "connection: keep-alive\r\n");
    return out;
}

/* An answer that ended before its head was made has a known length after all. */
static int64_t known_length(const struct response *response)
{
    if (response->length < 0 && response->ended && !response->cut && !response->no_body)
        return (int64_t)response->written;
    return response->length;
}

/* A 101 has no body whose length could be told (RFC 9110 8.6). */
static struct h1_answer_framing raw_framing(const struct response *response)
{
    bool has_length = response->status != 101 && !response->raw_chunked;

    return (struct h1_answer_framing){.length = has_length ? response->length : -1,
                                      .chunked = response->status != 101 && response->raw_chunked};
}

static struct h1_answer_framing decide_framing(const struct exchange *exchange, bool keep_alive)
{
    static const struct span close_token = SPAN("close");
    const struct response *response = &exchange->response;
    bool close =
        response->close || fields_has_token(&response->fields, FIELD_ID_CONNECTION, close_token);
    const struct h1_answer answer = {
        .status = response->status,
        .minor = exchange->request.minor,
        .no_body = response->no_body,
        .is_head = exchange->request.method == METHOD_HEAD,
        .length = known_length(response),
        .keep_alive = keep_alive && !close,
    };

    return response->raw ? raw_framing(response) : h1_framing_answer(&answer);
}

int h1_writer_head(struct h1_writer *writer, const struct exchange *exchange, bool keep_alive)
{
    const struct response *response = &exchange->response;
    struct h1_answer_framing framing = decide_framing(exchange, keep_alive);
    size_t room = STATUS_ROOM + fields_bytes(&response->fields) + FRAMING_ROOM;
    char *start = buf_reserve(&writer->lead, room), *out = start;

    if (!start)
        return -ENOMEM;
    out = put_status_line(out, response->status);
    out = put_fields(out, response);
    if (framing.length >= 0)
        out = put_length(out, framing.length);
    if (framing.chunked)
        out = put_text(out, "transfer-encoding: chunked\r\n");
    out = put_connection(out, exchange, framing.keep_alive);
    if (!fields_find(&response->fields, FIELD_ID_DATE))
        out = put_date(out);
    out = put(out, line_end);
    buf_grow(&writer->lead, (size_t)(out - start));
    writer->has_head = true;
    writer->chunked = framing.chunked;
    writer->keep_alive = framing.keep_alive;
    return 0;
}

static int put_chunk_line(struct h1_writer *writer, uint64_t size)
{
    static const char digits[] = "0123456789abcdef";
    char line[CHUNK_LINE_ROOM], *start = line + sizeof(line);

    *--start = '\n';
    *--start = '\r';
    do {
        *--start = digits[size & 15];
        size >>= 4;
    } while (size);
    return buf_append(&writer->lead, span_make(start, (size_t)(line + sizeof(line) - start)));
}

/* Frames what the exchange holds now, when the former frame is gone. */
static int open_frame(struct h1_writer *writer, const struct exchange *exchange)
{
    const struct response *response = &exchange->response;
    bool whole = response->ended && !response->cut;

    if (!writer->has_head || writer->frame_left || writer->tail.size)
        return 0;
    if (!writer->chunked) {
        writer->frame_left = response->pending;
        return 0;
    }
    if (response->pending) {
        if (put_chunk_line(writer, response->pending))
            return -ENOMEM;
        writer->frame_left = response->pending;
        writer->tail = whole ? line_end_and_last_chunk : line_end;
        writer->has_last = whole;
    } else if (whole && !writer->has_last) {
        writer->tail = last_chunk;
        writer->has_last = true;
    }
    return 0;
}

static struct piece *first_piece(const struct exchange *exchange)
{
    const struct list *pieces = &exchange->response.pieces;

    return list_is_empty(pieces) ? NULL : CONTAINER_OF(pieces->next, struct piece, link);
}

static int add_part(struct iovec *parts, int count, const char *data, size_t size)
{
    /* iovec has no const; a write only reads. */
    parts[count] = (struct iovec){.iov_base = (char *)(uintptr_t)data, .iov_len = size};
    return count + 1;
}

/* Stops before a part of a file, which follows at once. */
static int gather(const struct h1_writer *writer, const struct exchange *exchange,
                  struct iovec *parts, bool *ret_file_follows)
{
    struct span lead = buf_span(&writer->lead);
    uint64_t left = writer->frame_left;
    int count = 0;

    if (lead.size)
        count = add_part(parts, count, lead.data, lead.size);
    list_for_each (link, &exchange->response.pieces) {
        const struct piece *piece = CONTAINER_OF(link, struct piece, link);
        uint64_t size = piece->size < left ? piece->size : left;

        *ret_file_follows = left && piece->kind == PIECE_FILE;
        if (!left || *ret_file_follows || count == PARTS - 1)
            break;
        count = add_part(parts, count, piece->data, size);
        left -= size;
    }
    if (!left && writer->tail.size)
        count = add_part(parts, count, writer->tail.data, writer->tail.size);
    return count;
}

static void take_sent(struct h1_writer *writer, struct exchange *exchange, uint64_t count)
{
    uint64_t lead = count < writer->lead.size ? count : writer->lead.size;
    uint64_t payload;

    exchange->sent_bytes += count;
    if (lead)
        buf_consume(&writer->lead, lead);
    count -= lead;
    payload = count < writer->frame_left ? count : writer->frame_left;
    if (payload)
        exchange_consume(exchange, payload);
    writer->frame_left -= payload;
    writer->tail = span_skip(writer->tail, count - payload);
}

static ssize_t send_file(struct h1_writer *writer, struct exchange *exchange, struct stream *stream,
                         const struct piece *piece)
{
    uint64_t size = piece->size < writer->frame_left ? piece->size : writer->frame_left;
    ssize_t sent = stream_send_file(stream, piece->fd, (off_t)piece->offset,
                                    size < FILE_PART ? size : FILE_PART);

    if (sent == 0)
        return -ENODATA;
    if (sent > 0)
        take_sent(writer, exchange, (uint64_t)sent);
    return sent;
}

static ssize_t send_parts(struct h1_writer *writer, struct exchange *exchange,
                          struct stream *stream)
{
    struct iovec parts[PARTS];
    bool file_follows = false;
    int count = gather(writer, exchange, parts, &file_follows);
    ssize_t sent;

    if (!count)
        return 0;
    /* The head of a file leaves in one packet with its first bytes. */
    sent = stream_write(stream, parts, count, file_follows);
    if (sent > 0)
        take_sent(writer, exchange, (uint64_t)sent);
    return sent;
}

/* Whether the next payload is a part of a file. */
static struct piece *next_file(const struct h1_writer *writer, const struct exchange *exchange)
{
    struct piece *piece = first_piece(exchange);

    return writer->frame_left && piece && piece->kind == PIECE_FILE ? piece : NULL;
}

ssize_t h1_writer_send(struct h1_writer *writer, struct exchange *exchange, struct stream *stream)
{
    const struct piece *file;
    ssize_t result;

    if (open_frame(writer, exchange))
        return -ENOMEM;
    file = next_file(writer, exchange);
    /* Only what is in memory already: waiting for a disk here would stop every connection. */
    if (file && file->size <= FILE_INLINE && exchange_load(exchange, FILE_INLINE, false) > 0)
        file = NULL;
    if (!file || writer->lead.size)
        return send_parts(writer, exchange, stream);
    result = send_file(writer, exchange, stream, file);
    if (result != -EOPNOTSUPP)
        return result;
    result = exchange_load(exchange, FILE_COPY, true);
    if (result <= 0)
        return result ? result : -ENODATA;
    return send_parts(writer, exchange, stream);
}

bool h1_writer_is_finished(const struct h1_writer *writer, const struct exchange *exchange)
{
    const struct response *response = &exchange->response;

    if (!response->ended || response->pending || writer->lead.size || writer->tail.size)
        return false;
    if (!writer->has_head) /* nothing is answered */
        return true;
    return !writer->chunked || writer->has_last || response->cut;
}

bool h1_writer_has_output(const struct h1_writer *writer, const struct exchange *exchange)
{
    const struct response *response = &exchange->response;

    if (writer->lead.size || writer->tail.size)
        return true;
    if (!writer->has_head)
        return false;
    return response->pending ||
           (writer->chunked && response->ended && !response->cut && !writer->has_last);
}

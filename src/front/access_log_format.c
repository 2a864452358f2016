/* SPDX-License-Identifier: MIT */
/*
 * The two forms of a line: combined, as every tool reads it, and JSON with the times of each stage.
 */
#include "base/clock.h"
#include "front/access_log.h"

unsigned access_log_status(const struct exchange *exchange)
{
    unsigned status = exchange->response.status;

    return status ? status : http_refusal_status(exchange->refusal);
}

/* Bytes of the answer's body; HEAD and the like have none. */
static uint64_t body_bytes(const struct exchange *exchange)
{
    const struct response *response = &exchange->response;
    uint64_t written = response->no_body ? 0 : response->written;

    return written > response->pending ? written - response->pending : 0;
}

static int put_hex(struct buf *out, const char *prefix, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    int error = buf_append(out, span_of(prefix));

    error |= buf_append_byte(out, digits[byte >> 4]);
    return error | buf_append_byte(out, digits[byte & 15]);
}

/* Quotes, backslashes and all that is no printable ASCII, so that a line can be cut at its quotes. */
static int put_escaped(struct buf *out, struct span text, const char *prefix)
{
    size_t plain = 0;
    int error = 0;

    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\')
            continue;
        error |= buf_append(out, span_make(text.data + plain, i - plain));
        error |= put_hex(out, prefix, byte);
        plain = i + 1;
    }
    return error | buf_append(out, span_make(text.data + plain, text.size - plain));
}

static int put_quoted(struct buf *out, struct span text)
{
    int error = buf_append_byte(out, '"');

    error |= text.size ? put_escaped(out, text, "\\x") : buf_append_byte(out, '-');
    return error | buf_append_byte(out, '"');
}

static const char *protocol_of(unsigned minor)
{
    return minor == 0 ? "HTTP/1.0" : minor == 2 ? "HTTP/2" : "HTTP/1.1";
}

static struct span or_dash(struct span text)
{
    return text.size ? text : span_of("-");
}

static int put_request_line(struct buf *out, const struct request *request)
{
    int error;

    if (!request->method_text.size)
        return buf_append(out, span_of("\"-\""));
    error = buf_append_byte(out, '"');
    error |= put_escaped(out, request->method_text, "\\x");
    error |= buf_append_byte(out, ' ');
    error |= put_escaped(out, request->target, "\\x");
    return error | buf_printf(out, " %s\"", protocol_of(request->minor));
}

int access_log_format_combined(struct buf *out, const struct exchange *exchange, uint64_t wall_ms)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const struct fields *fields = &exchange->request.fields;
    struct span address = or_dash(exchange->client.address);
    struct tm utc;
    int error;

    clock_utc((time_t)(wall_ms / 1000), &utc);
    error = buf_printf(out, "%.*s - - [%02d/%.3s/%04d:%02d:%02d:%02d +0000] ", SPAN_ARG(address),
                       utc.tm_mday, months + 3 * utc.tm_mon, utc.tm_year + 1900, utc.tm_hour,
                       utc.tm_min, utc.tm_sec);
    error |= put_request_line(out, &exchange->request);
    error |= buf_printf(out, " %u %llu ", access_log_status(exchange),
                        (unsigned long long)body_bytes(exchange));
    error |= put_quoted(out, fields_value(fields, FIELD_ID_REFERER));
    error |= buf_append_byte(out, ' ');
    error |= put_quoted(out, fields_value(fields, FIELD_ID_USER_AGENT));
    return error | buf_append_byte(out, '\n');
}

static int put_member(struct buf *out, const char *name, struct span value)
{
    int error;

    if (!value.size)
        return 0;
    error = buf_printf(out, ",\"%s\":\"", name);
    error |= put_escaped(out, value, "\\u00");
    return error | buf_append_byte(out, '"');
}

/* A stage that was not reached, or was skipped, has no time. */
static int put_stage(struct buf *out, const char *name, uint64_t from_us, uint64_t to_us)
{
    uint64_t us;

    if (!from_us || !to_us || to_us < from_us)
        return 0;
    us = to_us - from_us;
    return buf_printf(out, ",\"%s_ms\":%llu.%03u", name, (unsigned long long)(us / 1000),
                      (unsigned)(us % 1000));
}

static int put_times(struct buf *out, const struct times *times)
{
    uint64_t begun_us = times->taken_us ? times->taken_us : times->body_us;
    int error = put_stage(out, "head", times->start_us, times->head_us);

    error |= put_stage(out, "body", times->head_us, times->body_us);
    error |= put_stage(out, "queue", times->body_us, times->taken_us);
    error |= put_stage(out, "app", begun_us, times->answer_us);
    error |= put_stage(out, "write", times->answer_us, times->end_us);
    return error | put_stage(out, "total", times->start_us, times->end_us);
}

static int put_refusal(struct buf *out, enum refusal refusal)
{
    return refusal == REFUSAL_NONE
               ? 0
               : put_member(out, "refusal", span_of(http_refusal_word(refusal)));
}

int access_log_format_json(struct buf *out, const struct exchange *exchange, const char *pool,
                           uint64_t wall_ms)
{
    const struct request *request = &exchange->request;
    struct tm utc;
    int error;

    clock_utc((time_t)(wall_ms / 1000), &utc);
    error = buf_printf(out, "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03uZ\",\"status\":%u",
                       utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                       utc.tm_sec, (unsigned)(wall_ms % 1000), access_log_status(exchange));
    error |= put_member(out, "id", exchange->id);
    error |= put_member(out, "client", exchange->client.address);
    error |= put_member(out, "method", request->method_text);
    error |= put_member(out, "host", request->host);
    error |= put_member(out, "path", request->path);
    error |= put_member(out, "query", request->query);
    /* One that could not be read has no path, but what was sent is worth knowing. */
    if (!request->path.size)
        error |= put_member(out, "target", request->target);
    error |= put_member(out, "protocol",
                        span_of(request->method_text.size ? protocol_of(request->minor) : NULL));
    error |= put_member(out, "pool", span_of(pool));
    error |= buf_printf(out, ",\"request_bytes\":%llu,\"bytes\":%llu",
                        (unsigned long long)request->body.size,
                        (unsigned long long)body_bytes(exchange));
    error |= put_times(out, &exchange->times);
    error |= put_member(out, "referer", fields_value(&request->fields, FIELD_ID_REFERER));
    error |= put_member(out, "agent", fields_value(&request->fields, FIELD_ID_USER_AGENT));
    error |= put_refusal(out, exchange->refusal);
    return error | buf_append(out, span_of("}\n"));
}

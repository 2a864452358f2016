/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include "base/num.h"

/* From the fields of an answer to the HEAD record's payload. What may not go out is left out here and
 * reported once, by name only; the front checks again. */

/* What a byte of a value is; the classes of all its bytes are or-ed. */
enum { VALUE_TEXT = 0, VALUE_NEWLINE = 1, VALUE_ILLEGAL = 2 };

/* Fields that belong to the connection and are never an application's (RFC 9110 7.6.1), and those that
 * only speak to us. */
static const struct span dropped_names[] = {
    SPAN("connection"),        SPAN("keep-alive"),
    SPAN("proxy-connection"),  SPAN("status"),
    SPAN("trailer"),           SPAN("te"),
    SPAN("transfer-encoding"), SPAN("upgrade"),
    SPAN("x-sendfile"),        SPAN("x-lighttpd-send-file"),
};

/* Lower-case of the bytes that a field name may have (tchar, RFC 9110 5.6.2), 0 for all others. Filled
 * once at load. */
static char name_bytes[256];
static uint8_t value_bytes[256];
static ID id_call, id_each, id_illegal, id_odd, id_to_s;

void head_begin(struct seat *seat, struct head *head, uint32_t status)
{
    struct page_head room = {0};

    buf_clear(&head->bytes);
    head->status = status;
    head->field_count = 0;
    head->flags = 0;
    if ((seat->request_flags & SLOT_FLAG_HEAD) || status == 204 || status == 304)
        head->flags = HEAD_BODYLESS;
    if (status == 101)
        head->flags = HEAD_UPGRADE;
    if (buf_append(&head->bytes, span_make((const char *)&room, sizeof(room))) < 0)
        rb_memerror();
}

/* The status line's number: anything with to_i, as Rack 2 allows. */
uint32_t head_status(VALUE status)
{
    long number;

    if (RB_TYPE_P(status, T_STRING))
        status = rb_str_to_inum(status, 10, 0);
    else if (!FIXNUM_P(status))
        status = rb_check_funcall(status, rb_intern("to_i"), 0, NULL);
    if (!FIXNUM_P(status))
        return 0;
    number = FIX2LONG(status);
    return number == 101 || (number >= 200 && number <= 599) ? (uint32_t)number : 0;
}

/* Each field: u16 name size, u16 0, u32 value size, name, value. `name` is lower case. */
static void append_field(struct head *head, struct span name, struct span value)
{
    uint16_t name_size = (uint16_t)name.size, zero = 0;
    uint32_t value_size = (uint32_t)value.size;
    char *out = buf_reserve(&head->bytes, 8 + name.size + value.size);

    if (!out)
        rb_memerror();
    memcpy(out, &name_size, 2);
    memcpy(out + 2, &zero, 2);
    memcpy(out + 4, &value_size, 4);
    memcpy(out + 8, name.data, name.size);
    memcpy(out + 8 + name.size, value.data, value.size);
    buf_grow(&head->bytes, 8 + name.size + value.size);
    head->field_count++;
}

static void report(struct seat *seat, ID event, VALUE name)
{
    if (!NIL_P(seat->reporter))
        rb_funcall(seat->reporter, event, 1, name);
}

/* Lower-cases the name into out; false when it is no field name. */
static bool lower_name(struct span name, char *out)
{
    for (size_t i = 0; i < name.size; i++)
        if (!(out[i] = name_bytes[(uint8_t)name.data[i]]))
            return false;
    return name.size > 0;
}

static bool is_one_of(struct span name, const struct span *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (span_equal(name, list[i]))
            return true;
    return false;
}

static bool is_equal_folded(struct span a, struct span lower)
{
    if (a.size != lower.size)
        return false;
    for (size_t i = 0; i < a.size; i++)
        if (name_bytes[(uint8_t)a.data[i]] != lower.data[i])
            return false;
    return true;
}

/* Whether a comma-separated list has that (lower-case) word. */
static bool has_word(struct span list, struct span word)
{
    while (list.data)
        if (is_equal_folded(span_trim(span_split(&list, ',')), word))
            return true;
    return false;
}

/* A length that is no number is left out as illegal; two different ones are an error of the application,
 * since nobody can tell which is right (RFC 9110 8.6). */
static bool take_length(struct seat *seat, struct head *head, struct span value)
{
    uint64_t length;

    if (!num_decimal(value, &length)) {
        report(seat, id_illegal, rb_str_new_cstr("content-length"));
        return false;
    }
    if (head->flags & HEAD_LENGTH) {
        if (length != head->length)
            rb_raise(rb_eArgError, "an answer has two different lengths");
        return false;
    }
    head->flags |= HEAD_LENGTH;
    head->length = length;
    /* RFC 9110 8.6: none in 204; that of 304 is the application's guess. */
    return head->status != 204 && head->status != 304;
}

/* Looks at the fields that mean something to the server; false when the field is not passed on. */
static bool examine(struct seat *seat, struct head *head, struct span name, struct span value)
{
    if (span_is(name, "content-length"))
        return take_length(seat, head, value);
    if (span_is(name, "content-type")) {
        if (span_starts_with(value, (struct span)SPAN("text/event-stream")))
            head->flags |= HEAD_EVENTS;
        return head->status != 204 && head->status != 304;
    }
    if (!is_one_of(name, dropped_names, ARRAY_LEN(dropped_names)))
        return true;
    if (span_starts_with(name, (struct span)SPAN("x-")))
        head->flags |= HEAD_FILE;
    if (span_is(name, "connection") && has_word(value, (struct span)SPAN("close")))
        head->flags |= HEAD_CLOSE;
    if (span_is(name, "upgrade") &&
        (head->flags & (HEAD_UPGRADE | HEAD_PROTOCOL)) == HEAD_UPGRADE) {
        head->flags |= HEAD_PROTOCOL;
        return true;
    }
    if (span_is(name, "transfer-encoding") && has_word(value, (struct span)SPAN("chunked")))
        head->flags |= HEAD_CHUNKED;
    return false;
}

static int value_class(struct span value)
{
    uint8_t seen = 0;

    for (size_t i = 0; i < value.size; i++)
        seen |= value_bytes[(uint8_t)value.data[i]];
    return seen;
}

/* One String of a value: a line each. Nothing in it may end the line by other means. */
static void add_text(struct seat *seat, struct head *head, struct span name, VALUE text)
{
    struct span value = span_make(RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    int class = value_class(value);

    if (class & VALUE_ILLEGAL) {
        report(seat, id_illegal, rb_str_new(name.data, (long)name.size));
        return;
    }
    if (!(class & VALUE_NEWLINE)) {
        value = span_trim(value);
        if (examine(seat, head, name, value))
            append_field(head, name, value);
        return;
    }
    while (value.data) {
        struct span line = span_trim(span_split(&value, '\n'));

        if (line.size > 0 && examine(seat, head, name, line))
            append_field(head, name, line);
    }
}

static void add_one(struct seat *seat, struct head *head, struct span name, VALUE value)
{
    VALUE text = value;

    if (NIL_P(value))
        return;
    if (!RB_TYPE_P(value, T_STRING)) {
        report(seat, id_odd, rb_str_new(name.data, (long)name.size));
        text = rb_check_funcall(value, id_to_s, 0, NULL);
    }
    if (RB_TYPE_P(text, T_STRING))
        add_text(seat, head, name, text);
    RB_GC_GUARD(text);
}

static void add_value(struct seat *seat, struct head *head, struct span name, VALUE value)
{
    if (!RB_TYPE_P(value, T_ARRAY)) {
        add_one(seat, head, name, value);
        return;
    }
    for (long i = 0; i < RARRAY_LEN(value); i++)
        add_one(seat, head, name, rb_ary_entry(value, i));
}

/* rack.protocol: the answer changes to that protocol, whatever status stands for success (SPEC). */
static void add_protocol(struct seat *seat, struct head *head, VALUE name, VALUE value)
{
    struct span text;

    if (!RB_TYPE_P(value, T_STRING)) {
        report(seat, id_illegal, name);
        return;
    }
    text = span_trim(span_make(RSTRING_PTR(value), (size_t)RSTRING_LEN(value)));
    if (!text.size || value_class(text) != VALUE_TEXT) {
        report(seat, id_illegal, name);
        return;
    }
    if (!(head->flags & HEAD_PROTOCOL))
        append_field(head, (struct span)SPAN("upgrade"), text);
    head->flags |= HEAD_UPGRADE | HEAD_PROTOCOL;
    head->status = 101;
}

/* Keys of Rack's own: none of them leaves as it is. */
static void add_rack(struct seat *seat, struct head *head, VALUE name, VALUE value)
{
    struct span key = span_make(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));

    if (span_is(key, "rack.hijack") && rb_respond_to(value, id_call))
        head->flags |= HEAD_HIJACK;
    else if (span_is(key, "rack.protocol"))
        add_protocol(seat, head, name, value);
    else
        report(seat, id_illegal, name);
}

void head_add(struct seat *seat, struct head *head, VALUE name, VALUE value)
{
    char lower[256];
    struct span key;

    if (RB_TYPE_P(name, T_SYMBOL))
        name = rb_sym2str(name);
    if (!RB_TYPE_P(name, T_STRING)) {
        report(seat, id_illegal, rb_inspect(name));
        return;
    }
    key = span_make(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    if (span_starts_with(key, (struct span)SPAN("rack."))) {
        add_rack(seat, head, name, value);
        return;
    }
    if (key.size > sizeof(lower) || !lower_name(key, lower)) {
        report(seat, id_illegal, name);
        return;
    }
    add_value(seat, head, span_make(lower, key.size), value);
    RB_GC_GUARD(name);
}

void head_add_length(struct head *head, uint64_t bytes)
{
    char digits[24];
    int size = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)bytes);

    append_field(head, (struct span)SPAN("content-length"), span_make(digits, (size_t)size));
}

/* The seat and its head while a Hash is walked. */
struct walk {
    struct seat *seat;
    struct head *head;
};

static int walk_pair(VALUE name, VALUE value, VALUE memory)
{
    struct walk *walk = (struct walk *)memory;

    head_add(walk->seat, walk->head, name, value);
    return ST_CONTINUE;
}

static VALUE walk_each(RB_BLOCK_CALL_FUNC_ARGLIST(pair, memory))
{
    struct walk *walk = (struct walk *)memory;

    if (argc >= 2)
        head_add(walk->seat, walk->head, argv[0], argv[1]);
    else if (RB_TYPE_P(pair, T_ARRAY) && RARRAY_LEN(pair) == 2)
        head_add(walk->seat, walk->head, rb_ary_entry(pair, 0), rb_ary_entry(pair, 1));
    return Qnil;
}

void head_add_all(struct seat *seat, struct head *head, VALUE headers)
{
    struct walk walk = {seat, head};

    if (RB_TYPE_P(headers, T_HASH))
        rb_hash_foreach(headers, walk_pair, (VALUE)&walk);
    else if (rb_respond_to(headers, id_each))
        rb_block_call(headers, id_each, 0, NULL, walk_each, (VALUE)&walk);
    else
        rb_raise(rb_eTypeError, "headers must be a Hash, not %" PRIsVALUE, rb_obj_class(headers));
    if (head->field_count > UINT16_MAX)
        rb_raise(rb_eArgError, "more than %d header fields", UINT16_MAX);
}

void init_head(void)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";

    for (int byte = '0'; byte <= '9'; byte++)
        name_bytes[byte] = (char)byte;
    for (int byte = 'a'; byte <= 'z'; byte++)
        name_bytes[byte] = name_bytes[byte - 32] = (char)byte;
    for (size_t i = 0; i < sizeof(marks) - 1; i++)
        name_bytes[(uint8_t)marks[i]] = marks[i];
    for (int byte = 0; byte < 256; byte++)
        value_bytes[byte] = (byte < 32 && byte != '\t') || byte == 127 ? VALUE_ILLEGAL : VALUE_TEXT;
    value_bytes['\n'] = VALUE_NEWLINE;
    id_call = rb_intern("call");
    id_each = rb_intern("each");
    id_illegal = rb_intern("illegal_field");
    id_odd = rb_intern("odd_value");
    id_to_s = rb_intern("to_s");
}

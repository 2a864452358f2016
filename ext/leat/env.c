/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include "base/num.h"

#include <ruby/encoding.h>

/* A request's env is a copy of the seat's template plus what only this request has. The template holds
 * every key but the fields, so that the copy never grows key by key; values that seldom change (method,
 * protocol, address) are kept in it as frozen strings and replaced when they do. */

enum {
    ENV_ROOM = 64,       /* keys that a copy of the template has room for */
    NAMES = 1024,        /* cells of the name table, a power of two */
    NAMES_LEARNED = 256, /* names beyond the known ones that get a cell: clients choose them */
    NAME_MAX_BYTES = 64  /* longer names are never learned */
};

enum field_kind {
    FIELD_PLAIN,
    FIELD_COOKIE,
    FIELD_CONTENT,
    FIELD_LENGTH,
    FIELD_CODING,
    FIELD_VERSION,
    FIELD_DROP
};

struct name {
    VALUE key;      /* frozen, never collected; 0 = free cell */
    uint64_t stamp; /* number of the env that had this field last */
    enum field_kind kind;
    uint32_t size;
    char bytes[NAME_MAX_BYTES];
};

enum fresh {
#define FRESH(constant, key) FRESH_##constant,
#include "env_key.def"
#undef FRESH
    FRESH_COUNT
};

/* Shared by all seats: they are only touched with the GVL held, and nothing between two uses of a cell
 * lets another thread run. */
static struct name names[NAMES];
static unsigned learned;
static uint64_t stamp;
static VALUE fresh_keys[FRESH_COUNT];
static VALUE cached_keys[ENV_CACHED];
static VALUE word_http, word_https, word_on;

static VALUE frozen_key(const char *bytes, size_t size)
{
    VALUE key = rb_enc_interned_str(bytes, (long)size, rb_utf8_encoding());

    rb_gc_register_mark_object(key);
    return key;
}

static bool is_ascii(struct span text)
{
    const char *at = text.data, *end = text.data + text.size;
    uint64_t word, seen = 0;

    for (; end - at >= 8; at += 8) {
        memcpy(&word, at, 8);
        seen |= word;
    }
    for (; at < end; at++)
        seen |= (uint8_t)*at;
    return (seen & 0x8080808080808080ull) == 0;
}

static VALUE binary_string(struct span text)
{
    return rb_str_new(text.data, (long)text.size);
}

static VALUE ascii_string(struct span text)
{
    VALUE string = rb_utf8_str_new(text.data, (long)text.size);

    ENC_CODERANGE_SET(string, ENC_CODERANGE_7BIT);
    return string;
}

/* Env strings are binary unless they are pure ASCII. */
static VALUE string(struct span text)
{
    return is_ascii(text) ? ascii_string(text) : binary_string(text);
}

/* ---- field names */

static uint32_t name_hash(struct span name)
{
    uint64_t hash = name.size * 0x9e3779b97f4a7c15ull, word;
    size_t i = 0;

    for (; i + 8 <= name.size; i += 8) {
        memcpy(&word, name.data + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    for (; i < name.size; i++)
        hash = (hash ^ (uint8_t)name.data[i]) * 0x100000001b3ull;
    return (uint32_t)(hash ^ (hash >> 32));
}

/* The cell of that name, or the free one where it belongs. At most half of the cells are ever used. */
static struct name *name_find(struct span name)
{
    for (uint32_t at = name_hash(name);; at++) {
        struct name *cell = &names[at & (NAMES - 1)];

        if (!cell->key || (cell->size == name.size && !memcmp(cell->bytes, name.data, name.size)))
            return cell;
    }
}

static size_t write_key(struct span name, bool is_content, char *out)
{
    size_t size = is_content ? 0 : 5;

    memcpy(out, "HTTP_", size);
    for (size_t i = 0; i < name.size; i++) {
        char byte = name.data[i];

        out[size++] = byte == '-' ? '_' : byte >= 'a' && byte <= 'z' ? (char)(byte - 32) : byte;
    }
    return size;
}

static void name_learn(struct name *cell, struct span name, enum field_kind kind)
{
    char key[NAME_MAX_BYTES + 5];
    bool is_content = kind == FIELD_CONTENT || kind == FIELD_LENGTH;

    cell->size = (uint32_t)name.size;
    memcpy(cell->bytes, name.data, name.size);
    cell->kind = kind;
    cell->key = frozen_key(key, write_key(name, is_content, key));
}

/* The key of a name that is not in the table and does not fit into it. */
static VALUE name_key(struct span name)
{
    VALUE key = rb_utf8_str_new(NULL, (long)name.size + 5);

    write_key(name, false, RSTRING_PTR(key));
    return rb_obj_freeze(key);
}

/* ---- fields */

static VALUE joined(VALUE former, struct span value, bool is_cookie)
{
    VALUE both = rb_str_plus(former, rb_str_new_cstr(is_cookie ? "; " : ", "));

    rb_str_cat(both, value.data, (long)value.size);
    return rb_enc_associate_index(both,
                                  is_ascii(span_make(RSTRING_PTR(both), (size_t)RSTRING_LEN(both)))
                                      ? rb_utf8_encindex()
                                      : rb_ascii8bit_encindex());
}

static void put_unknown(VALUE env, struct span name, struct span value)
{
    VALUE key = name_key(name);
    VALUE former = rb_hash_lookup2(env, key, Qnil);

    rb_hash_aset(env, key, NIL_P(former) ? string(value) : joined(former, value, false));
}

static bool is_dropped(const struct seat *seat, const struct slot_request *request,
                       enum field_kind kind)
{
    if (kind == FIELD_CODING) /* the body has been decoded: RFC 9112 6.1 */
        return request->body_kind != SLOT_BODY_NONE;
    return kind == FIELD_DROP || (kind == FIELD_VERSION && seat->is_old_rack);
}

static void put_field(struct seat *seat, VALUE env, const struct slot_request *request,
                      struct span name, struct span value)
{
    struct name *cell;

    if (name.size > NAME_MAX_BYTES || name.size == 0) {
        put_unknown(env, name, value);
        return;
    }
    cell = name_find(name);
    if (!cell->key) {
        if (learned == NAMES_LEARNED) {
            put_unknown(env, name, value);
            return;
        }
        learned++;
        name_learn(cell, name, FIELD_PLAIN);
    }
    if (is_dropped(seat, request, cell->kind))
        return;
    if (cell->stamp == stamp && cell->kind != FIELD_CONTENT && cell->kind != FIELD_LENGTH)
        rb_hash_aset(env, cell->key,
                     joined(rb_hash_aref(env, cell->key), value, cell->kind == FIELD_COOKIE));
    else
        rb_hash_aset(env, cell->key, string(value));
    cell->stamp = stamp;
}

static void put_fields(struct seat *seat, VALUE env, const struct slot_request *request)
{
    const struct board *board = &seat->place->board;
    uint32_t slot = (uint32_t)seat->slot, count = request->field_count;
    struct slot_span part = {request->field_offset, (uint32_t)(count * sizeof(struct slot_field))};
    struct span table = slot_text(board, slot, part);
    const struct slot_field *fields = (const struct slot_field *)table.data;

    if (table.size != count * sizeof(struct slot_field))
        return;
    for (uint32_t i = 0; i < count; i++)
        put_field(seat, env, request, slot_text(board, slot, fields[i].name),
                  slot_text(board, slot, fields[i].value));
}

/* ---- the rest */

/* Brings the template up to date with one seldom changing value. */
static void refresh(struct seat *seat, enum env_cached which, struct slot_span part)
{
    struct span text = slot_text(&seat->place->board, (uint32_t)seat->slot, part);
    VALUE now = seat->cached[which];

    if (!NIL_P(now) && span_equal(text, span_make(RSTRING_PTR(now), (size_t)RSTRING_LEN(now))))
        return;
    now = rb_obj_freeze(string(text));
    rb_hash_aset(seat->template, cached_keys[which], now);
    if (which == ENV_PROTOCOL && seat->is_old_rack)
        rb_hash_aset(seat->template, fresh_keys[FRESH_HTTP_VERSION], now);
    seat->cached[which] = now;
}

static void refresh_scheme(struct seat *seat, bool is_https)
{
    if (seat->is_https == is_https)
        return;
    rb_hash_aset(seat->template, fresh_keys[FRESH_URL_SCHEME], is_https ? word_https : word_http);
    if (is_https)
        rb_hash_aset(seat->template, fresh_keys[FRESH_HTTPS], word_on);
    else
        rb_hash_delete(seat->template, fresh_keys[FRESH_HTTPS]);
    seat->is_https = is_https;
}

/* PATH_INFO, QUERY_STRING, REQUEST_URI and REQUEST_PATH have one encoding, also when some are empty. */
static void put_target(struct seat *seat, VALUE env, const struct slot_request *request)
{
    const struct board *board = &seat->place->board;
    uint32_t slot = (uint32_t)seat->slot;
    struct span path = slot_text(board, slot, request->path);
    struct span query = slot_text(board, slot, request->query);
    struct span target = slot_text(board, slot, request->target);
    VALUE(*make)
    (struct span) =
        is_ascii(path) && is_ascii(query) && is_ascii(target) ? ascii_string : binary_string;
    VALUE path_info = make(path), request_path = path_info;

    if (request->script_name.size > 0)
        request_path = rb_str_plus(seat->cached[ENV_SCRIPT_NAME], path_info);
    rb_hash_aset(env, fresh_keys[FRESH_PATH_INFO], path_info);
    rb_hash_aset(env, fresh_keys[FRESH_REQUEST_PATH], request_path);
    rb_hash_aset(env, fresh_keys[FRESH_QUERY_STRING], make(query));
    rb_hash_aset(env, fresh_keys[FRESH_REQUEST_URI], make(target));
}

static void put_id_and_start(struct seat *seat, VALUE env, const struct slot_request *request)
{
    char start[24] = "t=";
    size_t size = 2 + num_format(request->wall_ms, start + 2);

    seat->id = string(slot_text(&seat->place->board, (uint32_t)seat->slot, request->request_id));
    rb_hash_aset(env, fresh_keys[FRESH_REQUEST_ID], seat->id);
    rb_hash_aset(env, fresh_keys[FRESH_REQUEST_START], ascii_string(span_make(start, size)));
}

static void put_body(struct seat *seat, VALUE env, const struct slot_request *request)
{
    if (request->body_kind == SLOT_BODY_NONE)
        return;
    seat->input = input_new(seat);
    rb_hash_aset(env, fresh_keys[FRESH_INPUT], seat->input);
    if (NIL_P(rb_hash_lookup2(env, fresh_keys[FRESH_CONTENT_LENGTH], Qnil))) {
        char digits[24];

        rb_hash_aset(env, fresh_keys[FRESH_CONTENT_LENGTH],
                     ascii_string(span_make(digits, num_format(request->body_bytes, digits))));
    }
}

/* rack.protocol: what the client would like to change to, in its order. */
static void put_protocols(VALUE env, const struct slot_request *request)
{
    VALUE value, list;
    struct span rest;

    if (!(request->flags & SLOT_FLAG_UPGRADE))
        return;
    value = rb_hash_lookup2(env, fresh_keys[FRESH_UPGRADE], Qnil);
    if (NIL_P(value))
        return;
    list = rb_ary_new();
    rest = span_make(RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
    while (rest.data) {
        struct span word = span_trim(span_split(&rest, ','));

        if (word.size > 0)
            rb_ary_push(list, string(word));
    }
    rb_hash_aset(env, fresh_keys[FRESH_PROTOCOLS], list);
    RB_GC_GUARD(value);
}

VALUE env_build(struct seat *seat)
{
    const struct slot_request *request = slot_request(&seat->place->board, (uint32_t)seat->slot);
    VALUE env;

#define CACHED(constant, key, member) refresh(seat, ENV_##constant, request->member);
#include "env_key.def"
#undef CACHED
    refresh_scheme(seat, request->flags & SLOT_FLAG_HTTPS);
    stamp++;
    env = rb_hash_dup(seat->template);
    put_target(seat, env, request);
    put_fields(seat, env, request);
    put_protocols(env, request);
    put_id_and_start(seat, env, request);
    put_body(seat, env, request);
    rb_hash_aset(env, fresh_keys[FRESH_FINISHED], rb_ary_new());
    rb_hash_aset(env, fresh_keys[FRESH_AFTER_REPLY], rb_ary_new());
    return env;
}

static int copy_pair(VALUE key, VALUE value, VALUE template)
{
    rb_hash_aset(template, key, value);
    return ST_CONTINUE;
}

/* An empty Hash whose copies have room for an ordinary request: a cleared table keeps its size. */
static VALUE roomy_hash(void)
{
    VALUE hash = rb_hash_new();

    for (int i = 0; i < ENV_ROOM; i++)
        rb_hash_aset(hash, INT2FIX(i), Qnil);
    return rb_hash_clear(hash);
}

void env_init_template(struct seat *seat, VALUE fixed)
{
    Check_Type(fixed, T_HASH);
    seat->template = roomy_hash();
    rb_hash_foreach(fixed, copy_pair, seat->template);
    rb_hash_aset(seat->template, fresh_keys[FRESH_URL_SCHEME], word_http);
    rb_hash_aset(seat->template, fresh_keys[FRESH_INPUT], input_empty());
}

void init_env(void)
{
#define FRESH(constant, key) fresh_keys[FRESH_##constant] = frozen_key(key, sizeof(key) - 1);
#include "env_key.def"
#undef FRESH
#define CACHED(constant, key, member) \
    cached_keys[ENV_##constant] = frozen_key(key, sizeof(key) - 1);
#include "env_key.def"
#undef CACHED
#define FIELD(name, kind) \
    name_learn(name_find((struct span)SPAN(name)), (struct span)SPAN(name), FIELD_##kind);
#include "env_key.def"
#undef FIELD
    word_http = frozen_key("http", 4);
    word_https = frozen_key("https", 5);
    word_on = frozen_key("on", 2);
}

/* SPDX-License-Identifier: MIT */
#include "config/type.h"

#include "base/ascii.h"
#include "base/buf.h"
#include "base/num.h"
#include "config/keep.h"
#include "config/listener.h"

#include <arpa/inet.h>

/* Reads a text into a member. NULL when it did, `unexpected` when the text is not of the type, else
 * the special reason. */
typedef const char *reader(const struct type_context *context, const struct directive *directive,
                           struct span text, void *ret_member);
typedef const char *writer(struct arena *arena, const void *member);

static const char unexpected[] = "unexpected";

static bool is_one_of(struct span text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ascii_equal_fold(text, span_of(words[i])))
            return true;
    return false;
}

bool type_is_off(struct span text)
{
    static const char *const words[] = {"off", "no", "false"};

    return is_one_of(text, words, ARRAY_LEN(words));
}

static bool is_on(struct span text)
{
    static const char *const words[] = {"on", "yes", "true"};

    return is_one_of(text, words, ARRAY_LEN(words));
}

const char *type_path(const struct type_context *context, struct span text)
{
    struct buf path = {0};
    const char *kept;

    if (!span_starts_with(text, span_of("/")))
        CHECK(buf_append(&path, span_of(context->folder)) == 0);
    while (text.data) {
        struct span part = span_split(&text, '/');

        if (part.size == 0 || span_is(part, "."))
            continue;
        if (path.size == 0 || !span_ends_with(buf_span(&path), span_of("/")))
            CHECK(buf_append_byte(&path, '/') == 0);
        CHECK(buf_append(&path, part) == 0);
    }
    kept = keep_text(context->arena, path.size ? buf_span(&path) : span_of("/"));
    buf_done(&path);
    return kept;
}

/* Readers */

static const char *check_bounds(const struct type_context *context,
                                const struct directive *directive, uint64_t value)
{
    const char *low, *high;

    if (!directive->high || (value >= directive->low && value <= directive->high))
        return NULL;
    low = type_format_number(context->arena, directive->type, directive->low);
    high = type_format_number(context->arena, directive->type, directive->high);
    return keep_printf(context->arena, "must be from %s to %s", low, high);
}

/* A number of any unit; `off` is 0 and has to be within the bounds too. */
static const char *read_number(const struct type_context *context,
                               const struct directive *directive, struct span text,
                               bool (*parse)(struct span, uint64_t *), uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *reason;

    if (!type_is_off(text) && !parse(text, &value))
        return unexpected;
    reason = check_bounds(context, directive, value);
    if (!reason)
        *ret_value = value;
    return reason;
}

static const char *read_text(const struct type_context *context, const struct directive *directive,
                             struct span text, void *ret_member)
{
    (void)directive;
    *(const char **)ret_member = type_is_off(text) ? NULL : keep_text(context->arena, text);
    return NULL;
}

static const char *read_path(const struct type_context *context, const struct directive *directive,
                             struct span text, void *ret_member)
{
    (void)directive;
    *(const char **)ret_member = type_is_off(text) ? NULL : type_path(context, text);
    return NULL;
}

static const char *read_folder(const struct type_context *context,
                               const struct directive *directive, struct span text,
                               void *ret_member)
{
    (void)directive;
    *(const char **)ret_member = type_path(context, text);
    return NULL;
}

static const char *read_log(const struct type_context *context, const struct directive *directive,
                            struct span text, void *ret_member)
{
    if (!span_is(text, "stdout") && !span_is(text, "stderr"))
        return read_path(context, directive, text, ret_member);
    *(const char **)ret_member = keep_text(context->arena, text);
    return NULL;
}

static const char *read_size(const struct type_context *context, const struct directive *directive,
                             struct span text, void *ret_member)
{
    return read_number(context, directive, text, num_size, ret_member);
}

static const char *read_time(const struct type_context *context, const struct directive *directive,
                             struct span text, void *ret_member)
{
    return read_number(context, directive, text, num_time, ret_member);
}

static const char *read_count(const struct type_context *context, const struct directive *directive,
                              struct span text, void *ret_member)
{
    return read_number(context, directive, text, num_decimal, ret_member);
}

static const char *read_small(const struct type_context *context, const struct directive *directive,
                              struct span text, void *ret_member)
{
    uint64_t value;
    const char *reason = read_number(context, directive, text, num_decimal, &value);

    if (!reason)
        *(uint32_t *)ret_member = (uint32_t)value;
    return reason;
}

static const char *read_mode(const struct type_context *context, const struct directive *directive,
                             struct span text, void *ret_member)
{
    (void)context;
    (void)directive;
    return num_mode(text, ret_member) ? NULL : unexpected;
}

static const char *read_umask(const struct type_context *context, const struct directive *directive,
                              struct span text, void *ret_member)
{
    uint32_t mask;

    (void)context;
    (void)directive;
    if (!num_mode(text, &mask) || mask > 0777)
        return unexpected;
    *(uint32_t *)ret_member = mask;
    return NULL;
}

static const char *read_switch(const struct type_context *context,
                               const struct directive *directive, struct span text,
                               void *ret_member)
{
    (void)context;
    (void)directive;
    if (!is_on(text) && !type_is_off(text))
        return unexpected;
    *(bool *)ret_member = is_on(text);
    return NULL;
}

/* workers_min and workers_max are neighbours. */
static const char *read_workers(const struct type_context *context,
                                const struct directive *directive, struct span text,
                                void *ret_member)
{
    struct config_pool *pool = CONTAINER_OF(ret_member, struct config_pool, workers_min);
    uint32_t low = CONFIG_AUTO, high = CONFIG_AUTO;

    if (!span_is(text, "auto") && !num_range(text, &low, &high))
        return unexpected;
    if (high == 0)
        return "at least one worker must be allowed; 0..N starts them on demand";
    if (high != CONFIG_AUTO && high > directive->high)
        return check_bounds(context, directive, high);
    pool->workers_min = low;
    pool->workers_max = high;
    return NULL;
}

static const char *read_loops(const struct type_context *context, const struct directive *directive,
                              struct span text, void *ret_member)
{
    if (!span_is(text, "auto"))
        return read_small(context, directive, text, ret_member);
    *(uint32_t *)ret_member = CONFIG_AUTO;
    return NULL;
}

static const char *read_preload(const struct type_context *context,
                                const struct directive *directive, struct span text,
                                void *ret_member)
{
    (void)context;
    (void)directive;
    if (!span_is(text, "auto") && !is_on(text) && !type_is_off(text))
        return unexpected;
    *(enum config_preload *)ret_member = is_on(text)         ? CONFIG_PRELOAD_TRUE
                                         : type_is_off(text) ? CONFIG_PRELOAD_FALSE
                                                             : CONFIG_PRELOAD_AUTO;
    return NULL;
}

static const char *read_allocator(const struct type_context *context,
                                  const struct directive *directive, struct span text,
                                  void *ret_member)
{
    bool is_jemalloc = span_is(text, "jemalloc");

    (void)context;
    (void)directive;
    if (!is_jemalloc && !span_is(text, "default") && !type_is_off(text))
        return unexpected;
    *(enum config_allocator *)ret_member =
        is_jemalloc ? CONFIG_ALLOCATOR_JEMALLOC : CONFIG_ALLOCATOR_DEFAULT;
    return NULL;
}

static const char *read_format(const struct type_context *context,
                               const struct directive *directive, struct span text,
                               void *ret_member)
{
    (void)context;
    (void)directive;
    if (!span_is(text, "combined") && !span_is(text, "json") && !type_is_off(text))
        return unexpected;
    *(enum config_log_format *)ret_member = span_is(text, "json")       ? CONFIG_LOG_JSON
                                            : span_is(text, "combined") ? CONFIG_LOG_COMBINED
                                                                        : CONFIG_LOG_OFF;
    return NULL;
}

static const char *read_underscore(const struct type_context *context,
                                   const struct directive *directive, struct span text,
                                   void *ret_member)
{
    (void)context;
    (void)directive;
    if (!span_is(text, "drop") && !span_is(text, "pass"))
        return unexpected;
    *(bool *)ret_member = span_is(text, "pass");
    return NULL;
}

static const char *read_target(const struct type_context *context,
                               const struct directive *directive, struct span text,
                               void *ret_member)
{
    if (!type_is_off(text) && (text.data[0] != '/' || !ascii_all(text, ASCII_TARGET)))
        return unexpected;
    if (span_find(text, '?') < text.size)
        return "a path has no query";
    return read_text(context, directive, text, ret_member);
}

static const char *read_address(const struct type_context *context,
                                const struct directive *directive, struct span text,
                                void *ret_member)
{
    struct listener_spec spec;
    const char *reason, *address;

    (void)directive;
    if (type_is_off(text)) {
        *(const char **)ret_member = NULL;
        return NULL;
    }
    reason = listener_parse(context, text, &spec);
    if (reason)
        return reason;
    address = listener_address(context, &spec, "127.0.0.1", 9191);
    if (!address)
        return "this host is no address and not in /etc/hosts";
    *(const char **)ret_member = address;
    return NULL;
}

/* Items of lists */

static bool is_network(struct span text)
{
    size_t slash = span_find(text, '/');
    bool ip6 = span_find(text, ':') < text.size;
    char host[INET6_ADDRSTRLEN];
    unsigned char address[16];
    uint64_t bits;

    if (slash >= sizeof(host))
        return false;
    memcpy(host, text.data, slash);
    host[slash] = '\0';
    if (inet_pton(ip6 ? AF_INET6 : AF_INET, host, address) != 1)
        return false;
    return slash == text.size ||
           (num_decimal(span_skip(text, slash + 1), &bits) && bits <= (ip6 ? 128 : 32));
}

static const char *read_proxy(const struct type_context *context, const struct directive *directive,
                              struct span text, void *ret_member)
{
    static const char *const words[] = {"unix", "loopback", "private"};

    if (!is_one_of(text, words, ARRAY_LEN(words)) && !is_network(text))
        return unexpected;
    return read_text(context, directive, text, ret_member);
}

/* A host name is compared with what a client sent without its port and its last dot, in lower case. */
static const char *read_host(const struct type_context *context, const struct directive *directive,
                             struct span text, void *ret_member)
{
    bool wild = span_starts_with(text, span_of("*."));
    struct span name = wild ? span_skip(text, 2) : text;
    char *lower;

    (void)directive;
    if (!name.size || span_find(name, '*') < name.size || span_find(name, '/') < name.size)
        return unexpected;
    if (span_find(name, ':') < name.size && name.data[0] != '[')
        return "a host is given without a port";
    lower = keep_zero(context->arena, text.size + 1);
    for (size_t i = 0; i < text.size; i++)
        lower[i] = ascii_lower(text.data[i]);
    if (name.size > 1 && lower[text.size - 1] == '.')
        lower[text.size - 1] = '\0';
    *(const char **)ret_member = lower;
    return NULL;
}

static const char *read_extension(const struct type_context *context,
                                  const struct directive *directive, struct span text,
                                  void *ret_member)
{
    if (text.size < 2 || text.data[0] != '.' || span_find(text, '/') < text.size)
        return unexpected;
    return read_text(context, directive, text, ret_member);
}

/* Writers */

static const char *unit_text(struct arena *arena, uint64_t value, uint64_t factor, const char *unit)
{
    return keep_printf(arena, "%llu%s", (unsigned long long)(value / factor), unit);
}

static const char *size_text(struct arena *arena, uint64_t bytes)
{
    static const char units[] = {'g', 'm', 'k'};

    for (unsigned i = 0; bytes && i < sizeof(units); i++) {
        uint64_t factor = 1ull << (30 - 10 * i);

        if (bytes % factor == 0)
            return unit_text(arena, bytes, factor, (char[]){units[i], '\0'});
    }
    return unit_text(arena, bytes, 1, "");
}

static const char *time_text(struct arena *arena, uint64_t ms)
{
    if (ms && ms % 3600000 == 0)
        return unit_text(arena, ms, 3600000, "h");
    if (ms && ms % 60000 == 0)
        return unit_text(arena, ms, 60000, "m");
    return ms % 1000 == 0 ? unit_text(arena, ms, 1000, "s") : unit_text(arena, ms, 1, "ms");
}

const char *type_format_number(struct arena *arena, enum type type, uint64_t value)
{
    if (type == TYPE_SIZE)
        return size_text(arena, value);
    return type == TYPE_TIME ? time_text(arena, value) : unit_text(arena, value, 1, "");
}

static const char *write_text(struct arena *arena, const void *member)
{
    const char *text = *(const char *const *)member;

    (void)arena;
    return text ? text : "off";
}

static const char *write_size(struct arena *arena, const void *member)
{
    const uint64_t *value = member;

    return *value ? size_text(arena, *value) : "off";
}

static const char *write_time(struct arena *arena, const void *member)
{
    const uint64_t *value = member;

    return *value ? time_text(arena, *value) : "off";
}

static const char *write_count(struct arena *arena, const void *member)
{
    return unit_text(arena, *(const uint64_t *)member, 1, "");
}

static const char *write_small(struct arena *arena, const void *member)
{
    uint32_t value = *(const uint32_t *)member;

    return value == CONFIG_AUTO ? "auto" : unit_text(arena, value, 1, "");
}

static const char *write_mode(struct arena *arena, const void *member)
{
    uint32_t value = *(const uint32_t *)member;

    return value == CONFIG_AUTO ? "off" : keep_printf(arena, "0%o", value);
}

static const char *write_switch(struct arena *arena, const void *member)
{
    (void)arena;
    return *(const bool *)member ? "true" : "false";
}

static const char *write_workers(struct arena *arena, const void *member)
{
    const struct config_pool *pool = CONTAINER_OF(member, const struct config_pool, workers_min);

    if (pool->workers_min == pool->workers_max)
        return write_small(arena, member);
    return keep_printf(arena, "%u..%u", pool->workers_min, pool->workers_max);
}

static const char *write_preload(struct arena *arena, const void *member)
{
    static const char *const words[] = {[CONFIG_PRELOAD_AUTO] = "auto",
                                        [CONFIG_PRELOAD_TRUE] = "true",
                                        [CONFIG_PRELOAD_FALSE] = "false"};

    (void)arena;
    return words[*(const enum config_preload *)member];
}

static const char *write_allocator(struct arena *arena, const void *member)
{
    (void)arena;
    return *(const enum config_allocator *)member == CONFIG_ALLOCATOR_JEMALLOC ? "jemalloc"
                                                                               : "default";
}

static const char *write_format(struct arena *arena, const void *member)
{
    static const char *const words[] = {
        [CONFIG_LOG_OFF] = "off", [CONFIG_LOG_COMBINED] = "combined", [CONFIG_LOG_JSON] = "json"};

    (void)arena;
    return words[*(const enum config_log_format *)member];
}

static const char *write_underscore(struct arena *arena, const void *member)
{
    (void)arena;
    return *(const bool *)member ? "pass" : "drop";
}

static const char *write_list(struct arena *arena, const void *member)
{
    const struct config_strings *list = member;
    const char *text = "";

    for (uint32_t i = 0; i < list->size; i++)
        text = keep_printf(arena, "%s%s\"%s\"", text, i ? ", " : "", list->items[i]);
    return keep_printf(arena, "[%s]", text);
}

static const struct {
    reader *read;
    writer *write;
} types[] = {
    [TYPE_TEXT] = {read_text, write_text},
    [TYPE_PATH] = {read_path, write_text},
    [TYPE_FOLDER] = {read_folder, write_text},
    [TYPE_LOG] = {read_log, write_text},
    [TYPE_SIZE] = {read_size, write_size},
    [TYPE_TIME] = {read_time, write_time},
    [TYPE_COUNT] = {read_count, write_count},
    [TYPE_NUMBER] = {read_small, write_small},
    [TYPE_MODE] = {read_mode, write_mode},
    [TYPE_UMASK] = {read_umask, write_mode},
    [TYPE_SWITCH] = {read_switch, write_switch},
    [TYPE_WORKERS] = {read_workers, write_workers},
    [TYPE_LOOPS] = {read_loops, write_small},
    [TYPE_PRELOAD] = {read_preload, write_preload},
    [TYPE_ALLOCATOR] = {read_allocator, write_allocator},
    [TYPE_FORMAT] = {read_format, write_format},
    [TYPE_UNDERSCORE] = {read_underscore, write_underscore},
    [TYPE_TARGET] = {read_target, write_text},
    [TYPE_ADDRESS] = {read_address, write_text},
    [TYPE_HOSTS] = {read_host, write_list},
    [TYPE_PROXIES] = {read_proxy, write_list},
    [TYPE_FOLDERS] = {read_folder, write_list},
    [TYPE_EXTENSIONS] = {read_extension, write_list},
};

/* A reason that says what would have been right, or the special one. */
static const char *explain(const struct type_context *context, const struct directive *directive,
                           struct span text, const char *reason)
{
    if (reason != unexpected)
        return reason;
    return keep_printf(context->arena, "expected %s, not \"%.*s\"", type_expects(directive->type),
                       SPAN_ARG(text));
}

const char *type_read(const struct type_context *context, const struct directive *directive,
                      struct span text, void *ret_member)
{
    CHECK(!type_is_list(directive->type) && !type_is_part(directive->type));
    return explain(context, directive, text,
                   types[directive->type].read(context, directive, text, ret_member));
}

const char *type_read_item(const struct type_context *context, const struct directive *directive,
                           struct span text, struct config_strings *ret_member)
{
    const char *item = NULL, *reason;

    CHECK(type_is_list(directive->type));
    reason = explain(context, directive, text,
                     text.size ? types[directive->type].read(context, directive, text, &item)
                               : unexpected);
    if (reason || !item)
        return reason;
    ret_member->items = keep_grow(context->arena, ret_member->items, ret_member->size,
                                  sizeof(ret_member->items[0]));
    ret_member->items[ret_member->size++] = item;
    return NULL;
}

const char *type_format(struct arena *arena, const struct directive *directive, const void *member)
{
    CHECK(!type_is_part(directive->type));
    return types[directive->type].write(arena, member);
}

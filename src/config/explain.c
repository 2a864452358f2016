/* SPDX-License-Identifier: MIT */
#include "config/explain.h"

#include "base/ascii.h"
#include "config/directive.h"
#include "config/keep.h"
#include "config/origin.h"
#include "config/type.h"

enum { COMMENT_COLUMN = 56 };

/* The struct whose settings are printed, and what stands before their names. */
struct part {
    struct config *config;
    struct buf *out;
    const char *shown; /* prefix of the keys as they are printed: "pools.app." */
    const char
        *noted; /* prefix that origins know them by: "" when the top level describes the pool */
    const void *object;
};

#define PUT(out, ...) CHECK(buf_printf(out, __VA_ARGS__) == 0)

/* Values that a YAML reader would take for something else are quoted. */
static const char *quoted(struct arena *arena, const char *value)
{
    bool is_special = !value[0] || strchr("[{\"'&*!|>%@`#-?:, ", value[0]);

    if (value[0] == '[' && value[strlen(value) - 1] == ']')
        return value;
    if (is_special || strstr(value, ": ") || strstr(value, " #"))
        return keep_printf(arena, "\"%s\"", value);
    return value;
}

static void put_line(struct part *part, const char *shown, const char *noted, const char *value)
{
    struct arena *arena = &part->config->arena;
    const char *setting = keep_printf(arena, "%s: %s", shown, quoted(arena, value));
    const char *from = origin_text(arena, origin_find(part->config, noted));

    PUT(part->out, "%-*s # %s\n", COMMENT_COLUMN, setting, from);
}

/* What nobody gave and is chosen later, from the machine, the owner of a file, or another setting. */
static bool is_chosen(const struct directive *directive)
{
    static const struct {
        enum section section;
        const char *name;
    } chosen[] = {{SECTION_SERVER, "user"},         {SECTION_SERVER, "group"},
                  {SECTION_SERVER, "control"},      {SECTION_POOL, "ruby"},
                  {SECTION_SERVER, "memory_total"}, {SECTION_POOL, "user"},
                  {SECTION_POOL, "group"},          {SECTION_POOL, "log"}};

    for (size_t i = 0; i < ARRAY_LEN(chosen); i++)
        if (chosen[i].section == directive->section && strcmp(chosen[i].name, directive->name) == 0)
            return true;
    return false;
}

static void put_setting(struct part *part, const struct directive *directive)
{
    struct arena *arena = &part->config->arena;
    const char *member = (const char *)part->object + directive->offset;
    const char *noted = keep_printf(arena, "%s%s", part->noted, directive->name);
    const char *value = type_format(arena, directive, member);

    if (strcmp(value, "off") == 0 && is_chosen(directive) && !origin_find(part->config, noted))
        value = "auto";
    put_line(part, keep_printf(arena, "%s%s", part->shown, directive->name), noted, value);
}

/* Every directive of the section that has a value of its own. */
static void put_section(struct part *part, enum section section)
{
    size_t size;
    const struct directive *table = directives(&size);

    for (size_t i = 0; i < size; i++)
        if (table[i].section == section && !type_is_part(table[i].type))
            put_setting(part, &table[i]);
}

static void put_inside(const struct part *part, enum section section, const char *name,
                       const void *object)
{
    struct arena *arena = &part->config->arena;
    struct part inside = *part;

    inside.shown = keep_printf(arena, "%s%s.", part->shown, name);
    inside.noted = keep_printf(arena, "%s%s.", part->noted, name);
    inside.object = object;
    put_section(&inside, section);
}

static void put_listeners(struct part *part)
{
    struct config *config = part->config;
    const char *list = "";

    for (uint32_t i = 0; i < config->listener_size; i++)
        list = keep_printf(&config->arena, "%s%s\"%s\"", list, i ? ", " : "",
                           config->listeners[i].address);
    put_line(part, "listen", "listen", keep_printf(&config->arena, "[%s]", list));
}

static bool has_word(struct span text, const char *word)
{
    struct span wanted = span_of(word);

    for (size_t i = 0; i + wanted.size <= text.size; i++)
        if (ascii_equal_fold(span_first(span_skip(text, i), wanted.size), wanted))
            return true;
    return false;
}

/* Whether a variable may hold what nobody else should read. */
static bool is_secret(const struct config_variable *variable)
{
    static const char *const words[] = {"key",    "secret", "password",
                                        "passwd", "token",  "credential"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (has_word(span_of(variable->name), words[i]))
            return true;
    return has_word(span_of(variable->value), "://") && strchr(variable->value, '@');
}

static void put_variables(struct part *part, const struct config_pool *pool)
{
    struct arena *arena = &part->config->arena;
    const char *noted = keep_printf(arena, "%senv", part->noted);

    for (uint32_t i = 0; i < pool->env_size; i++)
        put_line(part, keep_printf(arena, "%senv.%s", part->shown, pool->env[i].name), noted,
                 is_secret(&pool->env[i]) ? "********" : pool->env[i].value);
}

static void put_pool(struct part *server, const struct config_pool *pool)
{
    struct arena *arena = &server->config->arena;
    struct part part = *server;
    const char *own = keep_printf(arena, "pools.%s", pool->name);

    part.shown = keep_printf(arena, "%s.", own);
    part.noted = origin_find(server->config, own) ? part.shown : "";
    part.object = pool;
    PUT(part.out, "\n");
    put_section(&part, SECTION_POOL);
    put_inside(&part, SECTION_QUEUE, "queue", pool);
    put_inside(&part, SECTION_MALLOC, "malloc", &pool->malloc);
    put_variables(&part, pool);
}

static void put_prefixes(struct part *part, const struct config_site *site)
{
    struct arena *arena = &part->config->arena;
    const char *noted = keep_printf(arena, "%sinternal", part->noted);

    for (uint32_t i = 0; i < site->internal_size; i++)
        put_line(part, keep_printf(arena, "%sinternal.%s", part->shown, site->internal[i].prefix),
                 noted, site->internal[i].folder);
}

static void put_site(struct part *server, const struct config_site *site, uint32_t index)
{
    struct arena *arena = &server->config->arena;
    struct part part = *server;
    const char *own = keep_printf(arena, "sites[%u]", index);

    part.shown = keep_printf(arena, "%s.", own);
    part.noted = origin_find(server->config, own) ? part.shown : "";
    part.object = site;
    PUT(part.out, "\n");
    put_section(&part, SECTION_SITE);
    put_line(&part, keep_printf(arena, "%spool", part.shown),
             keep_printf(arena, "%spool", part.noted), site->pool ? site->pool->name : "off");
    put_inside(&part, SECTION_SITE_LIMITS, "limits", &site->limits);
    put_prefixes(&part, site);
}

void explain_edition(struct config *config, struct buf *out)
{
    struct part part = {.config = config, .out = out, .shown = "", .noted = "", .object = config};

    PUT(out, "# application folder: %s\n# configuration file: %s\n\n", config->folder,
        config->file ? config->file : "none");
    put_listeners(&part);
    put_section(&part, SECTION_SERVER);
    put_inside(&part, SECTION_ACCESS_LOG, "access_log", &config->access_log);
    put_inside(&part, SECTION_LIMITS, "limits", &config->limits);
    put_inside(&part, SECTION_TIMEOUTS, "timeouts", &config->timeouts);
    for (uint32_t i = 0; i < config->pool_size; i++)
        put_pool(&part, config->pools[i]);
    for (uint32_t i = 0; i < config->site_size; i++)
        put_site(&part, &config->sites[i], i);
}

/* The manual */

static const char introduction[] =
    "# The configuration file\n"
    "\n"
    "Leat needs no configuration file: in a folder with a `config.ru` it starts with the defaults\n"
    "below. When there is one of `config/leat/ENV.yml` (ENV is the environment), "
    "`config/leat.yml`\n"
    "and `leat.yml` in the application folder, the first of them counts; `-C FILE` names another.\n"
    "`leat check` lists every mistake in it, `leat print` shows each setting in effect and where "
    "it\n"
    "came from. This page is made by `leat print --reference`.\n"
    "\n"
    "```yaml\n"
    "listen: [80, \"unix:tmp/sockets/web.sock\"]\n"
    "user: deploy\n"
    "access_log: {file: log/access.log, format: json}\n"
    "workers: 2..6\n"
    "threads: 3\n"
    "timeouts: {keepalive: 30s}\n"
    "```\n"
    "\n"
    "## Rules\n"
    "\n"
    "- An option of the command line wins over the environment, the environment over the file, "
    "the\n"
    "  file over the default. An empty variable counts as unset.\n"
    "- `${NAME}` and `${NAME:-default}` inside a value come from the environment, after the file "
    "was\n"
    "  parsed: quote them in `[...]` and `{...}`. `$${NAME}` stands for itself. A variable that "
    "is\n"
    "  unset and has no default is a mistake.\n"
    "- Sizes are `64k`, `10m`, `2g`; times `250ms`, `30s`, `5m`, `1h`; ranges `2..6`.\n"
    "- A single value may stand for a list. `off`, `no` and `false` are the same. A key without a\n"
    "  value keeps its default.\n"
    "- Relative paths begin at the application folder: DIR of the command line, else the nearest\n"
    "  folder at or above the file of `-C` that has an application, else that file's own folder.\n"
    "- Anchors, aliases and `<<` work. A key that is unknown or stands twice is a mistake.\n"
    "\n"
    "## Variables of the environment\n"
    "\n"
    "| variable | means | option |\n"
    "|---|---|---|\n"
    "| `PORT`, `BINDING` | port and address; they replace those of plain TCP listeners only | "
    "`-p`, "
    "`-b` |\n"
    "| `APP_ENV`, `RACK_ENV`, `RAILS_ENV` | the environment, in this order; a Rails application "
    "asks "
    "`RAILS_ENV` first | `-e` |\n"
    "| `WEB_CONCURRENCY` | `workers`, with exactly one pool | `-w` |\n"
    "| `RAILS_MAX_THREADS` | `threads`, with exactly one pool | `-t` |\n"
    "| `PIDFILE` | `pid` | `-P` |\n";

static void put_default(const struct directive *directive, struct buf *out)
{
    if (directive->fallback && directive->development)
        PUT(out, " Default: `%s`, in development `%s`.", directive->fallback,
            directive->development);
    else if (directive->fallback)
        PUT(out, " Default: `%s`.", directive->fallback);
}

static void put_bounds(struct arena *arena, const struct directive *directive, struct buf *out)
{
    if (directive->high)
        PUT(out, ", from %s to %s", type_format_number(arena, directive->type, directive->low),
            type_format_number(arena, directive->type, directive->high));
}

static void put_directive(struct arena *arena, const struct directive *directive, struct buf *out)
{
    PUT(out, "\n### `%s`\n\n%s\n", directive->name, directive->help);
    if (directive->type == TYPE_LATER) {
        PUT(out, "\nNot yet: this version refuses it.\n");
        return;
    }
    PUT(out, "\nValue: %s%s", type_is_list(directive->type) ? "a list, each item " : "",
        type_expects(directive->type));
    put_bounds(arena, directive, out);
    PUT(out, ".");
    put_default(directive, out);
    PUT(out, "\n");
}

void explain_reference(struct buf *out)
{
    static const enum section order[] = {
#define SECTION(constant, object, place, heading, text) SECTION_##constant,
#include "config/section.def"
#undef SECTION
    };
    struct arena arena = {0};
    size_t size;
    const struct directive *table = directives(&size);

    PUT(out, "%s", introduction);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        PUT(out, "\n## %s\n\n%s\n", section_heading(order[i]), section_text(order[i]));
        for (size_t j = 0; j < size; j++)
            if (table[j].section == order[i])
                put_directive(&arena, &table[j], out);
    }
    arena_done(&arena);
}

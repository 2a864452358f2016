/* SPDX-License-Identifier: MIT */
#include "config/overlay.h"

#include "base/num.h"
#include "config/expand.h"
#include "config/keep.h"
#include "config/origin.h"

static const char *variable(const struct config_options *options, const char *name)
{
    return expand_find(options->environ, span_of(name));
}

static bool given(const char *text)
{
    return text && text[0];
}

/* The environment's name */

static void find_in_variables(struct arena *arena, const struct config_options *options,
                              bool is_rails, struct overlay_environment *environment)
{
    static const char *const plain[] = {"APP_ENV", "RACK_ENV", "RAILS_ENV"};
    static const char *const rails[] = {"RAILS_ENV", "APP_ENV", "RACK_ENV"};
    const char *const *names = is_rails ? rails : plain;
    const char *winner = NULL;

    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        const char *value = variable(options, names[i]);

        if (!value)
            continue;
        if (!winner) {
            winner = names[i];
            environment->name = value;
            environment->source = keep_printf(arena, "environment %s", names[i]);
        } else if (!environment->quarrel && strcmp(value, environment->name) != 0) {
            environment->quarrel =
                keep_printf(arena, "%s=%s and %s=%s disagree: the environment is %s", winner,
                            environment->name, names[i], value, environment->name);
        }
    }
}

void overlay_find_environment(struct arena *arena, const struct config_options *options,
                              bool is_rails, const char *from_file,
                              struct overlay_environment *ret_environment)
{
    struct overlay_environment environment = {0};

    if (given(options->environment)) {
        environment.name = options->environment;
        environment.source = "option -e";
    } else {
        find_in_variables(arena, options, is_rails, &environment);
    }
    if (!environment.name && given(from_file))
        environment.name = from_file;
    if (!environment.name && given(options->default_environment))
        environment.name = options->default_environment;
    if (!environment.name)
        environment.name = "development";
    *ret_environment = environment;
}

/* Single settings */

/* A value from outside the file for a directive of the server or of the only Rack pool. */
struct setting {
    enum section section;
    const char *directive;
    const char *source;
    const char *text; /* NULL = not given */
};

/* The only Rack pool; NULL when there are several, or none. */
static struct config_pool *only_pool(const struct config *config)
{
    struct config_pool *only = NULL;

    for (uint32_t i = 0; i < config->pool_size; i++) {
        if (config->pools[i]->kind != CONFIG_RACK)
            continue;
        if (only)
            return NULL;
        only = config->pools[i];
    }
    return only;
}

/* Variables are often set for something else; an option was meant for this start. */
static void warn_of_choice(struct bind *bind, const struct setting *setting)
{
    if (span_starts_with(span_of(setting->source), span_of("option")))
        faults_add(&bind->config->warnings, NULL, 0, 0, strchr(setting->source, ' ') + 1,
                   "has no effect without exactly one Rack pool; set %s in the file",
                   setting->directive);
}

static void apply(struct bind *bind, const struct setting *setting)
{
    const struct directive *directive =
        directive_find(setting->section, span_of(setting->directive));
    const char *reason, *key;
    char *object = (char *)bind->config;

    CHECK(directive);
    key = setting->directive;
    if (setting->section == SECTION_POOL) {
        struct config_pool *pool = only_pool(bind->config);

        if (!pool) {
            warn_of_choice(bind, setting);
            return;
        }
        key = bind_pool_key(bind, pool, key);
        object = (char *)pool;
    }
    reason = type_read(&bind->types, directive, span_of(setting->text), object + directive->offset);
    if (reason)
        faults_add(bind->faults, NULL, 0, 0, strchr(setting->source, ' ') + 1, "%s", reason);
    else
        origin_note_source(bind->config, key, setting->source);
}

/* Elsewhere WEB_CONCURRENCY=0 means a single process, which is one worker here. */
static const char *web_concurrency(const struct config_options *options)
{
    const char *text = variable(options, "WEB_CONCURRENCY");

    return text && strcmp(text, "0") == 0 ? "1" : text;
}

void overlay_settings(struct bind *bind, const struct config_options *options)
{
    const struct setting settings[] = {
        {SECTION_POOL, "workers", "environment WEB_CONCURRENCY", web_concurrency(options)},
        {SECTION_POOL, "threads", "environment RAILS_MAX_THREADS",
         variable(options, "RAILS_MAX_THREADS")},
        {SECTION_SERVER, "pid", "environment PIDFILE", variable(options, "PIDFILE")},
        {SECTION_POOL, "workers", "option -w", options->workers},
        {SECTION_POOL, "threads", "option -t", options->threads},
        {SECTION_POOL, "rackup", "option -R", options->rackup},
        {SECTION_SERVER, "pid", "option -P", options->pid},
        {SECTION_SERVER, "log", "option -l", options->log},
        {SECTION_SERVER, "user", "option -u", options->user},
        {SECTION_SERVER, "group", "option -g", options->group},
        {SECTION_SERVER, "admin", "option --admin", options->admin},
        {SECTION_SERVER, "control", "option --control", options->control},
    };

    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (given(settings[i].text))
            apply(bind, &settings[i]);
}

/* Listeners */

/* What fills the gaps of a place: the host and the port that were said elsewhere. */
struct gaps {
    const char *host;
    unsigned port;
};

static void complain(const struct bind *bind, const char *name, const char *reason)
{
    faults_add(bind->faults, NULL, 0, 0, name, "%s", reason);
}

/* The port that an option or variable names, or 0. */
static unsigned read_port(const struct bind *bind, const char *name, const char *text)
{
    uint64_t port;

    if (!given(text))
        return 0;
    if (!num_decimal(span_of(text), &port) || port < 1 || port > 65535) {
        complain(
            bind, name,
            keep_printf(bind->types.arena, "expected a port from 1 to 65535, not \"%s\"", text));
        return 0;
    }
    return (unsigned)port;
}

/* The place that an option or variable names. */
static bool read_place(const struct bind *bind, const char *name, const char *text,
                       struct listener_spec *ret_spec)
{
    const char *reason = listener_parse(&bind->types, span_of(text), ret_spec);

    if (reason)
        complain(bind, name, keep_printf(bind->types.arena, "%s, not \"%s\"", reason, text));
    return !reason;
}

static void add_plain(struct bind *bind, struct listener_entries *entries,
                      const struct listener_spec *spec)
{
    struct config_listener like = {0};

    bind_defaults(bind, SECTION_LISTENER, &like);
    listener_add(bind->types.arena, entries, spec, &like);
}

/* The hosts of BINDING (its port counts when PORT is not set); what is no address becomes a fault. */
static bool read_binding(struct bind *bind, const struct config_options *options,
                         struct listener_spec *ret_spec)
{
    const char *text = variable(options, "BINDING");

    return text && read_place(bind, "BINDING", text, ret_spec);
}

static bool is_plain(const struct listener_entry *entry)
{
    return !entry->spec.path && !entry->like.certificate;
}

/* The host that all plain TCP listeners share, or NULL. */
static const char *common_host(const struct listener_entries *entries)
{
    const char *common = NULL;

    for (uint32_t i = 0; i < entries->size; i++) {
        const char *host = entries->items[i].spec.host;

        if (!is_plain(&entries->items[i]))
            continue;
        if (!host || (common && strcmp(common, host) != 0))
            return NULL;
        common = host;
    }
    return common;
}

/* PORT and BINDING replace plain TCP listeners, the others stay. A new port is one for all of them,
 * at the host that they share; a new host alone keeps their ports. */
static void replace(struct bind *bind, const struct listener_spec *binding, unsigned port)
{
    const char *host = binding && binding->host ? binding->host : common_host(&bind->entries);

    for (uint32_t i = 0; i < bind->entries.size; i++) {
        struct listener_entry *entry = &bind->entries.items[i];

        if (!is_plain(entry))
            continue;
        if (binding && binding->path)
            entry->spec = *binding;
        else if (port)
            entry->spec = (struct listener_spec){.host = host, .port = port};
        else if (host)
            entry->spec.host = host;
    }
}

/* -p and -b say all there is to listen on. */
static void list_options(struct bind *bind, const struct config_options *options)
{
    struct listener_spec spec;

    bind->entries.size = 0;
    origin_note_source(bind->config, "listen", options->bind_size ? "option -b" : "option -p");
    for (uint32_t i = 0; i < options->bind_size; i++)
        if (read_place(bind, "-b", options->binds[i], &spec))
            add_plain(bind, &bind->entries, &spec);
    if (!options->bind_size)
        add_plain(bind, &bind->entries, &(struct listener_spec){0});
}

static void list_variables(struct bind *bind, const struct listener_spec *binding, unsigned port)
{
    if (!binding && !port)
        return;
    replace(bind, binding, port);
    origin_note_source(bind->config, "listen", port ? "environment PORT" : "environment BINDING");
}

/* What nobody wrote: the starter's own default, which is weaker than the file. */
static void list_defaults(struct bind *bind, const struct config_options *options)
{
    struct listener_spec spec = {.port = read_port(bind, "-p", options->default_port)};

    add_plain(bind, &bind->entries, &spec);
}

static void resolve_all(struct bind *bind, const struct gaps *gaps)
{
    for (uint32_t i = 0; i < bind->entries.size; i++) {
        struct listener_entry *entry = &bind->entries.items[i];
        const char *reason;

        if (!entry->spec.host)
            entry->spec.host = gaps->host;
        if (!entry->spec.port)
            entry->spec.port = gaps->port;
        reason = listener_resolve(&bind->types, bind->config, entry);
        if (reason)
            origin_fault(bind->config, bind->faults, "listen", "%s", reason);
    }
}

void overlay_listeners(struct bind *bind, const struct config_options *options)
{
    struct gaps gaps = {bind->config->development ? "localhost" : "*", LISTENER_PORT};
    struct listener_spec binding;
    bool has_binding = read_binding(bind, options, &binding);
    unsigned option_port = read_port(bind, "-p", options->port);
    unsigned port = read_port(bind, "PORT", variable(options, "PORT"));

    if (!port && has_binding)
        port = binding.port;
    if (!bind->entries.size)
        list_defaults(bind, options);
    if (options->bind_size || given(options->port))
        list_options(bind, options);
    else
        list_variables(bind, has_binding ? &binding : NULL, port);
    if (has_binding && binding.host)
        gaps.host = binding.host;
    if (option_port || port)
        gaps.port = option_port ? option_port : port;
    else if (given(options->default_port))
        gaps.port = read_port(bind, "-p", options->default_port);
    resolve_all(bind, &gaps);
}

/* SPDX-License-Identifier: MIT */
#include "config/listener.h"

#include "base/ascii.h"
#include "base/num.h"
#include "config/keep.h"

#include <arpa/inet.h>
#include <stdio.h>

/* The host word for every address. */
static const char everywhere[] = "*";

static bool read_port(struct span text, unsigned *ret_port)
{
    uint64_t port;

    if (!num_decimal(text, &port) || port < 1 || port > 65535)
        return false;
    *ret_port = (unsigned)port;
    return true;
}

static const char *parse_unix(const struct type_context *context, struct span text,
                              struct listener_spec *ret_spec)
{
    struct span path = span_starts_with(text, span_of("//")) ? span_skip(text, 2) : text;

    if (!path.size || path.data[path.size - 1] == '/')
        return "unix: wants the path of a socket";
    if (path.data[0] == '@')
        return "sockets without a path are not supported";
    *ret_spec = (struct listener_spec){.path = type_path(context, path)};
    return NULL;
}

/* Cuts the host from the port: `[::1]:80`, `a:80`, `::1`, `a`. */
static bool split_host(struct span text, struct span *ret_host, struct span *ret_port)
{
    size_t last = span_find_last(text, ':');
    struct span tail;

    *ret_port = span_make(NULL, 0);
    if (span_starts_with(text, span_of("["))) {
        size_t end = span_find(text, ']');

        *ret_host = span_skip(span_first(text, end), 1);
        tail = span_skip(text, end + 1);
        if (tail.size)
            *ret_port = span_skip(tail, 1);
        return end < text.size && (!tail.size || (tail.data[0] == ':' && tail.size > 1));
    }
    *ret_host = text;
    if (last == text.size || span_find(text, ':') != last)
        return true; /* a name, or an IPv6 address without brackets */
    *ret_host = span_first(text, last);
    *ret_port = span_skip(text, last + 1);
    return ret_port->size > 0 && ret_host->size > 0;
}

static bool is_ip(const char *host)
{
    unsigned char address[16];

    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static bool is_host(const char *host)
{
    struct span name = span_of(host);

    if (span_is(name, everywhere) || is_ip(host))
        return true;
    for (size_t i = 0; i < name.size; i++)
        if (!ascii_is(name.data[i], ASCII_ALPHA | ASCII_DIGIT) && !strchr("-._", name.data[i]))
            return false;
    return name.size > 0;
}

static const char *parse_internet(const struct type_context *context, struct span text,
                                  struct listener_spec *ret_spec)
{
    static const char expected[] = "expected a port, an address, address:port or unix:path";
    struct listener_spec spec = {0};
    struct span host, port;

    if (ascii_all(text, ASCII_DIGIT)) {
        if (!read_port(text, &ret_spec->port))
            return "a port must be from 1 to 65535";
        *ret_spec = (struct listener_spec){.port = ret_spec->port};
        return NULL;
    }
    if (!split_host(text, &host, &port))
        return expected;
    spec.host = keep_text(context->arena, host);
    if (!is_host(spec.host))
        return expected;
    if (port.size && !read_port(port, &spec.port))
        return "a port must be from 1 to 65535";
    *ret_spec = spec;
    return NULL;
}

const char *listener_parse(const struct type_context *context, struct span text,
                           struct listener_spec *ret_spec)
{
    if (span_starts_with(text, span_of("unix:")))
        return parse_unix(context, span_skip(text, 5), ret_spec);
    if (span_starts_with(text, span_of("ssl:")))
        return "TLS: not yet";
    if (span_starts_with(text, span_of("tcp:")))
        text = span_skip(text, 4);
    if (span_starts_with(text, span_of("//")))
        text = span_skip(text, 2);
    return parse_internet(context, text, ret_spec);
}

void listener_add(struct arena *arena, struct listener_entries *entries,
                  const struct listener_spec *spec, const struct config_listener *like)
{
    entries->items = keep_grow(arena, entries->items, entries->size, sizeof(entries->items[0]));
    entries->items[entries->size++] = (struct listener_entry){.spec = *spec, .like = *like};
}

/* The address that a line of the hosts file gives the name, or NULL. */
static const char *match_line(char *line, const char *name)
{
    char *rest = line, *address, *word;

    line[strcspn(line, "#\n")] = '\0';
    address = strtok_r(rest, " \t", &rest);
    while (address && (word = strtok_r(NULL, " \t", &rest)))
        if (ascii_equal_fold(span_of(word), span_of(name)) && is_ip(address))
            return address;
    return NULL;
}

/* The numeric address of a host word, or NULL. A name is looked up in the hosts file, so that loading
 * a configuration never waits for a name server. */
static const char *look_up(struct arena *arena, const char *host)
{
    FILE *file = is_ip(host) ? NULL : fopen("/etc/hosts", "re");
    const char *found = is_ip(host) ? host : NULL;
    char line[1024];

    while (!found && file && fgets(line, sizeof(line), file)) {
        const char *address = match_line(line, host);

        found = address ? keep_text(arena, span_of(address)) : NULL;
    }
    if (file)
        (void)fclose(file);
    return found;
}

static const char *join(struct arena *arena, const char *host, unsigned port)
{
    return keep_printf(arena, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

const char *listener_address(const struct type_context *context, const struct listener_spec *spec,
                             const char *host, unsigned port)
{
    const char *name = spec->host ? spec->host : host;
    const char *found;

    if (spec->path)
        return keep_printf(context->arena, "unix:%s", spec->path);
    if (span_is(span_of(name), everywhere))
        name = "0.0.0.0";
    if (span_is(span_of(name), "localhost"))
        name = "127.0.0.1";
    found = look_up(context->arena, name);
    return found ? join(context->arena, found, spec->port ? spec->port : port) : NULL;
}

static void add(struct arena *arena, struct config *config, const struct config_listener *listener)
{
    for (uint32_t i = 0; i < config->listener_size; i++)
        if (strcmp(config->listeners[i].address, listener->address) == 0) {
            config->listeners[i].optional &= listener->optional;
            return;
        }
    config->listeners =
        keep_grow(arena, config->listeners, config->listener_size, sizeof(config->listeners[0]));
    config->listeners[config->listener_size++] = *listener;
}

static void add_internet(struct arena *arena, struct config *config,
                         const struct listener_entry *entry, const char *host, const char *shown,
                         bool optional)
{
    struct config_listener listener = entry->like;

    listener.address = join(arena, host, entry->spec.port);
    listener.shown = keep_printf(arena, "http://%s", join(arena, shown, entry->spec.port));
    listener.optional = optional;
    add(arena, config, &listener);
}

/* An IPv6 listener takes no IPv4 (IPV6_V6ONLY), so every address is two listeners; `[::]` written
 * out means both too, as elsewhere, but then IPv6 has to be there. */
const char *listener_resolve(const struct type_context *context, struct config *config,
                             const struct listener_entry *entry)
{
    struct arena *arena = context->arena;
    const char *host = entry->spec.host, *found;

    if (entry->spec.path) {
        struct config_listener listener = entry->like;

        listener.address = keep_printf(arena, "unix:%s", entry->spec.path);
        listener.shown = listener.address;
        add(arena, config, &listener);
        return NULL;
    }
    if (strcmp(host, "localhost") == 0) {
        add_internet(arena, config, entry, "127.0.0.1", "localhost", false);
        add_internet(arena, config, entry, "::1", "localhost", true);
        return NULL;
    }
    if (strcmp(host, everywhere) == 0 || strcmp(host, "::") == 0) {
        add_internet(arena, config, entry, "0.0.0.0", "0.0.0.0", false);
        add_internet(arena, config, entry, "::", "::", host[0] != ':');
        return NULL;
    }
    found = look_up(arena, host);
    if (!found)
        return keep_printf(arena, "the host %s is no address and not in /etc/hosts", host);
    add_internet(arena, config, entry, found, host, false);
    return NULL;
}

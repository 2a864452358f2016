/* SPDX-License-Identifier: MIT */
/*
 * Where to listen, from the words of the file, an option or the environment to numeric addresses.
 * Names are looked up in the hosts file only. One thread.
 */
#pragma once

#include "config/config.h"
#include "config/type.h"

enum { LISTENER_PORT = 3000 };

/* A place as it was written, with what it left open. */
struct listener_spec {
    const char *host; /* as written, without brackets; NULL = left open */
    unsigned port;    /* 0 = left open */
    const char *path; /* Unix socket, absolute; else NULL */
};

/* A place with the attributes of its map in the file. */
struct listener_entry {
    struct listener_spec spec;
    struct config_listener like;
};

/* A growing list of them. */
struct listener_entries {
    struct listener_entry *items;
    uint32_t size;
};

/* Reads PORT, HOST, HOST:PORT, [ADDRESS]:PORT, unix:PATH, and Puma's tcp:// and unix:// forms. NULL,
 * or what is wrong with it. */
const char *listener_parse(const struct type_context *context, struct span text,
                           struct listener_spec *ret_spec);

/* Appends an entry. */
void listener_add(struct arena *arena, struct listener_entries *entries,
                  const struct listener_spec *spec, const struct config_listener *like);

/* The single numeric address of a place, with a host and a port for what it left open. */
const char *listener_address(const struct type_context *context, const struct listener_spec *spec,
                             const char *host, unsigned port);

/* Turns an entry into listeners of the configuration: localhost and all addresses become two, of
 * which the IPv6 one is optional. One that is there already is left out. NULL, or why not. */
const char *listener_resolve(const struct type_context *context, struct config *config,
                             const struct listener_entry *entry);

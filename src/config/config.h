/* SPDX-License-Identifier: MIT */
/*
 * The configuration as plain structs, one per section of the file. Made once by config_load, never
 * changed afterwards, shared by reading; a new loading is a new edition. Strings are owned by the
 * edition's arena and absolute when they are paths. Times in milliseconds, sizes in bytes.
 */
#pragma once

#include "base/arena.h"
#include "base/fault.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONFIG_NO_LIMIT = 0 };

/* A value that may stand for "choose yourself". */
#define CONFIG_AUTO UINT32_MAX

struct config_strings {
    const char **items;
    uint32_t size;
};

/* One listener, as given; addresses are numeric or Unix paths in the form that address_parse reads. */
struct config_listener {
    const char *address;
    bool optional;    /* came from a default: IPv6 may be missing on this machine */
    uint32_t mode;    /* Unix sockets: 0666 unless configured */
    const char *user; /* owner of a Unix socket, or NULL */
    const char *group;
    uint32_t backlog;
    bool proxy_protocol;
    const char *certificate; /* TLS; NULL = plain */
    const char *key;
    const char *shown; /* for the banner and status: "http://localhost:3000" */
};

struct config_limits {
    uint64_t target, field, header, headers, response_header, body, spool, connections;
};

struct config_timeouts {
    uint64_t header_ms, body_rate, write_rate, keepalive_ms, drain_ms, drain_delay_ms,
        stream_drain_ms;
};

enum config_log_format { CONFIG_LOG_OFF, CONFIG_LOG_COMBINED, CONFIG_LOG_JSON };

struct config_access_log {
    const char *file; /* path, "stdout" or "stderr" */
    enum config_log_format format;
};

enum config_pool_kind { CONFIG_RACK, CONFIG_FASTCGI, CONFIG_HTTP };

enum config_preload { CONFIG_PRELOAD_AUTO, CONFIG_PRELOAD_TRUE, CONFIG_PRELOAD_FALSE };

struct config_variable {
    const char *name;
    const char *value;
};

enum config_allocator { CONFIG_ALLOCATOR_DEFAULT, CONFIG_ALLOCATOR_JEMALLOC };

struct config_malloc {
    enum config_allocator allocator;
    uint64_t arenas; /* 0 = as many as the C library likes */
};

struct config_pool {
    const char *name;
    enum config_pool_kind kind;
    const char *app;      /* folder as given, absolute, symlinks kept */
    const char *rackup;   /* file name relative to app, or absolute */
    const char *ruby;     /* or NULL: resolved at start */
    uint32_t workers_min; /* CONFIG_AUTO = auto */
    uint32_t workers_max; /* CONFIG_AUTO = auto */
    uint32_t threads;
    enum config_preload preload;
    uint64_t idle_ms, max_requests, memory, memory_total, timeout_ms, start_timeout_ms;
    uint64_t queue_length, queue_timeout_ms;
    struct config_variable *env;
    uint32_t env_size;
    const char *env_file;
    struct config_malloc malloc;
    const char *log; /* path, "stdout", "stderr", or NULL: as the server's */
    const char *user;
    const char *group;
    uint32_t umask;    /* CONFIG_AUTO = unchanged */
    const char *mount; /* the only path that it is found at, or NULL: at `/`, or at several */
};

/* Files below folder that the application names as prefix + name. */
struct config_prefix {
    const char *prefix; /* begins and ends with '/' */
    const char *folder;
};

/* Paths of a site that are answered in another way: `path` itself and what lies below it. */
struct config_route {
    const char *path;         /* begins with '/', does not end with it */
    struct config_pool *pool; /* or NULL: files only */
    const char *root;         /* looked up without the path; or NULL */
    struct config_strings links;
    struct config_strings serve;
};

struct config_site {
    struct config_strings hosts; /* lower case; "*.x" is a wildcard; none = every host */
    const char *root;            /* static files, or NULL */
    struct config_pool *pool;    /* or NULL: files only */
    const char *pulse;           /* path, or NULL */
    struct config_limits limits; /* body counts here, the rest is the server's */
    struct config_strings links;
    struct config_strings serve; /* extensions sent although their type is refused: ".rb" */
    struct config_prefix *internal;
    uint32_t internal_size;
    struct config_route *routes;
    uint32_t route_size;
    const char *redirect; /* the address that everything is redirected to, or NULL */
    uint32_t redirect_status;
    bool compress;
    bool page_cache_query;
};

/* One loaded configuration. */
struct config {
    struct arena arena;
    const char *file;   /* the configuration file, or NULL */
    const char *folder; /* the application folder as given, absolute */
    const char *environment;
    bool development;
    bool daemonize;
    bool quiet;
    bool verbose;
    struct config_listener *listeners;
    uint32_t listener_size;
    const char *user;
    const char *group;
    const char *pid;     /* or NULL */
    bool pid_named;      /* named by somebody: failing to write it is an error */
    const char *control; /* or NULL: the default place */
    const char *log;     /* path, "stdout", "stderr", or NULL for none */
    struct config_access_log access_log;
    const char *spool;
    uint32_t loops;    /* CONFIG_AUTO resolved: at least 1 */
    const char *admin; /* address, or NULL */
    struct config_strings trusted_proxies;
    struct config_limits limits;
    struct config_timeouts timeouts;
    bool pass_underscore;
    const char *pulse;
    bool compress; /* each site has its own copy */
    uint64_t memory_total;
    struct config_pool **pools;
    uint32_t pool_size;
    struct config_site *sites;
    uint32_t site_size;
    struct config_origin *origins; /* where each value came from, for `print`; config/explain.h */
    struct faults warnings;        /* said at start, harmless */
};

/* What the command line and the environment say; filled by cli, read by config_load. NULL, 0 or false
 * mean "not given". Strings are not owned. */
struct config_options {
    const char *port;
    const char **binds;
    uint32_t bind_size;
    const char *environment;
    const char *file;
    const char *rackup;
    const char *workers;
    const char *threads;
    const char *pid;
    const char *log;
    bool daemonize;
    const char *user;
    const char *group;
    const char *admin;
    const char *control;
    bool quiet;
    bool verbose;
    const char *target; /* DIR or FILE.ru */
    /* Weaker than the file: what Rails and rackup say by themselves. */
    const char *default_port, *default_environment, *default_pid;
    char **environ;  /* the process environment */
    const char *cwd; /* `.`: $PWD when it is the same folder, else getcwd */
};

/* A copy that owns all its strings and lists, for later loadings; frees one (NULL is harmless). */
struct config_options *config_options_copy(const struct config_options *options);
void config_options_free(struct config_options *options);

/* Finds, reads and verifies the configuration. On success the edition is the caller's (config_free);
 * else NULL and every error in *ret_faults. Opens nothing but the files it reads. */
struct config *config_load(const struct config_options *options, struct faults *ret_faults);

/* Frees an edition; NULL is harmless. */
void config_free(struct config *config);

/* The application folder that these options mean, absolute, symlinks kept (for verbs that look for a
 * running server); NULL with a fault when there is none. The caller frees it. */
char *config_find_folder(const struct config_options *options, struct faults *ret_faults);

/* SPDX-License-Identifier: MIT */
/*
 * The handler for files: looks a request's path up below a site's root and answers with the file. The
 * look-up may have to ask the file threads, so the answer to "is there one" comes by callback, on the
 * exchange's loop, possibly before static_find returns.
 */
#pragma once

#include "http/exchange.h"
#include "loop/offload.h"

/* What a site allows; owned by the front for the life of its edition. */
struct static_root {
    const char *folder; /* absolute */
    const char *app;    /* the application folder as given, or NULL; for shared/ and releases/ */
    const char **links; /* further folders that links may lead into, NULL-terminated, or NULL */
    const char **serve; /* refused extensions that this site allows, NULL-terminated, or NULL */
    const char *never;  /* absolute path of the configuration file, never sent; or NULL */
    bool directories;   /* no pool: a folder without '/' at its end is redirected (301) */
    bool page_query;    /* cached pages also answer requests with a query */
    bool any_name;      /* no name is refused: only the application names them */
};

/* One loop's open files and their times; made by the front, one per loop. */
struct static_cache;

/* offload and post are the front's. NULL when memory is out. */
struct static_cache *static_cache_new(struct loop *loop, struct offload *offload,
                                      struct post *post);
void static_cache_free(struct static_cache *cache);

/* GET and HEAD only: tries $uri, $uri.html and $uri/index.html below the root. Calls on_missing(exchange)
 * when nothing is there, or only what is never sent; otherwise takes the exchange over (sets its handler)
 * and answers it: 200, 206, 304, 412, 416 or 301, with the form of the file (br, zstd, gzip) that the
 * client likes best, and 404 for a link that leads where it may not. If the exchange is cancelled
 * meanwhile, nothing is called.
 *
 * Where an application stands behind the root, pages of the last two kinds are its page cache: they do not
 * answer a query unless page_query says so, and one that somebody is writing is not there yet. */
void static_find(struct exchange *exchange, struct static_cache *cache,
                 const struct static_root *root, void (*on_missing)(struct exchange *exchange));

/* Any method: the same for one file below the root, by its decoded name without leading slash, with that
 * status; validators and ranges when full is set. Fields that the exchange has stay. */
void static_find_file(struct exchange *exchange, struct static_cache *cache,
                      const struct static_root *root, struct span name, unsigned status, bool full,
                      void (*on_missing)(struct exchange *exchange));

/* GET and HEAD only: the same as static_find for the request's own name, and no cached page. */
void static_find_named(struct exchange *exchange, struct static_cache *cache,
                       const struct static_root *root,
                       void (*on_missing)(struct exchange *exchange));

/* Whether both roots were the same folder when they were last looked at; false when one never was. */
bool static_is_same_folder(struct static_cache *cache, const struct static_root *a,
                           const struct static_root *b);

/* Closes what is open below a root that is asked for no more. */
void static_close_root(struct static_cache *cache, const struct static_root *root);

/* Answers with a file that is already open (a descriptor from a worker's to_path, or an error page):
 * validators and ranges as for others when full is set. The exchange's fields so far are kept; type is
 * added when the fields have none. What is not in memory is read by the cache's file threads, without a
 * cache by the loop. Takes fd. Returns false (fd closed) when it is no regular file. */
bool static_send_open(struct exchange *exchange, struct static_cache *cache, int fd,
                      struct span name, unsigned status, bool full);

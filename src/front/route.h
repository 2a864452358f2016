/* SPDX-License-Identifier: MIT */
/*
 * From site and request to what answers. Pure.
 */
#pragma once

#include "front/site.h"

enum route {
    ROUTE_PULSE,           /* the front itself, for the site's pool */
    ROUTE_FILES_THEN_POOL, /* a file of the root when there is one */
    ROUTE_POOL,
    ROUTE_FILES,       /* a file or nothing */
    ROUTE_REDIRECT,    /* the front itself, with another address */
    ROUTE_NOT_FOUND,   /* neither root nor pool */
    ROUTE_NOT_ALLOWED, /* files know only GET and HEAD */
};

/* A site and its place that has the path; neither may be NULL. */
enum route route_find(const struct site *site, const struct site_place *place, enum method method,
                      struct span path);

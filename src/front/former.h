/* SPDX-License-Identifier: MIT */
/*
 * Files of former releases: while workers of an older release live, their pages name assets that the new
 * release may not have. Master says which releases have workers (FRONT_RELEASE); a file that is not below
 * a site's root is looked for below theirs, by its own name only: a cached page of a former release is no
 * answer to anything. Each loop has its own list.
 */
#pragma once

#include "front/message.h"
#include "http/exchange.h"
#include "static/static.h"

struct front;
struct front_loop;

/* One site's. A root once made is kept, for the cache and searches under way point to it: one for each
 * release in a front's life. */
struct former {
    const struct static_root *roots[FRONT_RELEASES]; /* NULL: none in that place */
    struct list made;
};

/* Makes and frees the loop's lists. */
void former_init(struct front_loop *loop);
void former_done(struct front_loop *loop);

/* Loop 0 has the message from master; every loop is told. */
void former_take(struct front *front, const struct front_message *message);

/* GET and HEAD: answers with the file of the next release that has it, or goes on with serve_no_file. */
void former_find(struct exchange *exchange);

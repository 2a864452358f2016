/* SPDX-License-Identifier: MIT */
/*
 * The body of an answer that comes from a file: the whole of it or parts, handed to the connection piece
 * by piece. Before each piece it is seen whether its pages are in memory; when they are not, a file
 * thread reads them first, so that a slow disk holds up only the client that waits for it.
 *
 * A file may be written over while it is sent. The last bytes of an answer that takes more than one go are
 * therefore held until all others are out, and sent only if the file still is what it was: otherwise the
 * answer is cut, so that nobody takes a mixture for the whole.
 */
#pragma once

#include "http/exchange.h"
#include "loop/offload.h"
#include "static/open_file.h"
#include "static/range.h"

/* What is sent: parts of a file, and what stands before each and behind the last. */
struct transfer_plan {
    struct open_file *file;    /* referenced as long as the exchange lives */
    const struct range *parts; /* the exchange's */
    const struct span *leads;  /* the exchange's; one per part, or NULL */
    struct span trail;
    unsigned count;
};

/* Sends the body of an exchange whose head is set and ends it. Without offload the loop itself waits for
 * pages that are not in memory. */
void transfer_start(struct exchange *exchange, struct offload *offload, struct post *post,
                    const struct transfer_plan *plan);

/* SPDX-License-Identifier: MIT */
/*
 * Answers of our own: one small HTML page, or JSON when the client prefers it, or the
 * site's public/{404,500,502,503}.html. Those files are kept in memory per loop and looked at again by the
 * file threads at most once a second, so that an overload costs no disk access.
 */
#pragma once

#include "http/exchange.h"
#include "loop/offload.h"

struct error_pages;

/* roots: [size] static roots of the sites, NULL entries allowed; they outlive it. Reads the files. */
struct error_pages *error_pages_new(struct loop *loop, struct offload *offload, struct post *post,
                                    const char *const *roots, uint32_t size);

/* After the offload has ended. Takes NULL. */
void error_pages_free(struct error_pages *pages);

/* Answers the exchange and ends it: exchange->refusal, or status when that is none. site: index in
 * roots, or UINT32_MAX. No head may have been set. */
void error_page_send(struct error_pages *pages, struct exchange *exchange, uint32_t site,
                     unsigned status);

/* Whether this Accept prefers JSON to HTML (RFC 9110 12.5.1, by quality; HTML wins a tie). */
bool error_page_prefers_json(struct span accept);

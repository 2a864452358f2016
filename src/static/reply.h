/* SPDX-License-Identifier: MIT */
/*
 * The head of an answer that comes from a file: preconditions, ranges, validators, cache lifetime; the
 * body follows through static/transfer.h. Called by the exchange's loop.
 */
#pragma once

#include "http/exchange.h"
#include "loop/offload.h"
#include "static/form.h"

/* Answers with a form of a file. full: preconditions and ranges are looked at and validators sent. Fields
 * that the exchange has already stay and win. A reference to the file is kept until the exchange is reset.
 * offload may be NULL: then cold pages are read by the loop. */
void reply_send(struct exchange *exchange, struct offload *offload, struct post *post,
                const struct form *form, unsigned status, bool full);

/* 301 to the same path with a slash behind it, query kept. */
void reply_redirect(struct exchange *exchange);

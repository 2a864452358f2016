/* SPDX-License-Identifier: MIT */
/*
 * Makes a request of a head that the parser has read: copies the bytes into the exchange's arena, names
 * fields, and asks framing and target what they mean. Pure but for the arena.
 */
#pragma once

#include "http/exchange.h"
#include "http/h1_framing.h"
#include "http/h1_parser.h"

/* bytes: the head, parser->at of them are used. Fills the request, or says why it is refused (as much
 * as could be filled is there for the log). */
enum refusal h1_request_read(struct request *request, struct arena *arena,
                             const struct h1_parser *parser, struct span bytes,
                             struct h1_framing *ret_framing);

/* Fills what a refused head has of method and target, for the log and for answers to HEAD. */
void h1_request_read_refused(struct request *request, struct arena *arena,
                             const struct h1_parser *parser, struct span bytes);

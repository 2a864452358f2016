/* SPDX-License-Identifier: MIT */
/*
 * The layer that codes an application's texts on their way out, if the client wants that. It decides as
 * late as it can: an answer of unknown length that is over before its head is sent and turns out to be
 * tiny goes out as it is, with its length. Parts of a stream are flushed one by one.
 *
 *   handler -> exchange_write -> [held, while undecided] -> encoder -> exchange_put -> connection
 *                                [queue of file parts: answers that were spooled]
 *
 * A spooled answer is read and coded only as fast as the client takes it. Belongs to the exchange; one
 * loop.
 */
#pragma once

#include "front/encoder.h"
#include "http/exchange.h"

/* Lets this and later answers of the exchange be coded. Before the handler starts; the store outlives the
 * exchange. */
void compress_start(struct exchange *exchange, struct encoder_store *store);

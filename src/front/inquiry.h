/* SPDX-License-Identifier: MIT */
/*
 * Master wants to know what waits and runs here, or wants a request ended: every loop looks at its own
 * requests, the last one sends the listing. A loop that hangs keeps the answer back; master does not wait
 * for it for ever.
 */
#pragma once

#include "front/process.h"

/* Answers master's question with that number. id: ends the requests with it, and lists those only; empty:
 * lists all. Called on loop 0. */
void inquiry_start(struct front *front, uint64_t number, struct span id);

/* SPDX-License-Identifier: MIT */
/* What the server writes down for the program that takes its place: see takeover.h for who reads it. */
#pragma once

#include "base/saved.h"
#include "master/state.h"

/* Adds everything to an empty text. */
void handover_write(const struct master *master, struct saved_text *text);

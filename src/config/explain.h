/* SPDX-License-Identifier: MIT */
/*
 * The configuration in words: the settings in effect with where each came from, and the manual page
 * made from the table of directives. One thread.
 */
#pragma once

#include "base/buf.h"
#include "config/config.h"

/* Appends one line per setting, `key: value  # where from`. What looks like a secret is masked. */
void explain_edition(struct config *config, struct buf *out);

/* Appends the manual of the configuration file as Markdown. */
void explain_reference(struct buf *out);

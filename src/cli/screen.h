/* SPDX-License-Identifier: MIT */
/*
 * One look of `leat top`: two readings of the status, a moment apart, as lines of text. Pure.
 */
#pragma once

#include "cli/reading.h"

struct screen_look {
    const struct yaml *now;    /* the status */
    const struct yaml *before; /* an earlier one, or NULL: no rates then */
    uint64_t elapsed_ms;       /* between the two */
    unsigned columns;          /* lines are cut there; 0 = not at all */
    unsigned rows;             /* of lines at most; 0 = all */
    bool styled;               /* headings stand out on a terminal */
};

/* Appends the lines, each with its end. What came from clients holds no byte that a terminal obeys. */
void screen_write(const struct screen_look *look, struct buf *out);

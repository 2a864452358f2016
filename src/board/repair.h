/* SPDX-License-Identifier: MIT */
/*
 * A board that a worker has written over. Fronts believe nothing they read there, so that none of them is
 * harmed; but a header that workers no longer accept, or slots that belong to nobody, would make the pool
 * useless for ever. Master notices it by what only itself writes and by words that no party can have
 * written, kills the pool's workers, and sets the board right when none is left (README 53). Master only.
 */
#pragma once

#include "board/board.h"

/* What is wrong with the header or a slot's word, in words; NULL when nothing is. runtime is what the
 * board was made with. May be asked at any time: it looks only at what no honest party ever leaves. */
const char *repair_find_damage(const struct board *board, const char *runtime);

/* Sets right everything but the entries of fronts and what fronts hold. No worker entry is in use. */
void repair_board(const struct board *board, const char *runtime);

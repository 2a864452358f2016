/* SPDX-License-Identifier: MIT */
/*
 * Named points between two steps of the board's protocol. In a product build BOARD_STEP is nothing. A
 * unit test defines BOARD_STEP before it includes the sources and stops a party there. A build with
 * -DLEAT_CRASH_POINTS kills the process that reaches the point named by CRASH_AT in its environment;
 * with CRASH_ONCE=PATH only the first process to do so, which leaves the file PATH behind.
 */
#pragma once

enum board_step {
#define ROW(constant, word, what) STEP_##constant,
#include "board/step.def"
#undef ROW
    BOARD_STEPS
};

#ifndef BOARD_STEP
#ifdef LEAT_CRASH_POINTS
#define BOARD_STEP(constant) board_reached(STEP_##constant)
#else
#define BOARD_STEP(constant) ((void)0)
#endif
#endif

#ifdef LEAT_CRASH_POINTS
/* Kills this process if the environment asks for it at this point. */
void board_reached(enum board_step step);
#endif

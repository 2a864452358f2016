/* SPDX-License-Identifier: MIT */
/* A program that takes the place of another one (`leat upgrade`), or is asked whether it could. */
#pragma once

#include "cli/cli.h"

#include <stdbool.h>

struct saved;

/* Whether this process was started for it, whatever its command line says. Asks once. */
bool cli_is_takeover(void);

/* Does it, with the options of the call as the former program got them, and returns the exit status. */
int cli_take_over(const struct cli_call *call);

/* Serves: a first start, or, with what a former program has saved, in its place. Owns saved. */
int cli_serve(const struct cli_call *call, struct saved *saved);

/* SPDX-License-Identifier: MIT */
/*
 * From a command line to a unit: which application, how it is started, with which variables and sockets.
 * Reads the configuration as the unit's server will: with the variables that the unit has.
 */
#pragma once

#include "cli/cli.h"
#include "cli/unit.h"
#include "pool/environment.h"

struct unit_plan {
    struct unit unit;
    char name[UNIT_NAME];
    struct environment variables; /* that the server will have */
    size_t kept;                  /* the first of them, which the unit itself sets */
    struct config *config;
    struct arena arena; /* of the unit's strings */
    const char *ruby;   /* or NULL */
};

/* The NAME that the command line means; false when it cannot be one, which has been said. */
bool unit_plan_name(const struct cli_call *call, const char *folder, char out[UNIT_NAME]);

/* Makes the plan; false when it cannot work, with every reason on standard error. The plan must be given
 * to unit_plan_done either way. */
bool unit_plan_make(const struct cli_call *call, bool for_user, struct unit_plan *ret_plan);

void unit_plan_done(struct unit_plan *plan);

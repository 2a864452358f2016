/* SPDX-License-Identifier: MIT */
/*
 * Whom the front becomes: the configured user, else as root the owner of the application.
 */
#pragma once

#include "config/config.h"
#include "pool/account.h"

#include <limits.h>

/* Fills the account, which the caller frees with account_done, and the file or folder whose owner counts
 * where no user is configured. 0, or -1 with a fault. */
int owner_find(const struct config *config, struct account *ret_account, char ret_path[PATH_MAX],
               struct faults *faults);
